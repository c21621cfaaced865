#include <fxgraph/export/graph_writer.h>

#include <algorithm>
#include <utility>

#include <fxgraph/export/literals.h>
#include <fxgraph/export/operators.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

// TorchScript has operators of its own, which Python's torch.ops does not know.
bool is_dispatched(const c10::FunctionSchema& schema) {
  return c10::Dispatcher::singleton().findSchema({schema.name(), schema.overload_name()}).has_value();
}

constexpr std::string_view kHigherOrder = "higher_order::";

// A number that does not vary, as an argument.
Argument literal_of(const ValueShape& shape) {
  if (shape.kind == ValueShape::Kind::boolean) return Argument(shape.boolean);
  if (shape.kind == ValueShape::Kind::floating) return Argument(shape.floating);
  return Argument(shape.integer.expr.value());
}

}  // namespace

// ── Names ──────────────────────────────────────────────────────────────────────────────────────────────────────────

std::string GraphWriter::fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::string GraphWriter::add_value(const std::string& wanted, const ValueShape& shape) {
  std::string name = fresh(wanted);
  if (shape.kind == ValueShape::Kind::tensor) {
    tensors_[name] = write_tensor_meta(shape.tensor);
    for (std::size_t dim = 0; dim < shape.tensor.sizes.size(); ++dim)
      note_symbol(shape.tensor.sizes[dim], {.tensor = name, .dim = static_cast<std::int64_t>(dim)});
  }
  if (shape.kind == ValueShape::Kind::integer) {
    integers_[name] = write_size(shape.integer);
    if (shape.integer.expr.is_symbol()) note_symbol(shape.integer, {.value = reference(name, shape)});
  }
  if (shape.kind == ValueShape::Kind::boolean) {
    booleans_[name] =
        shape.varies && shape.condition ? write_expression(*shape.condition, Json()) : Json{{"as_bool", shape.boolean}};
  }
  if (shape.kind == ValueShape::Kind::floating) {
    const Json number{{"as_float", write_float(shape.floating)}};
    floats_[name] =
        shape.varies && shape.real ? write_expression(*shape.real, shape.of_data ? Json() : number) : number;
  }
  return name;
}

// Of a size that is a symbol, or a multiple of one. The first place is taken: inputs come before what is computed.
void GraphWriter::note_symbol(const SymbolicSize& size, SymbolSource source) {
  const bool is_multiple = size.expr.is_call("Mul") && size.expr.operands().size() == 2 &&
                           size.expr.operands()[0].is_integer() && size.expr.operands()[1].is_symbol();
  if (!size.expr.is_symbol() && !is_multiple) return;
  source.step = is_multiple ? size.expr.operands()[0].value() : 1;
  source.example = size.example / source.step;
  symbols_.try_emplace(is_multiple ? size.expr.operands()[1].name() : size.expr.name(), std::move(source));
}

const std::string& GraphWriter::name_value(const Node& node, const std::string& wanted, const ValueShape& shape) {
  names_[node] = add_value(wanted, shape);
  return names_[node];
}
const std::string& GraphWriter::name_value(const Node& node, const std::string& wanted) {
  return name_value(node, wanted, shapes_[node]);
}

void GraphWriter::refuse(const Node& node, const std::string& why) {
  refusals_.push_back({target_text(node.target()), node.name(), why});
}

// ── Arguments ──────────────────────────────────────────────────────────────────────────────────────────────────────

Json GraphWriter::reference(const std::string& name, const ValueShape& shape) {
  switch (shape.kind) {
    case ValueShape::Kind::integer: return {{"as_sym_int", {{"as_name", name}}}};
    case ValueShape::Kind::floating: return {{"as_sym_float", {{"as_name", name}}}};
    case ValueShape::Kind::boolean: return {{"as_sym_bool", {{"as_name", name}}}};
    default: return {{"as_tensor", {{"name", name}}}};
  }
}

Json GraphWriter::argument(const Argument& value) {
  if (const Node* node = value.node_or_null()) {
    const ValueShape& shape = shapes_[*node];
    if (node->is(Op::get_attr) && !has_name(*node)) return nested(*node);
    if (is_number(shape.kind) && !shape.varies && !has_name(*node)) return argument(literal_of(shape));
    if (shape.kind == ValueShape::Kind::list) return sequence(value);
    if (shape.kind == ValueShape::Kind::none) return {{"as_none", true}};
    return reference(names_[*node], shape);
  }
  return value.is_sequence() ? sequence(value) : write_literal(value);
}

