#include <fxgraph/export/program_reader.h>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/module/written_mode.h>

namespace fx::pt2 {
namespace {

// PyTorch 2.5 wrote major version 7, 2.6 and later 8.
constexpr std::int64_t kOldestMajor = 7;
constexpr std::int64_t kNewestMajor = 8;
constexpr std::int64_t kDeepestPath = 256;

// `layer1.0.weight`: names that a module tree can hold.
void check_path(const std::string& path) {
  const auto dots = std::ranges::count(path, '.');
  if (path.empty() || path.front() == '.' || path.back() == '.' || path.find("..") != std::string::npos ||
      dots > kDeepestPath)
    malformed("'" + path.substr(0, 80) + "' is no name of a parameter or buffer");
}

}  // namespace

ProgramReader::ProgramReader(const Json& program, StoredTensors weights, StoredTensors constants,
                             const ExportedOptions& options)
    : program_(program),
      module_json_(member(program, "graph_module")),
      weights_(std::move(weights)),
      constants_(std::move(constants)),
      options_(options),
      module_(std::make_shared<GraphModule>()) {}

std::shared_ptr<GraphModule> ProgramReader::read() {
  check_version();
  read_ranges();
  read_call();
  reader_ = std::make_unique<GraphReader>(member(module_json_, "graph"), *module_, refusals_);
  read_signature();
  add_attributes();
  add_inputs();
  add_guards();
  add_states();
  add_updates();
  reader_->read_nodes();
  add_output();
  remove_left_over(module_->graph());
  if (!refusals_.calls.empty()) {
    std::string all;
    for (const auto& [target, node] : refusals_.calls) all += (all.empty() ? "" : ", ") + target + " at '" + node + "'";
    throw Error(ErrorKind::unsupported, "calls what is not known here: " + all +
                                            "; load the library that defines it, use a newer LibTorch, or decompose it "
                                            "before it is saved (run_decompositions)");
  }
  module_->graph().lint();
  set_mode();
  return module_;
}

void ProgramReader::check_version() {
  const std::int64_t major = integer_of(member(member(program_, "schema_version"), "major"));
  if (major >= kOldestMajor && major <= kNewestMajor) return;
  const Json* release = find_member(program_, "torch_version");
  throw Error(ErrorKind::unsupported, "is written in version " + std::to_string(major) + " of torch.export's schema" +
                                          (release ? " by PyTorch " + string_of(*release) : "") + "; versions " +
                                          std::to_string(kOldestMajor) + " and " + std::to_string(kNewestMajor) +
                                          " (PyTorch 2.5 and later) are read");
}

void ProgramReader::read_ranges() {
  constexpr std::int64_t kInfinite = INT64_MAX - 1;  // how releases before 2.7 wrote "no bound"
  for (const auto& [symbol, json] : member(program_, "range_constraints").items()) {
    SizeRange range;
    if (const Json* min = find_member(json, "min_val")) range.min = integer_of(*min);
    if (const Json* max = find_member(json, "max_val")) range.max = integer_of(*max);
    if (range.max && *range.max >= kInfinite) range.max.reset();
    ranges_.emplace(symbol, range);
  }
}

// The program's own entry of the module call graph says how the call is packed.
void ProgramReader::read_call() {
  const Json* signature = nullptr;
  for (const Json& entry : array_of(member(module_json_, "module_call_graph"))) {
    if (string_of(member(entry, "fqn")).empty()) signature = find_member(entry, "signature");
  }
  if (!signature) malformed("the call's structure is missing");
  in_spec_ = TreeSpec::parse(string_of(member(*signature, "in_spec")));
  out_spec_ = TreeSpec::parse(string_of(member(*signature, "out_spec")));
  if (in_spec_.children.size() != 2 || in_spec_.children[1].kind != TreeSpec::Kind::dict)
    malformed("the call's structure is no pair of positional and keyword arguments");
  if (const Json* names = find_member(*signature, "forward_arg_names")) {
    for (const Json& name : array_of(*names)) argument_names_.push_back(string_of(name));
  }
}

void ProgramReader::read_signature() {
  const Json::array_t& specs = array_of(member(member(module_json_, "signature"), "input_specs"));
  const auto name_of = [](const Json& spec) { return string_of(member(member(spec, "arg"), "name")); };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto [kind, spec] = variant_of(specs[i]);
    if (kind == "parameter") {
      states_.push_back({name_of(spec), string_of(member(spec, "parameter_name"))});
    } else if (kind == "buffer") {
      const Json* persistent = find_member(spec, "persistent");
      states_.push_back(
          {name_of(spec), string_of(member(spec, "buffer_name")), !persistent || boolean_of(*persistent)});
    } else if (kind == "tensor_constant") {
      states_.push_back({name_of(spec), string_of(member(spec, "tensor_constant_name")), false, true});
    } else if (kind == "user_input") {
      const std::string name = name_in(member(spec, "arg"));
      name.empty() ? add_literal("", member(spec, "arg")) : add_varying(name);
    } else if (kind == "constant_input") {
      add_literal(string_of(member(spec, "name")), member(spec, "value"));
    } else if (kind == "token") {  // an order of effects, which the order of nodes is here
      reader_->bind(name_of(spec), Argument());
    } else {
      throw Error(ErrorKind::unsupported, "takes a " + kind + " as an input, and only tensors and numbers are read");
    }
  }
}

