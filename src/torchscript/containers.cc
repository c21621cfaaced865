// Lists and tuples whose elements are known one by one. Those that only exist while running (the result of
// chunk) are nodes: their elements are taken with operator.getitem.
#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/importer.h>

namespace fx::torchscript {

using Kind = AbstractValue::Kind;

namespace {

/// Does the call give a list of that length, or none whose last element can be taken?
bool has_length(const Node& list, std::int64_t count, bool takes_last) {
  const std::string_view packet = packet_of(list.target().view());
  if (list.args().size() < 2) return false;
  const Argument& parts = list.arg(1);
  if (packet == "aten::split_with_sizes") return parts.is_sequence() && std::ssize(parts.elements()) == count;
  const bool at_most = packet == "aten::chunk" || packet == "aten::unsafe_chunk";  // a short dimension gives fewer
  return at_most && takes_last && parts.is_int() && parts.as_int() == count;
}

}  // namespace

void Importer::make_list(const JitNode& node, Frame& frame) {
  set(node, frame, AbstractValue::of_elements(Kind::list, inputs_of(node, frame), node.output()->type()));
}

void Importer::make_tuple(const JitNode& node, Frame& frame) {
  set(node, frame, AbstractValue::of_elements(Kind::tuple, inputs_of(node, frame), node.output()->type()));
}

void Importer::unpack(const JitNode& node, Frame& frame) {
  const AbstractValue whole = value_of(node.input(), frame);
  const auto outputs = node.outputs();
  if (whole.is_container()) {
    if (whole.elements->values.size() != outputs.size()) {
      refuse(node, frame,
             "expected " + std::to_string(outputs.size()) + " values to unpack, got " +
                 std::to_string(whole.elements->values.size()));
    }
    const Values parts = whole.elements->values;
    for (std::size_t i = 0; i < outputs.size(); ++i) set(node, frame, parts[i], i);
    return;
  }
  if (node.kind() == torch::jit::prim::ListUnpack) assert_length(node, frame, whole);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]->hasUses()) continue;
    Node& element = emit_call(node, frame, python::kGetItem,
                              {to_argument(whole, nullptr, node, frame), Argument(static_cast<std::int64_t>(i))});
    set(node, frame, AbstractValue::of_node(element, outputs[i]->type()), i);
  }
}

Node& Importer::count_of(const JitNode& node, Frame& frame, Node& list) {
  static const Symbol kSize("aten::size");
  return list.target() == kSize && list.args().size() == 1 ? emit_call(node, frame, "aten::dim", {list.arg(0)})
                                                           : emit_call(node, frame, "aten::len.t", {Argument(list)});
}

// The elements of a list that is as long as at the examples; nothing where that is not known.
std::optional<Values> Importer::elements_at_examples(const JitNode& node, Frame& frame, const AbstractValue& list) {
  const c10::ListType* type = list.type ? list.type->castRaw<c10::ListType>() : nullptr;
  const c10::IValue* known = type && examples_ && list.is_node() ? examples_->value(*list.node) : nullptr;
  if (!known || !known->isList()) return std::nullopt;
  const std::size_t count = known->toListRef().size();
  Node& found = count_of(node, frame, *list.node);
  decide(node, frame, AbstractValue::of_node(found, c10::IntType::get()));
  Values elements;
  for (std::size_t i = 0; i < count; ++i) {
    Node& element =
        emit_call(node, frame, python::kGetItem, {Argument(*list.node), Argument(static_cast<std::int64_t>(i))});
    elements.push_back(AbstractValue::of_node(element, type->getElementType()));
  }
  return elements;
}

// `a, b = list` raises for a list of another length.
void Importer::assert_length(const JitNode& node, Frame& frame, const AbstractValue& list) {
  const auto count = static_cast<std::int64_t>(node.outputs().size());
  if (!list.is_node() || has_length(*list.node, count, node.outputs().back()->hasUses())) return;
  Node& holds = emit_call(node, frame, "aten::eq.int", {Argument(count_of(node, frame, *list.node)), Argument(count)});
  emit_assert(node, frame, holds, true, "expected " + std::to_string(count) + " values to unpack");
}

