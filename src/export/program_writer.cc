#include <fxgraph/export/program_writer.h>

#include <ATen/ATen.h>

#include <algorithm>

#include <fxgraph/export/guards.h>
#include <fxgraph/export/packing.h>
#include <fxgraph/module/inline_bodies.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/module_effects.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/example_note.h>

namespace fx::pt2 {
namespace {

// The versions of the schema and of ATen's operators that are written.
constexpr int kSchemaMajor = 8;
constexpr int kSchemaMinor = 20;
constexpr int kOperatorVersion = 10;

template <typename T>
const T* note(const Node* node, const char* key) {
  const Meta* notes = node ? node->find_meta() : nullptr;
  return notes ? notes->get<T>(key) : nullptr;
}

// The getitem that takes `key` out of `whole`; null when there is none.
Node* element_at(Node& whole, const Argument& key) {
  for (Node& user : whole.users()) {
    if (user.target() == "operator.getitem" && user.arg(0).node_or_null() == &whole && user.arg(1) == key) return &user;
  }
  return nullptr;
}

std::string identifier_of(const std::string& path) {
  std::string name = path;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

std::int64_t valued(const SymbolicSize& size, const Symbols& symbols) {
  return size.expr.evaluate(symbols).value_or(size.example);
}

}  // namespace

ProgramWriter::ProgramWriter(GraphModule& module, const SaveExportedOptions& options)
    : module_(module), options_(options) {}

WrittenProgram ProgramWriter::write() {
  flatten_modules();
  const std::vector<Node*> placeholders = graph_.placeholders();
  if (options_.inputs.size() > placeholders.size()) {
    throw Error(ErrorKind::invalid_argument, "the program takes " + std::to_string(placeholders.size()) + " inputs, " +
                                                 std::to_string(options_.inputs.size()) + " examples were given");
  }
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    add_input(*placeholders[i], i < options_.inputs.size() ? &options_.inputs[i] : nullptr);
  for (const DynamicSize& size : options_.dynamic) make_dynamic(size);
  add_symbols();
  shapes_ = find_value_shapes(module_, graph_, symbols_, ranges_, [this](const Symbols& s) { return make_inputs(s); });
  drop_checks();
  for (Node* output : graph_.find_nodes(Op::output)) output->set_args({whole_values(output->arg(0))});

  writer_ = std::make_unique<GraphWriter>(module_, graph_, shapes_, refusals_);
  Json inputs = Json::array(), input_specs = Json::array();
  add_states(inputs, input_specs);
  add_user_inputs(inputs, input_specs);
  writer_->write_nodes();
  std::string out_spec;
  auto [results, output_specs] = outputs(out_spec);
  if (!refusals_.empty()) {
    std::string all;
    for (const std::string& each : refusals_) all += (all.empty() ? "" : ", ") + each;
    throw Error(ErrorKind::unsupported, "torch.export has no words for " + all);
  }
  Json names = Json::array();
  for (const Input& input : inputs_) names.push_back(input.placeholder->target().str());
  const Json call{{"inputs", Json::array()},
                  {"outputs", Json::array()},
                  {"in_spec", in_spec()},
                  {"out_spec", out_spec},
                  {"forward_arg_names", std::move(names)}};
  Json ranges = Json::object();
  for (const auto& [symbol, value] : symbols_) {
    const SizeRange range = ranges_[symbol];
    ranges[symbol] = {{"min_val", range.min ? Json(*range.min) : Json(0)},
                      {"max_val", range.max ? Json(*range.max) : Json()}};
  }
  written_.json = {
      {"graph_module",
       {{"graph", writer_->finish(std::move(inputs), std::move(results))},
        {"signature", {{"input_specs", std::move(input_specs)}, {"output_specs", std::move(output_specs)}}},
        {"module_call_graph", Json::array({{{"fqn", ""}, {"signature", call}}})},
        {"metadata", Json::object()},
        {"treespec_namedtuple_fields", Json::object()}}},
      {"opset_version", {{"aten", kOperatorVersion}}},
      {"range_constraints", std::move(ranges)},
      {"schema_version", {{"major", kSchemaMajor}, {"minor", kSchemaMinor}}},
      {"verifiers", Json::array({"TRAINING"})},
      {"torch_version", "2.14.0+fxgraph"},
      {"guards_code", Json::array()}};
  written_.example = example_inputs();
  return std::move(written_);
}

// Modules are written out; the checks of sizes go, for Python makes them from the signature.
void ProgramWriter::flatten_modules() {
  std::shared_ptr<GraphModule> copy;
  const std::optional<Graph> traced = internal::inline_traced_bodies(module_);
  Graph graph = traced ? traced->clone() : module_.graph().clone();
  for (Node* check : graph.find_nodes(Op::call_module, Symbol(kGuards))) {
    if (!check->has_users()) graph.erase_node(*check);
  }
  graph_ = inline_modules(GraphModule(module_, std::move(graph)));
  normalize_operators(graph_);
  eliminate_dead_code(graph_);
}

// ── Inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramWriter::add_input(Node& placeholder, const c10::IValue* example) {
  const auto* spec = note<TreeSpec>(&placeholder, kTreeNote);
  const auto* keyword = note<bool>(&placeholder, kKeywordNote);
  Input input{&placeholder,
              spec      ? *spec
              : example ? spec_of_value(*example)
                        : TreeSpec::leaf(),
              leaves_.size(), keyword && *keyword};
  if (!placeholder.args().empty() && !example) {
    leaves_.push_back({&placeholder, placeholder.name(), {}, {}, placeholder.arg(0)});
  } else {
    add_leaves(&placeholder, input.spec, example, placeholder.name());
  }
  inputs_.push_back(std::move(input));
}

void ProgramWriter::add_leaves(Node* node, const TreeSpec& spec, const c10::IValue* example, const std::string& name) {
  if (spec.is_leaf()) return add_leaf(node, example, name);
  const std::vector<c10::IValue> examples = example ? elements_of(*example) : std::vector<c10::IValue>();
  if (example && examples.size() != spec.children.size())
    throw Error(ErrorKind::invalid_argument, "the example for '" + name + "' has another number of values");
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    const Argument key = spec.kind == TreeSpec::Kind::dict ? spec.keys[i] : Argument(i);
    const std::string part = key.is_int() ? std::to_string(key.as_int()) : std::string(key.as_string());
    add_leaves(node ? element_at(*node, key) : nullptr, spec.children[i], example ? &examples[i] : nullptr,
               name + "_" + identifier_of(part));
  }
}

