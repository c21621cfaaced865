// `list.sort()` of numbers and strings: the same elements, read out of a sorted copy.
#include <algorithm>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/torchscript/importer.h>

namespace fx::torchscript {
namespace {

const char* sorted_overload(const c10::Type& element) {
  switch (element.kind()) {
    case c10::TypeKind::IntType: return "aten::sorted.int";
    case c10::TypeKind::FloatType: return "aten::sorted.float";
    case c10::TypeKind::BoolType: return "aten::sorted.bool";
    case c10::TypeKind::StringType: return "aten::sorted.str";
    default: return nullptr;
  }
}

bool is_less(const AbstractValue& a, const AbstractValue& b) {
  const c10::IValue &x = a.constant, &y = b.constant;
  if (x.isString()) return x.toStringRef() < y.toStringRef();
  return x.isDouble() ? x.toDouble() < y.toDouble() : x.isInt() ? x.toInt() < y.toInt() : x.toBool() < y.toBool();
}

}  // namespace

void Importer::sort(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  const auto* type = in[0].type ? in[0].type->castRaw<c10::ListType>() : nullptr;
  const char* const overload = in[0].is_list() && type ? sorted_overload(*type->getElementType()) : nullptr;
  const std::optional<c10::IValue> reverse =
      in.size() > 1 ? decide(node, frame, in[1]) : std::optional<c10::IValue>(false);
  if (!overload || !reverse) return emit(node, frame);
  Values& all = writable(in[0], node, frame).values;
  if (std::ranges::all_of(all, &AbstractValue::is_constant)) {
    std::ranges::stable_sort(all, is_less);
  } else {
    Node& sorted = emit_call(node, frame, overload, {to_argument(in[0], nullptr, node, frame)});
    for (std::size_t i = 0; i < all.size(); ++i) {
      Node& element =
          emit_call(node, frame, python::kGetItem, {Argument(sorted), Argument(static_cast<std::int64_t>(i))});
      all[i] = AbstractValue::of_node(element, type->getElementType());
    }
  }
  if (reverse->toBool()) std::ranges::reverse(all);  // equal ones are one
}

}  // namespace fx::torchscript