std::optional<std::size_t> Importer::index_in(const AbstractValue& list, const AbstractValue& index,
                                              const JitNode& node, Frame& frame) {
  const std::optional<c10::IValue> known = decide(node, frame, index);
  if (!known) return std::nullopt;
  const auto size = static_cast<std::int64_t>(list.elements->values.size());
  const std::int64_t at = known->toInt();
  if (at < -size || at >= size) {
    refuse(node, frame, "index " + std::to_string(at) + " is out of range for " + std::to_string(size) + " elements");
  }
  return static_cast<std::size_t>(at < 0 ? at + size : at);
}

void Importer::tuple_index(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (!in[0].is_tuple()) return emit_item(node, frame, in[0], in[1]);
  const auto at = index_in(in[0], in[1], node, frame);
  if (!at) refuse(node, frame, "a tuple is indexed by a number known only while running; " + cure());
  set(node, frame, in[0].elements->values[*at]);
}

void Importer::tuple_slice(const JitNode& node, Frame& frame) {
  const AbstractValue whole = value_of(node.input(), frame);
  const std::int64_t begin = node.i(torch::jit::attr::beg);
  const std::int64_t end = node.i(torch::jit::attr::end);
  Values parts;
  for (std::int64_t i = begin; i < end; ++i) {
    if (whole.is_tuple()) {
      parts.push_back(whole.elements->values.at(static_cast<std::size_t>(i)));
    } else {
      Node& element = emit_call(node, frame, python::kGetItem, {to_argument(whole, nullptr, node, frame), Argument(i)});
      parts.push_back(AbstractValue::of_node(element, whole.type->containedTypes().at(static_cast<std::size_t>(i))));
    }
  }
  set(node, frame, AbstractValue::of_elements(Kind::tuple, std::move(parts), node.output()->type()));
}

void Importer::length(const JitNode& node, Frame& frame) {
  const AbstractValue whole = value_of(node.input(), frame);
  if (!whole.is_container()) {
    if (!fold(node, frame)) emit(node, frame);
    return;
  }
  const std::size_t size = whole.elements->values.size() / (whole.is_dict() ? 2 : 1);
  set(node, frame, AbstractValue::of_constant(static_cast<std::int64_t>(size)));
}

Elements& Importer::writable(const AbstractValue& container, const JitNode& node, Frame& frame) {
  if (container.elements->belongs_to_module) {
    refuse(node, frame,
           "writing to a list or dict that is an attribute would outlive the call and cannot become a graph");
  }
  return *container.elements;
}

void Importer::get_item(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (in[0].is_dict()) {
    const AbstractValue* found = find_key(in[0], in[1], node, frame);
    if (!found) refuse(node, frame, "a dict has no such key");
    return set(node, frame, *found);
  }
  if (in[0].is_list()) {
    if (!in[1].is_constant()) return emit_item(node, frame, in[0], in[1]);
    return set(node, frame, in[0].elements->values[*index_in(in[0], in[1], node, frame)]);
  }
  if (in[0].is_node()) return emit_item(node, frame, in[0], in[1]);
  if (!fold(node, frame)) emit(node, frame);
}

void Importer::set_item(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (in[0].is_dict()) {
    writable(in[0], node, frame);
    put(in[0], in[1], in[2], node, frame);
  } else if (in[0].is_list()) {
    const auto at = index_in(in[0], in[1], node, frame);
    if (!at) refuse(node, frame, "a list is written at an index known only while running; " + cure());
    writable(in[0], node, frame).values[*at] = in[2];
  } else {
    return emit(node, frame);
  }
  if (!node.outputs().empty()) set(node, frame, in[0]);
}

void Importer::append(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (!in[0].is_list()) return emit(node, frame);
  writable(in[0], node, frame).values.push_back(in[1]);
  if (!node.outputs().empty()) set(node, frame, in[0]);
}

void Importer::extend(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (!in[0].is_list() || !in[1].is_list()) return emit(node, frame);
  const Values more = in[1].elements->values;  // it may be the same list
  Values& all = writable(in[0], node, frame).values;
  all.insert(all.end(), more.begin(), more.end());
}

void Importer::insert(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (!in[0].is_list() || !in[1].is_constant()) return emit(node, frame);
  Values& all = writable(in[0], node, frame).values;
  const auto size = static_cast<std::int64_t>(all.size());
  std::int64_t at = in[1].constant.toInt();
  at = std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  all.insert(all.begin() + at, in[2]);
}

