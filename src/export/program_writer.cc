#include <fxgraph/export/program_writer.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/export/guards.h>
#include <fxgraph/export/numbers.h>
#include <fxgraph/module/inline_bodies.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

// The versions of the schema and of ATen's operators that are written.
constexpr int kSchemaMajor = 8;
constexpr int kSchemaMinor = 20;
constexpr int kOperatorVersion = 10;

/// Each kind once, with its first place.
std::string in_words(const std::vector<Wordless>& all) {
  std::string text;
  for (auto each = all.begin(); each != all.end(); ++each) {
    const auto is_same = [&](const Wordless& other) { return other.what == each->what && other.why == each->why; };
    if (std::any_of(all.begin(), each, is_same)) continue;
    text += (text.empty() ? "" : ", ") + each->what;
    if (!each->node.empty()) text += " at %" + each->node;
    const auto more = std::count_if(each + 1, all.end(), is_same);
    if (more > 0) text += " and " + std::to_string(more) + (more == 1 ? " more place" : " more places");
    if (!each->why.empty()) text += " (" + each->why + ")";
  }
  return text;
}

/// What a condition on inputs asks for; nothing where guards cannot ask for it.
std::optional<AskedSize> asked_by(const Measure& measure, const CallInputs& call) {
  static constexpr std::pair<InputProperty, const char*> kKinds[] = {{InputProperty::size, "size"},
                                                                     {InputProperty::rank, "dim"},
                                                                     {InputProperty::numel, "numel"},
                                                                     {InputProperty::value, "value"}};
  const auto input = std::ranges::find(call.inputs(), measure.input,
                                       [](const CallInputs::Input& each) { return each.placeholder->name(); });
  const auto kind = std::ranges::find(kKinds, measure.property, [](const auto& each) { return each.first; });
  if (input == call.inputs().end() || kind == std::end(kKinds)) return std::nullopt;
  const TreeSpec* at = &input->spec;
  AskedSize found{kind->second, input->first_leaf, measure.dimension};
  for (const std::int64_t part : measure.part) {
    if (at->kind == TreeSpec::Kind::dict || part < 0 || part >= std::ssize(at->children)) return std::nullopt;
    for (std::int64_t i = 0; i < part; ++i) found.leaf += at->children[static_cast<std::size_t>(i)].num_leaves();
    at = &at->children[static_cast<std::size_t>(part)];
  }
  return at->is_leaf() && found.number >= 0 ? std::optional(found) : std::nullopt;
}

}  // namespace

ProgramWriter::ProgramWriter(GraphModule& module, const SaveExportedOptions& options)
    : module_(module), options_(options) {}

WrittenProgram ProgramWriter::write() {
  flatten_modules();
  call_ = std::make_unique<CallInputs>(module_, graph_, options_);
  put_in_literals();
  compute_with_numbers(graph_, module_);
  eliminate_dead_code(graph_, module_info(module_));
  refuse(calls_of_data(graph_, module_));
  find_shapes();
  refuse(calls_of_data(graph_, shapes_));
  put_in_types();
  take_lists_apart(graph_, shapes_.values);
  drop_checks();
  for (Node* output : graph_.find_nodes(Op::output)) output->set_args({whole_values(output->arg(0))});

  writer_ = std::make_unique<GraphWriter>(module_, graph_, shapes_.values, shapes_.nested, refusals_, &shapes_.data);
  Json inputs = Json::array(), input_specs = Json::array();
  add_states(inputs, input_specs);
  add_user_inputs(inputs, input_specs);
  writer_->write_nodes();
  std::string out_spec;
  auto [results, output_specs] = outputs(out_spec);
  if (!refusals_.empty()) throw Error(ErrorKind::unsupported, "torch.export has no words for " + in_words(refusals_));
  Json names = Json::array();
  for (const CallInputs::Input& input : call_->inputs()) names.push_back(input.placeholder->target().str());
  const Json call{{"inputs", Json::array()},
                  {"outputs", Json::array()},
                  {"in_spec", call_->spec()},
                  {"out_spec", out_spec},
                  {"forward_arg_names", std::move(names)}};
  Json guards = Json::array();
  for (const SizeExpr& guard : call_->guards()) guards.push_back(guard_text(guard));
  written_.json = {
      {"graph_module",
       {{"graph", writer_->finish(std::move(inputs), std::move(results))},
        {"signature", {{"input_specs", std::move(input_specs)}, {"output_specs", std::move(output_specs)}}},
        {"module_call_graph", Json::array({{{"fqn", ""}, {"signature", call}}})},
        {"metadata", reasons()},
        {"treespec_namedtuple_fields", Json::object()}}},
      {"opset_version", {{"aten", kOperatorVersion}}},
      {"range_constraints", ranges()},
      {"schema_version", {{"major", kSchemaMajor}, {"minor", kSchemaMinor}}},
      {"verifiers", Json::array({"TRAINING"})},
      {"torch_version", "2.14.0+fxgraph"},
      {"guards_code", std::move(guards)}};
  written_.example = call_->example();
  return std::move(written_);
}