void ProgramReader::add_literal(const std::string& name, const Json& value) {
  inputs_.push_back({{.literal = reader_->read_argument(value)}, name});
}

void ProgramReader::add_varying(const std::string& name) {
  Input input{{}, name};
  if (const TensorMeta* meta = reader_->meta_named(name)) input.tensor = *meta;
  const Json* numbers = find_member(member(module_json_, "graph"), "sym_int_values");
  const Json* number = numbers ? find_member(*numbers, name.c_str()) : nullptr;
  if (number) input.number = read_symbolic_size(*number);
  inputs_.push_back(std::move(input));
}

// ── Attributes ─────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramReader::add_attributes() {
  for (const auto& [path, stored] : weights_) {
    check_path(path);
    stored.is_parameter ? module_->set_parameter(path, stored.tensor) : module_->set_buffer(path, stored.tensor);
  }
  for (const State& state : states_) {
    check_path(state.attribute);
    if (weights_.count(state.attribute)) continue;
    const auto found = constants_.find(state.attribute);
    if (found == constants_.end()) malformed("the tensor '" + state.attribute + "' is missing");
    module_->set_buffer(state.attribute, found->second.tensor);
  }
}

void ProgramReader::add_states() {
  for (const State& state : states_) {
    if (reader_->uses(state.name) == 0) continue;
    Node& node = module_->graph().get_attr(Symbol(state.attribute));
    if (!state.persistent) node.meta().set(kStateNote, state.is_constant ? StateKind::constant : StateKind::not_saved);
    reader_->bind(state.name, node);
  }
}

// ── Inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramReader::add_inputs() {
  const TreeSpec& positional = in_spec_.children[0];
  const TreeSpec& keywords = in_spec_.children[1];
  if (in_spec_.num_leaves() != inputs_.size()) malformed("the call's structure has another number of inputs");
  named_ = argument_names_.size() == positional.children.size() + keywords.children.size();
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < positional.children.size(); ++i)
    add_input(named_ ? argument_names_[i] : "args_" + std::to_string(i), positional.children[i], leaf);
  for (std::size_t i = 0; i < keywords.children.size(); ++i) {
    const std::string name(keywords.keys[i].is_string() ? keywords.keys[i].as_string() : "kwargs");
    add_input(name, keywords.children[i], leaf);
    module_->graph().placeholders().back()->meta().set(kKeywordNote, true);
  }
  for (const Packed& each : packed_) {
    std::size_t first = each.first_leaf;
    take_apart(*each.node, *each.spec, first);
  }
}

