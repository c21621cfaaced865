// Rules of the table in batch_rules.cc that stand elsewhere, and what all have in common. Internal to
// analysis/batch*.cc.
#pragma once

#include <cstddef>
#include <optional>

#include <fxgraph/analysis/batch_call.h>

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
std::optional<BatchInput> input_of(BatchCall& call);

/// Computes over the last `count` dimensions, and what else it is given is shared.
BatchCall::Result over_last(BatchCall& call, std::size_t count);

/// Rules of operators that change the form (batch_forms.cc); what the number says, each tells.
namespace batch_rules {
/// @{
BatchCall::Result permute(BatchCall& call, int);
BatchCall::Result transpose(BatchCall& call, int);
BatchCall::Result matrix_transpose(BatchCall& call, int);
BatchCall::Result unsqueeze(BatchCall& call, int);
BatchCall::Result squeeze(BatchCall& call, int);
BatchCall::Result reshape(BatchCall& call, int);
BatchCall::Result flatten(BatchCall& call, int);
BatchCall::Result expand(BatchCall& call, int);
BatchCall::Result expand_as(BatchCall& call, int);
BatchCall::Result concatenate(BatchCall& call, int);
BatchCall::Result stack(BatchCall& call, int);
BatchCall::Result item(BatchCall& call, int);
BatchCall::Result size(BatchCall& call, int);
BatchCall::Result length(BatchCall& call, int);
BatchCall::Result asks(BatchCall& call, int);
BatchCall::Result times(BatchCall& call, int);
BatchCall::Result divided(BatchCall& call, int);
BatchCall::Result same_number(BatchCall& call, int);
BatchCall::Result same_form(BatchCall& call, int);
BatchCall::Result filled(BatchCall& call, int);
/// @}
}  // namespace batch_rules

}  // namespace fx::internal