namespace {

bool all_have(const std::vector<Json>& elements, std::initializer_list<const char*> kinds) {
  return std::ranges::all_of(elements, [&](const Json& each) {
    return std::ranges::any_of(kinds, [&](const char* kind) { return each.contains(kind); });
  });
}

Json values_of(const std::vector<Json>& elements) {
  Json values = Json::array();
  for (const Json& each : elements) values.push_back(each.begin().value());
  return values;
}

// `as_sym_int: {as_name}` and `as_int` become the elements `as_name` and `as_int` of one list.
Json mixed(const std::vector<Json>& elements) {
  Json values = Json::array();
  for (const Json& each : elements) {
    const auto [kind, value] = variant_of(each);
    values.push_back(kind.starts_with("as_sym_") ? value : Json{{kind, value}});
  }
  return values;
}

}  // namespace

Json GraphWriter::sequence(const Argument& value) {
  std::vector<Json> elements;
  if (const Node* node = value.node_or_null()) {  // a list that one operator makes and another takes
    const ValueShape& shape = shapes_[*node];
    for (std::size_t i = 0; i < shape.elements.size(); ++i) {
      const Node* element = element_at(*node, Argument(i));
      if (!element || !has_name(*element)) return Json();
      elements.push_back(reference(names_[*element], shape.elements[i]));
    }
  }
  for (const Argument& each : value.elements()) {
    elements.push_back(argument(each));
    if (elements.back().is_null()) return Json();
  }
  return list_of(elements);
}

// Null where there is no list of such.
Json GraphWriter::list_of(const std::vector<Json>& elements) {
  if (elements.empty()) return {{"as_ints", Json::array()}};
  for (const auto& [kind, list] : {std::pair("as_int", "as_ints"), std::pair("as_float", "as_floats"),
                                   std::pair("as_bool", "as_bools"), std::pair("as_string", "as_strings"),
                                   std::pair("as_tensor", "as_tensors"), std::pair("as_tensors", "as_nested_tensors"),
                                   std::pair("as_ints", "as_int_lists"), std::pair("as_floats", "as_float_lists")}) {
    if (all_have(elements, {kind})) return {{list, values_of(elements)}};
  }
  if (all_have(elements, {"as_tensor", "as_none"})) return {{"as_optional_tensors", Json(elements)}};
  if (all_have(elements, {"as_sym_int", "as_int"})) return {{"as_sym_ints", mixed(elements)}};
  if (all_have(elements, {"as_sym_bool", "as_bool"})) return {{"as_sym_bools", mixed(elements)}};
  if (all_have(elements, {"as_sym_float", "as_float"})) return {{"as_sym_floats", mixed(elements)}};
  return Json();
}

Json GraphWriter::nested(const Node& node) {
  const auto module = std::dynamic_pointer_cast<GraphModule>(module_.find_submodule(node.target().str()));
  const auto shapes = module ? nested_shapes_.find(&module->graph()) : nested_shapes_.end();
  if (shapes == nested_shapes_.end()) return Json();
  GraphWriter inner(*module, module->graph(), shapes->second, nested_shapes_, refusals_);
  return {{"as_graph", {{"name", to_identifier(node.target().str())}, {"graph", inner.write_all()}}}};
}

Json GraphWriter::write_all() {
  Json inputs = Json::array(), outputs = Json::array();
  for (const Node* node : graph_.placeholders())
    inputs.push_back(reference(name_value(*node, node->name()), shapes_[*node]));
  write_nodes();
  const Node* output = graph_.output_node();
  const Argument result = output ? output->arg(0) : Argument::tuple({});
  const std::vector<Argument> values = result.is_sequence()
                                           ? std::vector<Argument>(result.elements().begin(), result.elements().end())
                                           : std::vector<Argument>{result};
  for (const Argument& value : values) {
    outputs.push_back(argument(value));
    if (outputs.back().is_null())
      refusals_.push_back({"the result " + to_string(value) + " of a graph in the program"});
  }
  return finish(std::move(inputs), std::move(outputs), !result.is_sequence());
}

// ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void GraphWriter::write_nodes() {
  find_left_out();
  for (const Node& node : graph_.nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output) || has_name(node) ||
        left_out_.contains(&node))
      continue;
    if (!node.is(Op::call_function)) {
      refuse(node, node.is(Op::call_module) ? "a call of a module whose computation is not known" : "a method");
      continue;
    }
    write_call(node);
  }
}

// TorchScript's types, layouts and memory formats are ints; Python wants what they name.
Argument GraphWriter::named(const Argument& value, const c10::TypePtr& type) const {
  if (!is_enumerator(*type)) return value;
  const Node* node = value.node_or_null();
  const ValueShape* shape = node ? &shapes_[*node] : nullptr;
  const bool is_known = shape && shape->kind == ValueShape::Kind::integer && !shape->varies;
  const Argument number = is_known ? literal_of(*shape) : value;
  if (!number.is_int()) return value;
  return to_argument(c10::IValue(number.as_int()), type).value_or(value);
}

void GraphWriter::write_call(const Node& node) {
  const ValueShape& shape = shapes_[node];
  if (node.target() == "torch._assert") return write_assertion(node);
  if (node.target() == "operator.getitem") {  // named with the list that it takes from, or of a list of lists
    if (!has_name(node) && shape.kind != ValueShape::Kind::list)
      refuse(node, "an index into a tensor, or into a list that varies");
    return;
  }
  if (const std::string python = python_number_call(node); !python.empty() && is_number(shape.kind)) {
    Json inputs = Json::array();
    static constexpr const char* kNames[] = {"a", "b", "c"};
    static constexpr const char* kSizeNames[] = {"self", "dim"};
    const bool is_operator = python.starts_with("torch.ops.");
    for (std::size_t i = 0; i < node.args().size() && i < (is_operator ? 2 : 3); ++i)
      inputs.push_back(input_named(is_operator ? kSizeNames[i] : kNames[i], argument(node.arg(i))));
    return write_operator(node, python, std::move(inputs));
  }
  if (node.target().view().starts_with(kHigherOrder)) return write_higher_order(node);
  if (is_number(shape.kind) && write_as_expression(node)) return;
  if (is_own_operator(node.target()))
    return refuse(node, "others have no such operator: `fxgraph optimize --rules decompose-packed` writes LibTorch's");
  const TorchOperator* known = find_exported_operator(node.target());
  if (!known || !is_dispatched(*known->schema) || (is_number(shape.kind) && !source(node))) return refuse(node, "");
  const auto& parameters = known->schema->arguments();
  Json inputs = Json::array();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Argument* value = i < node.args().size() ? &node.arg(i) : node.kwarg(Symbol(parameters[i].name()));
    if (!value) continue;
    Json json = argument(named(*value, parameters[i].real_type()));
    const bool empty_tensors = value->is_sequence() && value->elements().empty() &&
                               parameters[i].type()->str().find("Tensor") != std::string::npos;
    if (empty_tensors) json = {{"as_tensors", Json::array()}};
    if (json.is_null()) return refuse(node, "its argument '" + parameters[i].name() + "' is " + to_string(*value));
    const bool keyword = parameters[i].kwarg_only() || i >= node.args().size();
    inputs.push_back(input_named(parameters[i].name(), std::move(json), keyword));
  }
  write_operator(node, target_text(node.target()), std::move(inputs));
}

// Values by position, as Python's higher-order operators take them.
void GraphWriter::write_higher_order(const Node& node) {
  Json inputs = Json::array();
  for (const Argument& value : node.args()) {
    Json json = value.is_sequence() && value.elements().empty() ? Json{{"as_tensors", Json::array()}} : argument(value);
    if (json.is_null()) return refuse(node, "its argument " + to_string(value));
    inputs.push_back(input_named("", std::move(json)));
  }
  if (!node.kwargs().empty()) return refuse(node, "named arguments");
  const bool single = shapes_[node].kind != ValueShape::Kind::list;
  // Operators of higher order have no overloads, and Python's text of one no `.default`.
  const std::string target = "torch.ops.higher_order." + std::string(node.target().view().substr(kHigherOrder.size()));
  add_node(node, target, std::move(inputs), results_of(node, shapes_[node], true), single);
}

