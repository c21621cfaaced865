#include <fxgraph/torchscript/abstract_value.h>

#include <algorithm>

#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::torchscript {

using Kind = AbstractValue::Kind;

void keep_for_module(const AbstractValue& value) {
  if (!value.elements) return;
  value.elements->belongs_to_module = true;
  for (const AbstractValue& element : value.elements->values) keep_for_module(element);
}

bool is_known(const AbstractValue& value) {
  if (value.is_constant()) return true;
  if (!value.is_container()) return false;
  return std::all_of(value.elements->values.begin(), value.elements->values.end(), is_known);
}

namespace {

c10::TypePtr plain(const c10::TypePtr& type) {
  const auto* optional = type ? type->castRaw<c10::OptionalType>() : nullptr;
  return optional ? optional->getElementType() : type;
}

}  // namespace

c10::IValue to_constant(const AbstractValue& value) {
  if (value.is_constant()) return value.constant;
  std::vector<c10::IValue> values;
  for (const AbstractValue& element : value.elements->values) values.push_back(to_constant(element));
  const c10::TypePtr type = plain(value.type);
  if (value.is_tuple()) return c10::ivalue::Tuple::create(std::move(values));
  if (value.is_list()) {
    const auto* list = type ? type->castRaw<c10::ListType>() : nullptr;
    return make_list(std::move(values), list ? list->getElementType() : nullptr);
  }
  const auto* declared = type ? type->castRaw<c10::DictType>() : nullptr;
  if (!declared) return make_dict(values);
  c10::impl::GenericDict dict(declared->getKeyType(), declared->getValueType());
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) dict.insert(values[i], values[i + 1]);
  return dict;
}

bool is_same(const AbstractValue& a, const AbstractValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::constant:
      return a.constant.tagKind() == b.constant.tagKind() && !a.constant.isTensor() && a.constant == b.constant;
    case Kind::node: return a.node == b.node;
    case Kind::list:
    case Kind::dict: return a.elements == b.elements;
    case Kind::tuple:
      return std::equal(a.elements->values.begin(), a.elements->values.end(), b.elements->values.begin(),
                        b.elements->values.end(), is_same);
    case Kind::object: return a.object->object == b.object->object;
    case Kind::local_object: return a.local == b.local;
    case Kind::function: return a.function == b.function;
    case Kind::uninitialized: return true;
  }
  return false;
}

}  // namespace fx::torchscript