// An input that has one value is that value wherever it is read. That it has is said by the archive, which is refused
// for any other, so that nothing else needs to assert it.
void ProgramWriter::put_in_literals() {
  for (const CallInputs::Input& input : call_->inputs()) {
    const std::span leaves = std::span(call_->leaves()).subspan(input.first_leaf, input.spec.num_leaves());
    if (std::ranges::all_of(leaves, [](const CallInputs::Leaf& leaf) { return leaf.literal.has_value(); })) {
      std::size_t next = 0;
      input.placeholder->replace_all_uses_with(input.spec.pack([&] { return *leaves[next++].literal; }));
      continue;
    }
    for (const CallInputs::Leaf& leaf : leaves) {
      if (!leaf.literal || !leaf.node) continue;
      Node& whole = leaf.node->arg(0).node();
      const Argument key = leaf.node->arg(1);
      while (Node* element = element_at(whole, key)) {  // it may be taken more than once
        element->replace_all_uses_with(*leaf.literal);
        graph_.erase_node(*element);
      }
    }
  }
}

// What a program asks of a tensor's type and device is what they are in the example, as in what Python exports. That
// the type is that one is asserted.
void ProgramWriter::put_in_types() {
  for (Node* asked : graph_.find_nodes(Op::call_function, Symbol("prim::device"))) {
    const Node* tensor = asked->args().empty() ? nullptr : asked->arg(0).node_or_null();
    if (!tensor || shapes_.values[*tensor].kind != ValueShape::Kind::tensor) continue;
    asked->replace_all_uses_with(Argument(shapes_.values[*tensor].tensor.device));
    graph_.erase_node(*asked);
  }
  for (Node* asked : graph_.find_nodes(Op::call_function, Symbol("prim::dtype"))) {
    bool is_compared = true;
    for (const Node& user : asked->users()) is_compared &= number_operator(user.target()) == "operator.eq";
    if (is_compared || shapes_.values[*asked].kind != ValueShape::Kind::integer) continue;
    const std::string name(to_string(static_cast<DType>(shapes_.values[*asked].integer.example)));
    const auto at = graph_.inserting_after(*asked);
    const AssertionWriter write(graph_);
    const Argument holds = write.holds(SizeRelation::equal, *asked, shapes_.values[*asked].integer.example);
    shapes_.values[holds.node()].kind = ValueShape::Kind::boolean;
    shapes_.values[holds.node()].boolean = true;
    write.add(holds, "must be torch." + name + ", as in the example");
  }
}

// Of the inputs' sizes, and of what data decide.
Json ProgramWriter::ranges() const {
  Json all = Json::object();
  const auto add = [&](const std::string& symbol, const SizeRange& range, const Json& least) {
    all[symbol] = {{"min_val", range.min ? Json(*range.min) : least},
                   {"max_val", range.max ? Json(*range.max) : Json()}};
  };
  for (const auto& [symbol, value] : call_->symbols()) {
    const auto known = call_->ranges().find(symbol);
    add(symbol, known == call_->ranges().end() ? SizeRange() : known->second, 0);
  }
  for (const DataSource& source : shapes_.data.all()) {
    const auto known = shapes_.data.ranges().find(source.symbol);
    if (known != shapes_.data.ranges().end()) add(source.symbol, known->second, Json());
    if (source.kind == DataSource::Kind::boolean) add(source.symbol, {0, 1}, Json());
    if (source.kind == DataSource::Kind::floating) add(source.symbol, {}, Json());
  }
  return all;
}

// Of conditions on sizes, which Python says in its own words.
Json ProgramWriter::reasons() const {
  Json all = Json::array();
  for (const Condition& condition : module_.contract().conditions()) {
    std::map<std::string, SizeExpr> asked;
    for (const Measure& measure : condition.measures) {
      if (const auto size = asked_by(measure, *call_)) asked.emplace(measure.name, size->symbol());
    }
    if (condition.reason.empty() || asked.size() != condition.measures.size()) continue;
    const SizeExpr guard =
        guard_of(condition).substituted([&](const SizeExpr& symbol) { return asked.at(symbol.name()); });
    if (AssertionWriter::can_write(guard)) all.push_back({guard_text(guard), condition.reason});
  }
  return all.empty() ? Json::object() : Json{{kReasonsNote, all.dump()}};
}

