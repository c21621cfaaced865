#include <fxgraph/export/packing.h>

#include <utility>

#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::pt2 {

c10::IValue packed_value(const TreeSpec& spec, const std::function<c10::IValue()>& next_leaf) {
  if (spec.is_leaf()) return next_leaf();
  std::vector<c10::IValue> elements;
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    if (spec.kind == TreeSpec::Kind::dict) elements.push_back(to_ivalue(spec.keys[i]));
    elements.push_back(packed_value(spec.children[i], next_leaf));
  }
  if (spec.kind == TreeSpec::Kind::dict) return make_dict(elements);
  return spec.kind == TreeSpec::Kind::list ? make_list(std::move(elements))
                                           : c10::IValue(c10::ivalue::Tuple::create(std::move(elements)));
}

TreeSpec spec_of_value(const c10::IValue& value) {
  std::vector<TreeSpec> children;
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) children.push_back(spec_of_value(each));
    return TreeSpec::tuple(std::move(children));
  }
  if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) children.push_back(spec_of_value(each));
    return TreeSpec::list(std::move(children));
  }
  if (!value.isGenericDict()) return TreeSpec::leaf();
  std::vector<Argument> keys;
  for (const auto& item : value.toGenericDict()) {
    if (!item.key().isString() && !item.key().isInt())
      throw Error(ErrorKind::unsupported, "a dict with keys that are neither strings nor ints cannot be exported");
    keys.push_back(to_argument(item.key()).value());
    children.push_back(spec_of_value(item.value()));
  }
  return TreeSpec::dict(std::move(keys), std::move(children));
}

}  // namespace fx::pt2
