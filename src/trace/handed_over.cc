#include <fxgraph/trace/handed_over.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/support/error.h>

namespace fx::internal {

std::vector<c10::IValue> parts_of(const c10::IValue& value) {
  std::vector<c10::IValue> parts;
  value.visit([&](const c10::IValue& part) {
    parts.push_back(part);
    return false;
  });
  return parts;
}

bool are_same(const std::vector<c10::IValue>& before, const std::vector<c10::IValue>& after) {
  return std::ranges::equal(before, after, [](const c10::IValue& a, const c10::IValue& b) {
    if (a.isTensor() || a.tagKind() != b.tagKind()) return a.is(b);
    if (a.isDouble() && std::isnan(a.toDouble())) return std::isnan(b.toDouble());
    const bool is_container = a.isList() || a.isTuple() || a.isGenericDict();  // their parts come next
    return is_container || a == b;
  });
}

void refuse_assigned_reference(std::size_t index) {
  throw Error(ErrorKind::trace, "symbolic_trace: the program assigns to its argument " + std::to_string(index + 1) +
                                    ", which it was handed by reference: who calls the graph would not see it; return "
                                    "the new value");
}

}  // namespace fx::internal