void ProgramWriter::add_leaf(Node* node, const c10::IValue* example, const std::string& name) {
  Leaf leaf{node, name};
  const auto* noted = note<InputNote>(node, kInputNote);
  const auto* info = note<TensorInfo>(node, meta_key::kTensorMeta);
  if (example && !example->isTensor()) {
    const std::optional<Argument> literal = to_argument(*example);
    if (!literal)
      throw Error(ErrorKind::unsupported,
                  "the input '" + name + "' is a " + example->tagKind() + ", not a tensor or number");
    leaf.literal = *literal;
  } else if (example) {
    leaf.example = example->toTensor().detach();
    leaf.meta = noted ? noted->tensor : meta_of_tensor(leaf.example);
  } else if (noted) {
    leaf.meta = noted->tensor;
  } else if (info) {
    leaf.meta = meta_of_tensor(at::empty(info->sizes, at::TensorOptions().dtype(to_scalar_type(info->dtype))));
  } else {
    throw Error(
        ErrorKind::invalid_argument,
        "the shape of the input '" + name + "' is not known: give an example (SaveExportedOptions::inputs, --input)");
  }
  if (noted) ranges_.insert(noted->ranges.begin(), noted->ranges.end());
  leaves_.push_back(std::move(leaf));
}

void ProgramWriter::make_dynamic(const DynamicSize& size) {
  std::size_t index = 0;
  for (Leaf& leaf : leaves_) {
    if (leaf.literal || index++ != size.input) continue;
    const auto rank = static_cast<std::int64_t>(leaf.meta.sizes.size());
    if (size.dimension < 0 || size.dimension >= rank) break;
    const std::string symbol = "s" + std::to_string(size.input) + std::to_string(size.dimension);
    leaf.meta.sizes[static_cast<std::size_t>(size.dimension)].expr = SizeExpr::symbol(symbol);
    // Strides to the left of it are products of it, as of any contiguous tensor.
    SizeExpr stride = SizeExpr::integer(1);
    for (std::size_t i = leaf.meta.sizes.size(); i-- > 0;) {
      if (!stride.is_integer()) leaf.meta.strides[i].expr = stride;
      const SizeExpr& next = leaf.meta.sizes[i].expr;
      if (stride.is_integer() && next.is_integer()) {
        stride = SizeExpr::integer(stride.value() * next.value());
      } else {
        stride = stride == SizeExpr::integer(1) ? next : SizeExpr::call("Mul", {stride, next});
      }
    }
    ranges_[symbol] = size.range;
    return;
  }
  throw Error(ErrorKind::invalid_argument, "there is no dimension " + std::to_string(size.dimension) +
                                               " of a tensor number " + std::to_string(size.input) +
                                               " among the inputs");
}

