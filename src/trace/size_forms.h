// Forms of one number: how one that changes from run to run follows from another: `3*n + 1`, `(n + 1)//2`, `-n % 8`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::internal {

/// What a number is in each run: in the first trace, then in each probe.
using RunValues = std::vector<std::int64_t>;

/// How a number follows from another one.
struct FormOfOne {
  std::function<SizeExpr(const SizeExpr&)> of;
  std::int64_t weight = 0;    ///< of several the least is the plainest
  bool is_plain = false;      ///< the number itself, or a multiple
  bool is_ambiguous = false;  ///< another divisor would do as well
};
using FitForm = std::optional<FormOfOne> (*)(const RunValues& of, const RunValues& values);

std::optional<FormOfOne> same_form(const RunValues& of, const RunValues& values);
/// k·n
std::optional<FormOfOne> scaled_form(const RunValues& of, const RunValues& values);
/// n + c
std::optional<FormOfOne> shifted_form(const RunValues& of, const RunValues& values);
/// k·n + c
std::optional<FormOfOne> affine_form(const RunValues& of, const RunValues& values);
/// n // d, which leaves nothing
std::optional<FormOfOne> part_form(const RunValues& of, const RunValues& values);
/// n // d and n rounded up to a multiple, multiples of these, remainders, and what is missing to a multiple.
std::optional<FormOfOne> rounded_form(const RunValues& of, const RunValues& values);
/// The same, with some number added before: (n + c) // d
std::optional<FormOfOne> windowed_form(const RunValues& of, const RunValues& values);
/// Half of it, rounded down or towards zero, and the other half: how padding is shared out.
std::optional<FormOfOne> half_form(const RunValues& of, const RunValues& values);
/// Kept below, above or between numbers that it has reached.
std::optional<FormOfOne> bounded_form(const RunValues& of, const RunValues& values);

bool all_equal(const RunValues& values);
/// Three numbers say more than two, which may be many things.
bool has_few_values(const RunValues& values);

}  // namespace fx::internal
