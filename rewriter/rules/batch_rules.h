// Rules of the table in batch_rules.cc that stand elsewhere, and what all have in common. Internal to
// rewriter/rules/batch*.cc.
#pragma once

#include <cstddef>
#include <optional>

#include <fxgraph/rewriter/rules/call_samples.h>

namespace fx::internal {

inline constexpr const char* kAlong = "it computes along the batch";
inline constexpr const char* kOthers = "what it is given beside is not the same for all samples";
inline constexpr const char* kUnknownForm = "the form of what it is given is not known";
inline constexpr const char* kOtherPlaces = "the samples of its operands lie in different places";
inline constexpr const char* kLiteral = "it is given the number of samples as a literal";
inline constexpr const char* kMixes = "it mixes the batch with other dimensions";

/// Where the samples lie in the first argument, a tensor, and its rank.
struct BatchInput {
  SampleValue at;
  std::size_t rank;
};
std::optional<BatchInput> input_of(CallSamples& call);

/// Computes over the last `count` dimensions, and what else it is given is shared.
CallSamples::Result over_last(CallSamples& call, std::size_t count);

/// Rules of operators that change the form (batch_forms.cc); what the number says, each tells.
namespace batch_rules {
/// @{
CallSamples::Result permute(CallSamples& call, int);
CallSamples::Result transpose(CallSamples& call, int);
CallSamples::Result matrix_transpose(CallSamples& call, int);
CallSamples::Result unsqueeze(CallSamples& call, int);
CallSamples::Result squeeze(CallSamples& call, int);
CallSamples::Result reshape(CallSamples& call, int);
CallSamples::Result flatten(CallSamples& call, int);
CallSamples::Result expand(CallSamples& call, int);
CallSamples::Result expand_as(CallSamples& call, int);
CallSamples::Result concatenate(CallSamples& call, int);
CallSamples::Result stack(CallSamples& call, int);
CallSamples::Result item(CallSamples& call, int);
CallSamples::Result size(CallSamples& call, int);
CallSamples::Result length(CallSamples& call, int);
CallSamples::Result asks(CallSamples& call, int);
CallSamples::Result times(CallSamples& call, int);
CallSamples::Result divided(CallSamples& call, int);
CallSamples::Result same_number(CallSamples& call, int);
CallSamples::Result same_form(CallSamples& call, int);
CallSamples::Result filled(CallSamples& call, int);
/// @}
}  // namespace batch_rules

}  // namespace fx::internal