// A symbol that is a size itself has the example's; one that is only part of one is searched for.
void ProgramWriter::add_symbols() {
  constexpr std::int64_t kFarthest = 65536;
  const auto each_size = [&](const auto& visit) {
    for (const Leaf& leaf : leaves_) {
      for (const SymbolicSize& size : leaf.meta.sizes) visit(size);
    }
  };
  each_size([&](const SymbolicSize& size) {
    if (size.expr.is_symbol()) symbols_.emplace(size.expr.name(), size.example);
  });
  each_size([&](const SymbolicSize& size) {
    size.expr.for_each_symbol([&](const std::string& name) {
      if (symbols_.count(name)) return;
      Symbols guess = symbols_;
      for (std::int64_t value = 1; value <= kFarthest; ++value) {
        guess[name] = value;
        if (size.expr.evaluate(guess) != size.example) continue;
        symbols_[name] = value;
        return;
      }
    });
  });
}

c10::IValue ProgramWriter::make_leaf(const Leaf& leaf, const Symbols& symbols) const {
  if (leaf.literal) return to_ivalue(*leaf.literal);
  if (leaf.example.defined() && symbols == symbols_) return leaf.example.clone();
  std::vector<std::int64_t> sizes, strides;
  for (const SymbolicSize& size : leaf.meta.sizes) sizes.push_back(valued(size, symbols));
  for (const SymbolicSize& stride : leaf.meta.strides) strides.push_back(valued(stride, symbols));
  const at::Tensor made = at::empty_strided(
      sizes, strides,
      at::TensorOptions().dtype(to_scalar_type(leaf.meta.dtype)).device(to_torch_device(leaf.meta.device)));
  return made.is_floating_point() || made.is_complex() ? made.fill_(0.5) : made.zero_();
}

std::vector<c10::IValue> ProgramWriter::make_inputs(const Symbols& symbols) const {
  std::vector<c10::IValue> values;
  for (const Input& input : inputs_) {
    std::size_t leaf = input.first_leaf;
    values.push_back(packed_value(input.spec, [&] { return make_leaf(leaves_[leaf++], symbols); }));
  }
  return values;
}

c10::IValue ProgramWriter::example_inputs() const {
  std::vector<c10::IValue> args, all = make_inputs(symbols_);
  c10::impl::GenericDict kwargs(c10::StringType::get(), c10::AnyType::get());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].keyword) {
      kwargs.insert(inputs_[i].placeholder->target().str(), all[i]);
    } else {
      args.push_back(all[i]);
    }
  }
  return c10::ivalue::Tuple::create({c10::ivalue::Tuple::create(std::move(args)), std::move(kwargs)});
}

std::string ProgramWriter::in_spec() const {
  std::vector<TreeSpec> args, kwargs;
  std::vector<Argument> names;
  for (const Input& input : inputs_) {
    if (input.keyword) names.push_back(Argument(input.placeholder->target().view()));
    (input.keyword ? kwargs : args).push_back(input.spec);
  }
  return TreeSpec::tuple({TreeSpec::tuple(std::move(args)), TreeSpec::dict(std::move(names), std::move(kwargs))})
      .dump();
}

void ProgramWriter::add_user_inputs(Json& inputs, Json& specs) {
  for (Leaf& leaf : leaves_) {
    if (leaf.literal) {
      const Json value = writer_->argument(*leaf.literal);
      if (value.is_null()) refusals_.push_back("the input '" + leaf.name + "'");
      inputs.push_back(value);
      specs.push_back({{"constant_input", {{"name", writer_->add_value(leaf.name, {})}, {"value", value}}}});
      continue;
    }
    ValueShape shape;
    shape.kind = ValueShape::Kind::tensor;
    shape.tensor = leaf.meta;
    shape.tensor.requires_grad = false;
    const std::string name =
        leaf.node ? writer_->name_value(*leaf.node, leaf.name, shape) : writer_->add_value(leaf.name, shape);
    inputs.push_back(GraphWriter::reference(name, shape));
    specs.push_back({{"user_input", {{"arg", GraphWriter::reference(name, shape)}}}});
  }
  for (const Input& input : inputs_) check_container(*input.placeholder, input.spec);
}

