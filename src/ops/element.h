// Elements: how a graph takes apart what has several values, `operator.getitem(%tuple, 1)`, or `getattr(%max,
// 'values')` of an operator whose results have names.
#pragma once

#include <cstdint>
#include <optional>

#include <fxgraph/ir/node.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx {

/// One element of the value of a node, by a literal index; negative ones count from the end.
struct Element {
  Node* of;            ///< the tuple or list
  std::int64_t index;  ///< as it is written
};

/// The element that `node` takes by a name of the operator's results; nothing when it does something else.
std::optional<Element> named_element(const Node& node);

/// The element that `node` takes; nothing when it does something else, or its index is not a literal. O(1).
inline std::optional<Element> taken_element(const Node& node) {
  if (!node.is(Op::call_function) || node.args().size() != 2) return std::nullopt;
  if (node.target() == python::kGetAttr) return named_element(node);
  if (node.target() != python::kGetItem) return std::nullopt;
  Node* of = node.args()[0].node_or_null();
  if (!of || !node.args()[1].is_int()) return std::nullopt;
  return Element{of, node.args()[1].as_int()};
}

/// The element of a tuple or list that is written out; nothing when `whole` is none or has no such element. O(1).
inline std::optional<Argument> element_of(const Argument& whole, std::int64_t index) {
  if (!whole.is_sequence()) return std::nullopt;
  const auto count = static_cast<std::int64_t>(whole.elements().size());
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return whole.elements()[static_cast<std::size_t>(index)];
}

}  // namespace fx
