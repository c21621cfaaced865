// Dicts whose keys are known one by one: `elements` are keys and values in turn.
#include <algorithm>

#include <fxgraph/torchscript/importer.h>

namespace fx::torchscript {

using Kind = AbstractValue::Kind;

// A key that hangs on the inputs becomes what it is at the examples.
AbstractValue* Importer::find_key(AbstractValue& dict, AbstractValue& key, const JitNode& node, Frame& frame) {
  const std::optional<c10::IValue> known = decide(node, frame, key);
  if (!known) refuse(node, frame, "a dict is indexed by a key known only while running; " + cure());
  if (!key.is_constant()) key = AbstractValue::of_constant(*known);
  Values& all = dict.elements->values;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    if (is_same(all[i], key)) return &all[i + 1];
  }
  return nullptr;
}

void Importer::put(AbstractValue& dict, AbstractValue key, AbstractValue value, const JitNode& node, Frame& frame) {
  if (AbstractValue* present = find_key(dict, key, node, frame)) {
    *present = std::move(value);
  } else {
    dict.elements->values.insert(dict.elements->values.end(), {std::move(key), std::move(value)});
  }
}

// dict() and OrderedDict(), of pairs or of another.
void Importer::new_dict(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  AbstractValue dict = AbstractValue::of_elements(Kind::dict, {}, node.output()->type());
  const auto is_pair = [](const AbstractValue& each) { return each.is_tuple() && each.elements->values.size() == 2; };
  if (!in.empty() && in[0].is_dict()) {
    dict.elements->values = in[0].elements->values;
  } else if (!in.empty() && in[0].is_list() && std::ranges::all_of(in[0].elements->values, is_pair)) {
    for (const AbstractValue& pair : in[0].elements->values)
      put(dict, pair.elements->values[0], pair.elements->values[1], node, frame);
  } else if (!in.empty()) {
    return emit(node, frame);
  }
  set(node, frame, std::move(dict));
}

void Importer::dict_update(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (!in[0].is_dict() || !in[1].is_dict()) return emit(node, frame);
  writable(in[0], node, frame);
  Values added = in[1].elements->values;
  for (std::size_t i = 0; i + 1 < added.size(); i += 2) {
    put(in[0], added[i], added[i + 1], node, frame);
  }
}

void Importer::dict_get(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (!in[0].is_dict()) return emit(node, frame);
  if (const AbstractValue* found = find_key(in[0], in[1], node, frame)) return set(node, frame, *found);
  set(node, frame, in.size() > 2 ? in[2] : AbstractValue::of_constant(c10::IValue()));
}

void Importer::dict_delete(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (!in[0].is_container()) return emit(node, frame);
  Values& all = writable(in[0], node, frame).values;
  if (in[0].is_dict()) {
    const AbstractValue* found = find_key(in[0], in[1], node, frame);
    if (!found) refuse(node, frame, "a dict has no such key");
    const auto at = found - all.data();
    all.erase(all.begin() + at - 1, all.begin() + at + 1);
  } else {
    const auto at = index_in(in[0], in[1], node, frame);
    if (!at) refuse(node, frame, "a list element is deleted at an index known only while running; " + cure());
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
  }
}

/// Of `first` 0 the keys, of 1 the values.
void Importer::dict_half(const JitNode& node, Frame& frame, std::size_t first) {
  const AbstractValue dict = value_of(node.inputs()[0], frame);
  if (!dict.is_dict()) return emit(node, frame);
  Values half;
  for (std::size_t i = first; i < dict.elements->values.size(); i += 2) half.push_back(dict.elements->values[i]);
  set(node, frame, AbstractValue::of_elements(Kind::list, std::move(half), node.output()->type()));
}
void Importer::dict_keys(const JitNode& node, Frame& frame) { dict_half(node, frame, 0); }
void Importer::dict_values(const JitNode& node, Frame& frame) { dict_half(node, frame, 1); }

void Importer::dict_items(const JitNode& node, Frame& frame) {
  const AbstractValue dict = value_of(node.inputs()[0], frame);
  if (!dict.is_dict()) return emit(node, frame);
  const c10::TypePtr pair_type = node.output()->type()->containedTypes().at(0);
  Values items;
  const Values& all = dict.elements->values;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    items.push_back(AbstractValue::of_elements(Kind::tuple, {all[i], all[i + 1]}, pair_type));
  }
  set(node, frame, AbstractValue::of_elements(Kind::list, std::move(items), node.output()->type()));
}

void Importer::make_dict(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  AbstractValue dict = AbstractValue::of_elements(Kind::dict, {}, node.output()->type());
  for (std::size_t i = 0; i + 1 < in.size(); i += 2) {
    put(dict, in[i], in[i + 1], node, frame);
  }
  set(node, frame, std::move(dict));
}

}  // namespace fx::torchscript
