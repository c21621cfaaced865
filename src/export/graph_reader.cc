#include <fxgraph/export/graph_reader.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fxgraph/export/literals.h>
#include <fxgraph/export/numbers.h>

namespace fx::pt2 {
namespace {

constexpr int kMaxGraphNesting = 16;

// The path of the innermost module of `key,path,type;key,path,type`; types may hold commas in brackets.
std::string innermost_path(const std::string& stack) {
  std::string_view last(stack);
  last = last.substr(last.rfind(';') + 1);  // npos + 1 is 0
  const std::size_t start = last.find(',');
  if (start == std::string_view::npos) return {};
  last.remove_prefix(start + 1);
  std::string path(last.substr(0, last.find(',')));
  if (path.starts_with("L['self']")) path.erase(0, std::min(path.size(), std::size_t(10)));
  return path;
}

bool is_one_of(const std::string& kind, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return kind == name; });
}

}  // namespace

std::string name_in(const Json& reference) {
  const auto [kind, value] = variant_of(reference);
  if (kind == "as_tensor") return string_of(member(value, "name"));
  return is_one_of(kind, {"as_sym_int", "as_sym_float", "as_sym_bool"}) ? string_of(variant_of(value).second) : "";
}

GraphReader::GraphReader(const Json& graph, GraphModule& module, Refusals& refusals, int depth)
    : json_(graph), module_(module), refusals_(refusals), depth_(depth) {
  if (depth > kMaxGraphNesting) malformed("graphs are nested too deeply");
  for (const Json& node : array_of(member(json_, "nodes"))) {
    for (const Json& input : array_of(member(node, "inputs"))) count_uses(member(input, "arg"));
  }
  for (const Json& output : array_of(member(json_, "outputs"))) count_uses(output);
}

// Names of values stand in `name` and `as_name`, however deep; nested graphs have names of their own.
void GraphReader::count_uses(const Json& json) {
  std::vector<const Json*> waiting{&json};
  while (!waiting.empty()) {
    const Json& at = *waiting.back();
    waiting.pop_back();
    if (at.is_array()) {
      for (const Json& each : at) waiting.push_back(&each);
    } else if (at.is_object()) {
      for (const auto& [key, value] : at.items()) {
        if (key == "as_graph") continue;
        if ((key == "name" || key == "as_name") && value.is_string()) ++uses_[value.get_ref<const std::string&>()];
        waiting.push_back(&value);
      }
    }
  }
}

int GraphReader::uses(const std::string& name) const {
  const auto found = uses_.find(name);
  return found == uses_.end() ? 0 : found->second;
}

void GraphReader::bind(const std::string& name, Argument value) {
  if (Node* node = value.node_or_null()) {
    names_.emplace(node, name);
    note_number(name, *node);
  }
  if (!values_.emplace(name, std::move(value)).second) malformed("two values are named '" + name + "'");
}

// Numbers whose making does not say that they are: inputs, and what Python's functions of sizes give.
void GraphReader::note_number(const std::string& name, Node& node) {
  const bool tells = node.is(Op::call_function) && node.target() != "operator.getitem" &&
                     !node.target().view().starts_with("torch.sym_");
  if (tells) return;
  static constexpr std::pair<const char*, const char*> kTypes[] = {
      {"sym_int_values", "int"}, {"sym_float_values", "float"}, {"sym_bool_values", "bool"}};
  for (const auto& [values, type] : kTypes) {
    const Json* all = find_member(json_, values);
    if (all && find_member(*all, name.c_str())) node.meta().set(meta_key::kType, std::string(type));
  }
}

Argument GraphReader::lookup(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) malformed("'" + name + "' is used before it is there");
  return found->second;
}

void GraphReader::add_update(const std::string& name, const Argument& target) { updates_.emplace(name, target); }

bool GraphReader::only_updates(const std::string& name, const Argument& target) const {
  const auto update = updates_.find(name);
  const auto target_name = target.node_or_null() ? names_.find(target.node_or_null()) : names_.end();
  return update != updates_.end() && update->second == target && target_name != names_.end() && uses(name) == 1 &&
         uses(target_name->second) == 1;
}

const TensorMeta* GraphReader::meta_of(const Argument& value) {
  const Node* node = value.node_or_null();
  const auto name = node ? names_.find(node) : names_.end();
  return name == names_.end() ? nullptr : meta_named(name->second);
}

const TensorMeta* GraphReader::meta_named(const std::string& name) {
  const auto [known, fresh] = metas_.try_emplace(name);
  if (fresh) {
    const Json* json = find_member(member(json_, "tensor_values"), name.c_str());
    if (!json) {
      metas_.erase(known);
      return nullptr;
    }
    known->second = read_tensor_meta(*json);
  }
  return &known->second;
}

// ── Arguments ──────────────────────────────────────────────────────────────────────────────────────────────────────

