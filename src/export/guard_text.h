// Guards: what torch.export found that the sizes of the inputs must satisfy beside their ranges, as Python's text:
//
//   L['v'].size()[0] == L['w'].size()[0]
//   2*(L['flat_args'][1].size()[0] // 4) >= 2
//
// Arithmetic of whole numbers, comparisons, `and`, `or`, `not`, `torch.sym_min` and `torch.sym_max` are read.
//
// Costs: linear in the text, which may be kLongest bytes long and nest kDeepest deep. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::pt2 {

/// A guard as a tree.
struct Guard {
  static constexpr std::size_t kLongest = 20000;
  static constexpr int kDeepest = 100;

  /// The operator of Python (`//`, `and`, `min`); `number` for a literal; what is asked of an input: `value`, `size`,
  /// `stride`.
  std::string kind{};
  std::int64_t number = 0;  ///< the literal, or the dimension that is asked for
  std::size_t leaf = 0;     ///< the input that is asked, among all values of the call
  std::vector<Guard> operands{};
};

/// The step from a container to what is in it: a key or an index.
struct GuardStep {
  std::string key;  ///< empty: an index
  std::int64_t index = 0;
};

/// Which value of the call a path names: `L['d']['a'][0]` is d, a, 0. Nothing for one that is not there.
using GuardPath = std::function<std::optional<std::size_t>(const std::vector<GuardStep>&)>;

/// The tree; nothing for a text that says something else than is read here.
std::optional<Guard> parse_guard(std::string_view text, const GuardPath& leaf_of);
/// Python's text, which names inputs by their place among all values of the call: `L['flat_args'][0]`.
std::string guard_text(const Guard& guard);
/// Its value (a truth is 1 or 0) where `input` says what sizes are; nothing where it says nothing.
std::optional<std::int64_t> evaluate_guard(const Guard& guard,
                                           const std::function<std::optional<std::int64_t>(const Guard& asked)>& input);
/// Adds the nodes that compute it; `input` gives the node of which something is asked. Null when it gives none.
Node* add_guard(Graph& graph, const Guard& guard, const std::function<Node*(const Guard& asked)>& input);

}  // namespace fx::pt2