void GraphWriter::write_operator(const Node& node, const std::string& target, Json inputs) {
  const TorchOperator* known = find_exported_operator(node.target());
  const bool is_tuple = known && known->schema->returns().size() > 1;
  const bool nothing = known && known->schema->returns().empty();
  Json outputs = nothing ? Json::array() : results_of(node, shapes_[node], is_tuple);
  add_node(node, target, std::move(inputs), std::move(outputs), nullptr);
}

void GraphWriter::add_node(const Node& node, const std::string& target, Json inputs, Json outputs, Json single) {
  Json metadata = Json::object();
  const Meta* notes = node.find_meta();
  if (const auto* trace = notes ? notes->get<std::string>(meta_key::kStackTrace) : nullptr)
    metadata["stack_trace"] = *trace;
  push_node(has_name(node) ? names_[node] : node.name(), target, std::move(inputs), std::move(outputs),
            std::move(single), std::move(metadata));
}

void GraphWriter::push_node(const std::string& name, const std::string& target, Json inputs, Json outputs, Json single,
                            Json metadata) {
  nodes_.push_back({{"target", target},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)},
                    {"metadata", std::move(metadata)},
                    {"is_hop_single_tensor_return", std::move(single)},
                    {"name", name}});
}

Json GraphWriter::results_of(const Node& node, const ValueShape& shape, bool is_tuple) {
  const auto has_words = [](const ValueShape& value) { return value.kind != ValueShape::Kind::other; };
  if (!has_words(shape) || !std::ranges::all_of(shape.elements, has_words)) {
    refuse(node, "its result is neither a strided tensor nor a number");
    return Json::array();
  }
  if (shape.kind != ValueShape::Kind::list) return Json::array({reference(name_value(node, node.name()), shape)});
  taken_.insert(node.name());
  Json outputs = Json::array();
  for (std::size_t i = 0; i < shape.elements.size(); ++i) {
    const ValueShape& element = shape.elements[i];
    const Node* user = element_at(node, Argument(i));
    if (element.kind == ValueShape::Kind::none) {
      outputs.push_back({{"as_none", true}});
      continue;
    }
    if (element.kind == ValueShape::Kind::list) {
      Json tensors = Json::array();
      for (std::size_t j = 0; j < element.elements.size(); ++j) {
        const Node* inner = user ? element_at(*user, Argument(j)) : nullptr;
        const std::string unused = node.name() + "_unused_" + std::to_string(i) + "_" + std::to_string(j);
        tensors.push_back(
            {{"name", inner ? name_value(*inner, inner->name()) : add_value(unused, element.elements[j])}});
      }
      outputs.push_back({{"as_tensors", std::move(tensors)}});
      continue;
    }
    const std::string unused = node.name() + "_unused_" + std::to_string(i);
    outputs.push_back(reference(user ? name_value(*user, user->name(), element) : add_value(unused, element), element));
    // Further getitems of one element are that element.
    for (const Node& other : node.users()) {
      if (user && &other != user && other.target() == "operator.getitem" && other.arg(1) == user->arg(1))
        names_[other] = std::string(names_[*user]);  // a copy: the table may grow
    }
  }
  return is_tuple ? outputs : Json::array({{{"as_tensors", values_of({outputs.begin(), outputs.end()})}}});
}

Json GraphWriter::finish(Json inputs, Json outputs, bool single) {
  return {{"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"nodes", std::move(nodes_)},
          {"tensor_values", std::move(tensors_)},
          {"sym_int_values", std::move(integers_)},
          {"sym_bool_values", std::move(booleans_)},
          {"is_single_tensor_return", single},
          {"custom_obj_values", Json::object()},
          {"sym_float_values", std::move(floats_)}};
}

Json input_named(const std::string& name, Json value, bool keyword) {
  return {{"name", name}, {"arg", std::move(value)}, {"kind", keyword ? 2 : 1}};
}

Node* element_at(const Node& whole, const Argument& key) {
  for (Node& user : whole.users()) {
    if (user.target() == "operator.getitem" && user.arg(0).node_or_null() == &whole && user.arg(1) == key) return &user;
  }
  return nullptr;
}

}  // namespace fx::pt2