Argument GraphReader::read_argument(const Json& json) {
  const auto [kind, value] = variant_of(json);
  if (std::optional<Argument> literal = read_literal(kind, value)) return std::move(*literal);
  if (kind == "as_tensor") return lookup(string_of(member(value, "name")));
  const auto named_or_literal = [this](const Json& each) {
    const auto [inner, what] = variant_of(each);
    return inner == "as_name" ? lookup(string_of(what)) : read_argument(each);
  };
  if (is_one_of(kind, {"as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor"}))
    return named_or_literal(value);
  if (kind == "as_operator") return Argument(string_of(value));
  if (kind == "as_graph") return read_nested(value);
  std::vector<Argument> elements;
  if (is_one_of(kind, {"as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors"})) {
    for (const Json& each : array_of(value)) elements.push_back(named_or_literal(each));
    return Argument::list(elements);
  }
  if (kind == "as_tensors" || kind == "as_nested_tensors") {
    const char* element = kind == "as_tensors" ? "as_tensor" : "as_tensors";
    for (const Json& each : array_of(value)) elements.push_back(read_argument(Json{{element, each}}));
    return Argument::list(elements);
  }
  if (kind == "as_string_to_argument") {
    if (!value.is_object()) malformed("a dict argument is no object");
    for (const auto& [key, each] : value.items()) {
      elements.push_back(Argument(key));
      elements.push_back(read_argument(each));
    }
    return Argument::dict(elements);
  }
  throw Error(ErrorKind::unsupported, "an argument of '" + name_ + "' is '" + kind + "', which is not read here");
}

// The same graph may be called several times under one name.
Argument GraphReader::read_nested(const Json& json) {
  const std::string& name = string_of(member(json, "name"));
  const Json& graph = member(json, "graph");
  std::string path = to_identifier(name);
  const auto known = nested_.find(path);
  if (known == nested_.end() || *known->second != graph) {
    if (known != nested_.end() || module_.find_submodule(path)) path = module_.fresh_path(path);
    auto inner = std::make_shared<GraphModule>(Graph(), "GraphModule");
    GraphReader(graph, *inner, refusals_, depth_ + 1).read_all();
    module_.add_submodule(path, inner);
    nested_[path] = &graph;
  }
  return Argument(graph_get_attr(path));
}

std::vector<NamedValue> GraphReader::read_inputs(const Json& json) {
  constexpr std::int64_t kKeyword = 2;
  std::vector<NamedValue> inputs;
  for (const Json& input : array_of(json)) {
    NamedValue value{string_of(member(input, "name")), read_argument(member(input, "arg"))};
    if (const Json* kind = find_member(input, "kind")) value.keyword = integer_of(*kind) == kKeyword;
    inputs.push_back(std::move(value));
  }
  return inputs;
}

// ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void GraphReader::read_all() {
  for (const Json& input : array_of(member(json_, "inputs"))) {
    const std::string name = name_in(input);
    if (name.empty()) malformed("an input of a graph has no name");
    bind(name, graph().placeholder(name));
  }
  read_nodes();
  const std::vector<Argument> results = outputs();
  const Json* single = find_member(json_, "is_single_tensor_return");
  graph().output(single && boolean_of(*single) && results.size() == 1 ? results[0] : Argument::tuple(results));
  remove_left_over(graph());
  graph().lint();
}

void GraphReader::read_nodes() {
  for (const Json& node : array_of(member(json_, "nodes"))) read_node(node);
}

std::vector<Argument> GraphReader::outputs() {
  std::vector<Argument> all;
  name_ = "output";
  for (const Json& output : array_of(member(json_, "outputs"))) all.push_back(read_argument(output));
  return all;
}

void GraphReader::read_results(const Json& outputs) {
  results_.clear();
  for (const Json& output : array_of(outputs)) results_.push_back(name_in(output));
}

void GraphReader::read_node(const Json& json) {
  const std::string& target = string_of(member(json, "target"));
  const Json& outputs = member(json, "outputs");
  read_results(outputs);
  const Json* name = find_member(json, "name");
  name_ = name ? string_of(*name) : results_.size() == 1 ? results_[0] : "";
  stack_trace_.clear();
  module_path_.clear();
  if (const Json* notes = find_member(json, "metadata")) {
    if (const Json* trace = find_member(*notes, "stack_trace")) stack_trace_ = string_of(*trace);
    if (const Json* stack = find_member(*notes, "nn_module_stack")) module_path_ = innermost_path(string_of(*stack));
  }
  const std::vector<NamedValue> inputs = read_inputs(member(json, "inputs"));
  if (target == "torch.ops.higher_order.with_effects") return call_with_effects(inputs, json);
  if (target == kAssertTensor) {
    const Json* notes = find_member(json, "metadata");
    const Json* asked = notes ? find_member(*notes, kAssertionNote) : nullptr;
    Node* tensor = asked && !inputs.empty() ? inputs[0].value.node_or_null() : nullptr;
    if (tensor) return read_question(graph(), *tensor, string_of(*asked));
  }
  if (!lift(*this, target, inputs)) call_operator(target, inputs, json);
}

void GraphReader::note(Node& node) {
  if (!stack_trace_.empty()) node.meta().set(meta_key::kStackTrace, stack_trace_);
  if (!module_path_.empty()) node.meta().set(meta_key::kModuleStack, module_path_);
}

Node& GraphReader::call(Symbol target, ArgumentSpan args, KwargSpan kwargs, const std::string& name) {
  Node& made = graph().call_function(target, args, kwargs, name);
  note(made);
  return made;
}

Node& GraphReader::graph_get_attr(const std::string& path) {
  for (Node* known : graph().find_nodes(Op::get_attr, Symbol(path))) return *known;
  Node& made = graph().get_attr(Symbol(path));
  note(made);
  return made;
}

}  // namespace fx::pt2