// Whatever sizes and numbers came of data in a run says nothing of the next.
void ProgramWriter::refuse(const std::string& calls_of_data) {
  if (calls_of_data.empty()) return;
  throw Error(ErrorKind::unsupported, "sizes or numbers depend on data: " + calls_of_data);
}

// A size that was found free and has no expression that is found stays what it is in the example.
void ProgramWriter::find_shapes() {
  for (bool may_fix = true;;) {
    std::set<std::string> unfit;
    shapes_ = find_values(module_, graph_, call_->symbols(), call_->ranges(),
                          {[this](const Symbols& s) { return call_->make(s); },
                           [this](const Node& node) { return call_->input_at(node); }},
                          call_->may_fix() && may_fix ? &unfit : nullptr);
    if (unfit.empty()) return;
    if (call_->notes(unfit)) {  // the next round says which node it is
      may_fix = false;
      continue;
    }
    call_->fix(unfit);
  }
}

// Modules are written out; the checks of sizes go, for Python makes them from the signature.
void ProgramWriter::flatten_modules() {
  const std::optional<Graph> traced = internal::inline_traced_bodies(module_);
  Graph graph = traced ? traced->clone() : module_.graph().clone();
  for (Node* check : graph.find_nodes(Op::call_module, Symbol(kGuards))) {
    if (!check->has_users() && module_.find_submodule(kGuards)) graph.erase_node(*check);
  }
  graph_ = inline_modules(GraphModule(module_, std::move(graph)));
  const std::vector<Node*> placeholders = graph_.placeholders();
  for (std::size_t i = 0; i < std::min(placeholders.size(), options_.inputs.size()); ++i) {
    if (!options_.inputs[i].isInt()) continue;
    placeholders[i]->meta().set(meta_key::kType, std::string("int"));  // else its arithmetic is that of tensors
  }
  for (Node& node : graph_.nodes()) spell_as_operator(node);  // a .pt2 knows operators alone
  compare_as_tensors(graph_);
  eliminate_dead_code(graph_, module_info(module_));
  states_ = settle_state(module_, graph_);
}

// ── Inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramWriter::add_user_inputs(Json& inputs, Json& specs) {
  for (const CallInputs::Leaf& leaf : call_->leaves()) {
    if (leaf.literal) {
      const Argument& literal = *leaf.literal;
      const bool has_words = literal.is_none() || literal.is_bool() || literal.is_int() || literal.is_float() ||
                             literal.is_string();  // all that Python reads as a constant input
      const Json value = has_words ? writer_->argument(literal) : Json();
      if (!has_words) refusals_.push_back({"the input '" + leaf.name + "', which is " + to_string(literal)});
      inputs.push_back(value);
      leaf_names_.push_back(writer_->add_value(leaf.name, {}));
      specs.push_back({{"constant_input", {{"name", leaf_names_.back()}, {"value", value}}}});
      continue;
    }
    ValueShape shape;
    shape.kind = leaf.number ? ValueShape::Kind::integer : ValueShape::Kind::tensor;
    if (leaf.number) shape.integer = *leaf.number;
    if (leaf.tensor) shape.tensor = *leaf.tensor;
    const bool is_there = leaf.node && !leaf.node->is_erased();  // checks alone may have read it
    const std::string name =
        is_there ? writer_->name_value(*leaf.node, leaf.name, shape) : writer_->add_value(leaf.name, shape);
    leaf_names_.push_back(name);
    inputs.push_back(GraphWriter::reference(name, shape));
    specs.push_back({{"user_input", {{"arg", GraphWriter::reference(name, shape)}}}});
  }
  for (const CallInputs::Input& input : call_->inputs())
    check_container(*input.placeholder, input.spec, input.first_leaf);
}