void Importer::pop(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (!in[0].is_list()) {
    if (in[0].is_dict()) refuse(node, frame, "dict.pop cannot be imported");
    return emit(node, frame);
  }
  const auto at = index_in(in[0], in.size() > 1 ? in[1] : AbstractValue::of_constant(std::int64_t{-1}), node, frame);
  if (!at) refuse(node, frame, "list.pop at an index known only while running; " + cure());
  Values& all = writable(in[0], node, frame).values;
  set(node, frame, all[*at]);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
}

void Importer::clear(const JitNode& node, Frame& frame) {
  const AbstractValue list = value_of(node.inputs()[0], frame);
  if (!list.is_container()) return emit(node, frame);
  writable(list, node, frame).values.clear();
}

void Importer::reverse(const JitNode& node, Frame& frame) {
  const AbstractValue list = value_of(node.inputs()[0], frame);
  if (!list.is_list()) return emit(node, frame);
  Values& all = writable(list, node, frame).values;
  std::reverse(all.begin(), all.end());
}

void Importer::copy_list(const JitNode& node, Frame& frame) {
  const AbstractValue list = value_of(node.inputs()[0], frame);
  if (list.is_dict() && node.output()->type()->kind() != c10::TypeKind::DictType) return dict_keys(node, frame);
  if (std::optional<Values> elements = elements_at_examples(node, frame, list))
    return set(node, frame,
               AbstractValue::of_elements(AbstractValue::Kind::list, *std::move(elements), node.output()->type()));
  if (!list.is_container()) {
    if (!fold(node, frame)) emit(node, frame);
    return;
  }
  set(node, frame, AbstractValue::of_elements(list.kind, list.elements->values, node.output()->type()));
}

void Importer::slice(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  const bool known =
      in[0].is_list() && std::all_of(in.begin() + 1, in.end(), [](const AbstractValue& v) { return v.is_constant(); });
  if (!known) {
    if (!fold(node, frame)) emit(node, frame);
    return;
  }
  const Values& all = in[0].elements->values;
  const auto size = static_cast<std::int64_t>(all.size());
  const std::int64_t step = in.size() > 3 ? in[3].constant.toInt() : 1;
  if (step == 0) refuse(node, frame, "the step of a list slice is 0");
  // As Python: backwards from the last element to the first, the end being the place before it.
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto bound = [&](const AbstractValue& given, std::int64_t missing) {
    if (given.is_none()) return missing;
    const std::int64_t at = given.constant.toInt();
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, lowest, highest);
  };
  const std::int64_t from = bound(in[1], step > 0 ? lowest : highest), to = bound(in[2], step > 0 ? highest : lowest);
  Values chosen;
  for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) chosen.push_back(all[static_cast<std::size_t>(i)]);
  set(node, frame, AbstractValue::of_elements(Kind::list, std::move(chosen), node.output()->type()));
}

// list + list, list += list; other additions are operators.
void Importer::concatenate(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (in.size() != 2 || !in[0].is_list() || !in[1].is_list()) {
    if (!fold(node, frame)) emit(node, frame);
    return;
  }
  if (node.kind() == torch::jit::aten::add_) {
    extend(node, frame);
    return set(node, frame, in[0]);
  }
  Values all = in[0].elements->values;
  all.insert(all.end(), in[1].elements->values.begin(), in[1].elements->values.end());
  set(node, frame, AbstractValue::of_elements(Kind::list, std::move(all), node.output()->type()));
}

// list * int; other multiplications are operators.
void Importer::repeat_list(const JitNode& node, Frame& frame) {
  const Values in = inputs_of(node, frame);
  if (in.size() != 2 || !in[0].is_list() || !in[1].is_constant()) {
    if (!fold(node, frame)) emit(node, frame);
    return;
  }
  Values all;
  for (std::int64_t i = 0; i < in[1].constant.toInt(); ++i) {
    all.insert(all.end(), in[0].elements->values.begin(), in[0].elements->values.end());
  }
  set(node, frame, AbstractValue::of_elements(Kind::list, std::move(all), node.output()->type()));
}

void Importer::contains(const JitNode& node, Frame& frame) {
  Values in = inputs_of(node, frame);
  if (in[0].is_dict()) {
    return set(node, frame, AbstractValue::of_constant(find_key(in[0], in[1], node, frame) != nullptr));
  }
  if (!fold(node, frame)) emit(node, frame);
}

}  // namespace fx::torchscript
