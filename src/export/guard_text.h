// Guards: what torch.export found that the sizes of the inputs must satisfy beside their ranges, as Python's text:
//
//   L['v'].size()[0] == L['w'].size()[0]
//   2*(L['flat_args'][1].size()[0] // 4) >= 2
//
// They are conditions of SizeExpr, whose symbols are what is asked of an input: `L['flat_args'][1].size()[0]`.
//
// Costs: linear in the text. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {

/// What is asked of an input.
struct AskedSize {
  std::string kind;         ///< `value`, `size`, `stride`
  std::size_t leaf = 0;     ///< the input, among all values of the call
  std::int64_t number = 0;  ///< the dimension that is asked for

  /// As guards name it, whoever called it what.
  SizeExpr symbol() const;
  /// What a symbol of a guard asks.
  static AskedSize of(std::string_view symbol);
};

/// The step from a container to what is in it: a key or an index.
struct GuardStep {
  std::string key;  ///< empty: an index
  std::int64_t index = 0;
};

/// Which value of the call a path names: `L['d']['a'][0]` is d, a, 0. Nothing for one that is not there.
using GuardPath = std::function<std::optional<std::size_t>(const std::vector<GuardStep>&)>;

/// The condition; nothing for a text that says something else than is read here.
std::optional<SizeExpr> parse_guard(std::string_view text, const GuardPath& leaf_of);
/// Python's text.
std::string guard_text(const SizeExpr& guard);

}  // namespace fx::pt2
