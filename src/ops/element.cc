#include <fxgraph/ops/element.h>

namespace fx {

std::optional<Element> taken_element(const Node& node) {
  static const Symbol kGetItem("operator.getitem");
  if (!node.is(Op::call_function) || node.target() != kGetItem || node.args().size() != 2) return std::nullopt;
  Node* of = node.arg(0).node_or_null();
  if (!of || !node.arg(1).is_int()) return std::nullopt;
  return Element{of, node.arg(1).as_int()};
}

}  // namespace fx