void ProgramReader::add_input(const std::string& name, const TreeSpec& spec, std::size_t& leaf) {
  if (spec.is_leaf()) {
    const Input& input = inputs_[leaf++];
    Node& node = input.literal ? module_->graph().placeholder(name, *input.literal)
                               : module_->graph().placeholder(input.name.empty() ? name : input.name);
    node.meta().set(kInputNote, note_of(leaf - 1, 1));
    if (const std::string type = input.literal ? annotation_of(*input.literal) : ""; !type.empty())
      node.meta().set(meta_key::kType, type);
    return add_leaf(node, input);
  }
  const InputNote note = note_of(leaf, spec.num_leaves());
  std::size_t next = 0;
  const bool is_literal =
      std::ranges::all_of(note.leaves, [](const CallValue& each) { return each.literal.has_value(); });
  Node& node = is_literal ? module_->graph().placeholder(name, spec.pack([&] { return *note.leaves[next++].literal; }))
                          : module_->graph().placeholder(name);
  node.meta().set(kInputNote, note);
  node.meta().set(kTreeNote, spec);
  std::size_t first = leaf;
  const std::string type = annotation_of(spec, first);
  if (!type.empty()) node.meta().set(meta_key::kType, type);
  packed_.push_back({&node, &spec, leaf});
  leaf += spec.num_leaves();
}

// `Dict[str, List[Tensor]]`; empty for a container that holds values of several types, which TorchScript has no type
// for.
std::string ProgramReader::annotation_of(const TreeSpec& spec, std::size_t& leaf) const {
  if (spec.is_leaf()) {
    const Input& input = inputs_.at(leaf++);
    if (input.literal) return annotation_of(*input.literal);
    return input.number ? "int" : "Tensor";
  }
  std::vector<std::string> types;
  for (const TreeSpec& child : spec.children) types.push_back(annotation_of(child, leaf));
  const auto is_other = [&](const std::string& type) {
    return type.empty() || (spec.kind != TreeSpec::Kind::tuple && type != types[0]);
  };
  if (types.empty() || std::ranges::any_of(types, is_other)) return "";
  if (spec.kind == TreeSpec::Kind::list) return "List[" + types[0] + "]";
  if (spec.kind == TreeSpec::Kind::dict) {
    if (std::ranges::all_of(spec.keys, &Argument::is_string)) return "Dict[str, " + types[0] + "]";
    return std::ranges::all_of(spec.keys, &Argument::is_int) ? "Dict[int, " + types[0] + "]" : "";
  }
  std::string all;
  for (const std::string& type : types) all += (all.empty() ? "" : ", ") + type;
  return "Tuple[" + all + "]";
}

// What a value that is always the same is annotated as.
std::string ProgramReader::annotation_of(const Argument& literal) {
  if (literal.is_none()) return "Optional[Tensor]";
  const bool has_words = literal.is_bool() || literal.is_int() || literal.is_float() || literal.is_string();
  return has_words ? std::string(to_string(literal.kind())) : std::string();
}

// A getitem for each container and value in it; those that the program does not read go at the end.
void ProgramReader::take_apart(Node& whole, const TreeSpec& spec, std::size_t& leaf) {
  if (spec.is_leaf()) return add_leaf(whole, inputs_[leaf++]);
  std::size_t first = leaf;
  checked_.push_back({.node = &whole, .spec = &spec, .type = annotation_of(spec, first)});
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    const TreeSpec& child = spec.children[i];
    const Argument key = spec.kind == TreeSpec::Kind::dict ? spec.keys[i] : Argument(i);
    const std::string name = child.is_leaf() ? inputs_[leaf].name : "";
    take_apart(module_->graph().call_function("operator.getitem", {whole, key}, {}, name), child, leaf);
  }
}