// A container is only taken apart: getitems of its keys. Further getitems of one value are that value.
void ProgramWriter::check_container(Node& whole, const TreeSpec& spec) {
  if (spec.is_leaf()) return;
  for (Node& user : whole.users()) {
    if (user.target() != "operator.getitem") {
      refusals_.push_back("the use of the whole container '" + whole.name() + "' by %" + user.name());
      continue;
    }
    Node* first = element_at(whole, user.arg(1));
    if (first && first != &user && writer_->has_name(*first)) writer_->set_name(user, writer_->name_of(*first));
  }
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    Node* element = element_at(whole, spec.kind == TreeSpec::Kind::dict ? spec.keys[i] : Argument(i));
    if (element) check_container(*element, spec.children[i]);
  }
}

// Assertions about sizes that held in every run are what the signature says.
void ProgramWriter::drop_checks() {
  for (Node* check : graph_.find_nodes(Op::call_function, Symbol("torch._assert"))) {
    const Node* condition = check->arg(0).node_or_null();
    const bool holds =
        !condition || (shapes_[*condition].kind == ValueShape::Kind::boolean && !shapes_[*condition].varies);
    if (holds && !check->has_users()) graph_.erase_node(*check);
  }
  eliminate_dead_code(graph_);
}

// ── State ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramWriter::add_state(const char* kind, const char* prefix, const std::string& path, const at::Tensor& tensor,
                              Json& inputs, Json& specs) {
  ValueShape shape;
  shape.kind = ValueShape::Kind::tensor;
  shape.tensor = meta_of_tensor(tensor);
  const std::string name = writer_->add_value(prefix + identifier_of(path), shape);
  for (Node* node : graph_.find_nodes(Op::get_attr, Symbol(path))) writer_->set_name(*node, name);
  inputs.push_back({{"as_tensor", {{"name", name}}}});
  specs.push_back({{kind, {{"arg", {{"name", name}}}, {std::string(kind) + "_name", path}}}});
}

void ProgramWriter::add_states(Json& inputs, Json& specs) {
  for (const auto& item : module_.named_parameters()) {
    if (!item.value().defined()) continue;
    add_state("parameter", "p_", item.key(), item.value(), inputs, specs);
    written_.weights.push_back({item.key(), item.value(), true});
  }
  std::vector<std::pair<std::string, at::Tensor>> constants;
  for (const auto& item : module_.named_buffers()) {
    if (!item.value().defined()) continue;
    const StateKind* kind = nullptr;
    for (Node* node : module_.graph().find_nodes(Op::get_attr, Symbol(item.key())))
      kind = note<StateKind>(node, kStateNote);
    if ((kind && *kind == StateKind::constant) || (!kind && item.key().starts_with("_tensor_constant"))) {
      constants.emplace_back(item.key(), item.value());
      continue;
    }
    add_state("buffer", "b_", item.key(), item.value(), inputs, specs);
    specs.back()["buffer"]["persistent"] = kind == nullptr;
    (kind ? written_.constants : written_.weights).push_back({item.key(), item.value(), false});
  }
  for (const auto& [path, tensor] : constants) {
    add_state("tensor_constant", "c_", path, tensor, inputs, specs);
    written_.constants.push_back({path, tensor, false});
  }
}

// ── Results ────────────────────────────────────────────────────────────────────────────────────────────────────────

Node& ProgramWriter::element_of(Node& whole, std::size_t index) {
  if (Node* known = element_at(whole, Argument(index))) return *known;
  Node& made = graph_.call_function("operator.getitem", {whole, index});
  shapes_[made] = ValueShape(shapes_[whole].elements[index]);
  return made;
}

// Lists that an operator makes and the program returns are taken apart.
Argument ProgramWriter::whole_values(const Argument& value) {
  return map_nodes(value, [this](Node& node) -> Argument {
    if (shapes_[node].kind != ValueShape::Kind::list) return node;
    std::vector<Argument> elements;
    for (std::size_t i = 0; i < shapes_[node].elements.size(); ++i)
      elements.push_back(whole_values(element_of(node, i)));
    return Argument::tuple(elements);
  });
}

std::pair<Json, Json> ProgramWriter::outputs(std::string& out_spec) {
  Json results = Json::array(), specs = Json::array();
  const Node* output = graph_.output_node();
  const TreeSpec spec = spec_of(output ? output->arg(0) : Argument(), [&](const Argument& leaf) {
    const Json value = writer_->argument(leaf);
    if (value.is_null()) refusals_.push_back("the result " + to_string(leaf));
    results.push_back(value);
    specs.push_back({{"user_output", {{"arg", value}}}});
  });
  out_spec = spec.dump();
  return {std::move(results), std::move(specs)};
}

}  // namespace fx::pt2