// A container is only taken apart: getitems of its keys, each of which may be taken more than once.
void ProgramWriter::check_container(Node& whole, const TreeSpec& spec, std::size_t leaf) {
  if (spec.is_leaf()) return;
  for (Node& user : whole.users()) {
    if (user.target() != "operator.getitem")
      refusals_.push_back({"the use of the whole container '" + whole.name() + "' by %" + user.name()});
  }
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    const TreeSpec& child = spec.children[i];
    const Argument key = spec.kind == TreeSpec::Kind::dict ? spec.keys[i] : Argument(i);
    for (Node& element : whole.users()) {
      if (element.target() != "operator.getitem" || element.arg(0).node_or_null() != &whole || element.arg(1) != key)
        continue;
      // A container in it is no value of the archive, which knows its leaves alone: nothing refers to the name.
      if (!writer_->has_name(element)) writer_->set_name(element, child.is_leaf() ? leaf_names_[leaf] : element.name());
      check_container(element, child, leaf);
    }
    leaf += child.num_leaves();
  }
}

// Assertions about sizes that held in every run are what the signature says. Others are written, or refused.
void ProgramWriter::drop_checks() {
  for (Node* check : graph_.find_nodes(Op::call_function, Symbol("torch._assert"))) {
    const Node* condition = check->arg(0).node_or_null();
    const bool holds =
        !condition || is_of_literals(*condition) ||
        (shapes_.values[*condition].kind == ValueShape::Kind::boolean && !shapes_.values[*condition].varies);
    if (holds && !check->has_users() && is_about_sizes(*check, shapes_.values)) graph_.erase_node(*check);
  }
  eliminate_dead_code(graph_, module_info(module_));
}

// ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// One tensor that has two names is read under the first, so that all gradients of it come together.
void ProgramWriter::add_state(const char* kind, const char* prefix, const SavedState& state, Json& inputs,
                              Json& specs) {
  ValueShape shape;
  shape.kind = ValueShape::Kind::tensor;
  shape.tensor = meta_of_tensor(state.tensor);
  const std::string name = writer_->add_value(prefix + identifier_of(state.path), shape);
  const std::string& read = state_names_.try_emplace(state.tensor.unsafeGetTensorImpl(), name).first->second;
  for (Node* node : graph_.find_nodes(Op::get_attr, Symbol(state.path))) writer_->set_name(*node, read);
  inputs.push_back({{"as_tensor", {{"name", name}}}});
  specs.push_back({{kind, {{"arg", {{"name", name}}}, {std::string(kind) + "_name", state.path}}}});
}

void ProgramWriter::add_states(Json& inputs, Json& specs) {
  for (const SavedState& state : states_) {
    switch (state.held) {
      case SavedState::Held::parameter: add_state("parameter", "p_", state, inputs, specs); break;
      case SavedState::Held::constant: add_state("tensor_constant", "c_", state, inputs, specs); break;
      default:
        add_state("buffer", "b_", state, inputs, specs);
        specs.back()["buffer"]["persistent"] = state.held == SavedState::Held::buffer;
    }
    (state.held <= SavedState::Held::buffer ? written_.weights : written_.constants).push_back(state);
  }
}

// ── Results ────────────────────────────────────────────────────────────────────────────────────────────────────────

Node& ProgramWriter::element_of(Node& whole, std::size_t index) {
  if (Node* known = element_at(whole, Argument(index))) return *known;
  Node& made = graph_.call_function("operator.getitem", {whole, index});
  shapes_.values[made] = ValueShape(shapes_.values[whole].elements[index]);
  return made;
}

// Lists that an operator makes and the program returns are taken apart.
Argument ProgramWriter::whole_values(const Argument& value) {
  return map_nodes(value, [this](Node& node) -> Argument {
    if (shapes_.values[node].kind != ValueShape::Kind::list) return node;
    std::vector<Argument> elements;
    for (std::size_t i = 0; i < shapes_.values[node].elements.size(); ++i)
      elements.push_back(whole_values(element_of(node, i)));
    const Call call = call_of(node);
    return call && call.schema().returns.size() == 1 ? Argument::list(elements) : Argument::tuple(elements);
  });
}

std::pair<Json, Json> ProgramWriter::outputs(std::string& out_spec) {
  Json results = Json::array(), specs = Json::array();
  const Node* output = graph_.output_node();
  const TreeSpec spec = spec_of(output ? output->arg(0) : Argument(), [&](const Argument& leaf) {
    const Json value = writer_->argument(leaf);
    if (value.is_null()) refusals_.push_back({"the result " + to_string(leaf)});
    results.push_back(value);
    specs.push_back({{"user_output", {{"arg", value}}}});
  });
  const auto* noted = note<TreeSpec>(module_.graph().output_node(), kTreeNote);
  out_spec = (noted ? spec.named_like(*noted) : spec).dump();
  return {std::move(results), std::move(specs)};
}

}  // namespace fx::pt2
