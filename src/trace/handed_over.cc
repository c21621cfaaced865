#include <fxgraph/trace/handed_over.h>

#include <algorithm>

#include <fxgraph/support/error.h>

namespace fx::internal {

bool HandedOver::is_same(const HandedOver& other) const {
  return rest == other.rest && std::equal(tensors.begin(), tensors.end(), other.tensors.begin(), other.tensors.end(),
                                          [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); });
}

void HandedOver::add(const c10::IValue& value) {
  if (value.isTensor()) return add(value.toTensor());
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) add(element);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) add(element);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      add(item.key());
      add(item.value());
    }
  } else if (value.isString()) {
    add(value.toStringRef());
  } else if (value.isInt()) {
    add(std::to_string(value.toInt()));
  } else if (value.isDouble()) {
    add(std::to_string(value.toDouble()));
  } else {
    add(std::string(value.isNone() ? "none" : value.isBool() && value.toBool() ? "true" : "other"));
  }
}

void refuse_assigned_reference(std::size_t index) {
  throw Error(ErrorKind::trace, "symbolic_trace: the program assigns to its argument " + std::to_string(index + 1) +
                                    ", which it was handed by reference: who calls the graph would not see it; return "
                                    "the new value");
}

}  // namespace fx::internal
