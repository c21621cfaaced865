// Which function of LibTorch is asking.
//
// A few functions of LibTorch ask a shape or data question only to check their input, or to choose between two ways to
// compute the same. They can be traced without knowing the answer, once it is known that it is they who ask: that is
// read from the call stack, by the names that LibTorch exports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fx::internal {

/// What to tell an asker about a rank that is not known.
struct RankAnswer {
  std::int64_t rank;
  bool checked_again;  ///< what the asker calls next may check the same input, from code without exported names
};

/// What to tell the present asker; nothing when it must know.
std::optional<RankAnswer> rank_for_caller();

/// Whether the present asker compares two tensors by their data only to save work when they are equal.
bool caller_takes_unequal();

/// Whether the present asker only checks where bags begin and end, as the operator that it then calls does.
bool caller_checks_offsets();

/// Whether the present asker notes the type of what a scripted function is given, in which gradients and strides have
/// no say.
bool caller_notes_type();

/// Whether the present asker is a custom autograd function whose operators have the gradient that it computes.
bool caller_is_differentiable();

/// The calls that led to the operator being recorded, a line each, the one that called it last. Slow.
std::string stack_of_calls();

}  // namespace fx::internal