void ProgramReader::add_leaf(Node& node, const Input& input) {
  if (!input.literal) reader_->bind(input.name, node);
  if (input.literal || input.tensor || input.number)
    checked_.push_back({.node = &node,
                        .leaf = static_cast<std::size_t>(&input - inputs_.data()),
                        .value = &input,
                        .type = input.literal ? annotation_of(*input.literal) : ""});
}

InputNote ProgramReader::note_of(std::size_t first_leaf, std::size_t count) {
  InputNote note{{}, ranges_};
  if (first_leaf + count > inputs_.size()) malformed("the call's structure has another number of inputs");
  for (std::size_t i = 0; i < count; ++i) note.leaves.push_back(inputs_[first_leaf + i]);
  return note;
}

// ── Results ────────────────────────────────────────────────────────────────────────────────────────────────────────

void ProgramReader::add_updates() {
  for (const Json& output : array_of(member(member(module_json_, "signature"), "output_specs"))) {
    const auto [kind, spec] = variant_of(output);
    if (kind == "user_output" || kind == "loss_output" || kind == "token") continue;
    const auto value = [&] { return string_of(member(member(spec, "arg"), "name")); };
    if (kind == "buffer_mutation") {
      updates_.push_back({value(), target_of_update(spec, "buffer_name", false)});
    } else if (kind == "parameter_mutation") {
      updates_.push_back({value(), target_of_update(spec, "parameter_name", false)});
    } else if (kind == "user_input_mutation") {
      updates_.push_back({value(), target_of_update(spec, "user_input_name", true)});
    } else {
      throw Error(ErrorKind::unsupported, "has a " + kind + " as an output; only programs that go forward are read");
    }
    reader_->add_update(updates_.back().value, updates_.back().target);
  }
}

Argument ProgramReader::target_of_update(const Json& output, const char* name, bool is_input) {
  const std::string& target = string_of(member(output, name));
  if (is_input) return reader_->lookup(target);
  if (std::ranges::find(states_, target, &State::attribute) == states_.end())
    malformed("the tensor '" + target + "' that the program writes is missing");
  for (Node* known : module_->graph().find_nodes(Op::get_attr, Symbol(target))) return *known;
  return module_->graph().get_attr(Symbol(target));
}

void ProgramReader::add_output() {
  const Json::array_t& specs = array_of(member(member(module_json_, "signature"), "output_specs"));
  const std::vector<Argument> values = reader_->outputs();
  if (values.size() != specs.size()) malformed("the signature has another number of outputs");
  std::vector<Argument> results;
  std::size_t update = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string& kind = variant_of(specs[i]).first;
    if (kind == "user_output" || kind == "loss_output") {
      results.push_back(values[i]);
    } else if (kind == "token") {
      continue;
    } else if (const Argument& target = updates_[update++].target; target != values[i]) {
      module_->graph().call_function("aten::copy_", {target, values[i]});
    }
  }
  if (out_spec_.num_leaves() != results.size()) malformed("the call's structure has another number of outputs");
  std::size_t next = 0;
  Node& output = module_->graph().output(out_spec_.pack([&] { return results[next++]; }));
  output.meta().set(kTreeNote, out_spec_);
}

// Export fixes the mode: the program trains when one of its calls does, and does not follow where there is such a call.
void ProgramReader::set_mode() {
  bool training = false;
  for (const Node& node : module_->graph().nodes()) {
    const std::string_view target = node.target().view();
    const std::size_t flag = target == "aten::batch_norm"            ? 5
                             : target.find("dropout") != target.npos ? 2
                                                                     : node.args().size();
    if (node.is(Op::call_function) && flag < node.args().size()) training |= node.arg(flag) == Argument(true);
  }
  module_->train(training);
  if (const Node* call = internal::find_mode_call(module_->graph())) {
    module_->fix_mode(std::string("it was exported in ") + (training ? "train()" : "eval()") + " mode (" +
                      call->target().str() + " at %" + call->name() + "); export it again in the mode that you want");
  }
}

}  // namespace fx::pt2
