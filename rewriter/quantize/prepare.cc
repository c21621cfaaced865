// prepare: the flat program, marked, with an observer after each value that gets a range.
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/quantize/quantize.h>

#include <ATen/core/grad_mode.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/equalize.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/record.h>
#include <fxgraph/rewriter/quantize/training.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>

namespace fx {

using namespace quantize;

namespace {

/// A configuration that names what is not there is a mistake.
void check_names(const QuantConfig& config, const GraphModule& module, const Graph& flat) {
  for (const auto& [name, settings] : config.nodes) {
    if (!flat.find(name))
      throw Error(ErrorKind::not_found,
                  "the configuration names the node '" + name + "', which the program has not got");
  }
  for (const auto& [type, settings] : config.types) {
    if (!is_known_type(type))
      throw Error(ErrorKind::not_found, "the configuration names the type '" + type +
                                            "', which cannot be quantized: write a type like Conv2d or aten::add");
  }
  for (const auto& [expression, settings] : config.paths) {
    const RE2 re(expression, RE2::Quiet);
    if (!re.ok())
      throw Error(ErrorKind::syntax,
                  "the configuration's path '" + expression + "' is no regular expression: " + re.error());
    bool found = false;
    for (const auto& item : module.named_modules("", /*include_self=*/false)) found |= RE2::FullMatch(item.key(), re);
    if (!found)
      throw Error(ErrorKind::not_found,
                  "the configuration's path '" + expression + "' fits no module of the program; see fxgraph show");
  }
}

class Preparation {
 public:
  Preparation(std::shared_ptr<GraphModule> flat, const Shapes& shapes, const QuantConfig& config,
              const Finiteness& finiteness, bool training)
      : flat_(std::move(flat)),
        graph_(flat_->graph()),
        annotation_(*flat_, shapes, config, finiteness),
        record_(std::make_shared<QuantRecord>()) {
    record_->config = config;
    record_->training = training;
    record_->not_finite = finiteness.not_finite;
    for (const Node& node : graph_.nodes()) record_->values.emplace(node.name(), shapes[node]);
  }

  /// `unfolded`: for training, the program before batch normalisation was folded.
  std::shared_ptr<GraphModule> run(const GraphModule* unfolded) {
    register_observer_types();
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes()) nodes.push_back(&node);
    for (Node* node : nodes) {
      const int range = annotation_.range_of(*node);
      if (range != Annotation::kNone && record_->values[node->name()].tensor()) observe(*node, range);
    }
    if (annotation_.num_ranges() && !record_->training) check_samples();
    note_state();
    if (unfolded) train_layers(*flat_, *unfolded, annotation_, *record_);
    flat_->add_submodule(kRecordPath, record_);
    flat_->train(record_->training);
    graph_.lint();
    return flat_;
  }

 private:
  // A sample that is not finite is a mistake; what the program makes of finite ones is not.
  void check_samples() {
    for (Node* input : graph_.placeholders()) {
      const TensorInfo* tensor = record_->values[input->name()].tensor();
      if (!tensor || !at::isFloatingType(to_scalar_type(tensor->dtype))) continue;
      const std::string path = flat_->fresh_path("sample_check");
      flat_->add_submodule(path,
                           std::make_shared<SampleCheck>(input->name(), !record_->observers.contains(input->name())));
      Node* place = input->next();
      while (place && place->is(Op::placeholder)) place = place->next();
      const auto scope = graph_.inserting_before(*place);
      graph_.call_module(path, {input});
    }
  }

  // Calibration runs the program, and must not change what it starts from.
  void note_state() {
    rules::ProgramEffects written(*flat_);
    std::set<std::string> seen;
    for (const Node& node : graph_.nodes()) {
      const std::string path = node.target().str();
      if (!node.is(Op::get_attr) || written.not_constant(path).empty() || !seen.insert(path).second) continue;
      const at::Tensor tensor = flat_->attribute(path);
      record_->state.push_back({path, tensor.detach().clone(), tensor.strides().vec(), tensor.requires_grad()});
    }
  }

  // Values of one range share their observer, as in torch.ao.
  std::string observer_path(int range) {
    std::string& path = paths_[range];
    if (!path.empty()) return path;
    const Node& root = annotation_.root(range);
    path = flat_->fresh_path("activation_post_process_" + std::to_string(paths_.size() - 1));
    const Row* row = annotation_.is_made_quantized(root) ? annotation_.of(annotation_.maker(root)).row : nullptr;
    const bool fixed = row && row->role == Role::fixed;
    std::shared_ptr<torch::nn::Module> module;
    if (!record_->training) {
      module = std::make_shared<Observer>(annotation_.quantizer(range), root.name());
    } else if (fixed) {
      module = std::make_shared<FakeQuantize>(fixed_parameters(row->scale, row->zero_point), root.name());
    } else {
      module = std::make_shared<FakeQuantize>(annotation_.quantizer(range), root.name());
    }
    flat_->add_submodule(path, std::move(module));
    return path;
  }

  void observe(Node& value, int range) {
    const std::string path = observer_path(range);
    record_->observers[value.name()] = path;
    const bool everyone = annotation_.is_made_quantized(value);
    std::vector<Node*> readers;
    for (Node& user : value.users()) {
      if (everyone || annotation_.reads_quantized(user, value)) readers.push_back(&user);
    }
    Node* place = value.next();
    while (place && place->is(Op::placeholder)) place = place->next();
    const auto scope = graph_.inserting_before(*place);
    Node& observed = graph_.call_module(path, {value});
    for (Node* reader : readers) reader->replace_input_with(value, observed);
  }

  std::shared_ptr<GraphModule> flat_;
  Graph& graph_;
  Annotation annotation_;
  std::shared_ptr<QuantRecord> record_;
  std::map<int, std::string> paths_;
};

bool is_finite(const Value& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return !tensor.defined() || !tensor.is_floating_point() || tensor.isfinite().all().item<bool>();
  }
  if (value.isTuple()) return std::ranges::all_of(value.toTupleRef().elements(), is_finite);
  if (!value.isList()) return true;
  for (const Value& each : value.toListRef()) {
    if (!is_finite(each)) return false;
  }
  return true;
}

/// Notes of every value whether it is finite.
class FinitenessRun : public Interpreter {
 public:
  using Interpreter::Interpreter;
  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    const bool finite = is_finite(value);
    if (node.is(Op::placeholder)) all_inputs_finite_ &= finite;
    (finite ? found_.finite : found_.not_finite).insert(node.name());
    return value;
  }
  /// Nothing when the example is not finite itself: samples will say so.
  Finiteness result() const { return all_inputs_finite_ ? found_ : Finiteness(); }

 private:
  bool all_inputs_finite_ = true;
  Finiteness found_;
};

std::shared_ptr<GraphModule> prepare(const GraphModule& module, const QuantConfig& config,
                                     const std::vector<c10::IValue>& inputs, bool training) {
  const std::vector<c10::IValue> example = copies_of(inputs);  // the program may write to it
  std::shared_ptr<GraphModule> flat, unfolded;
  Shapes shapes;
  Finiteness finiteness;
  {
    const at::NoGradGuard no_grad;
    flat = flat_program(module, example);
    if (training) unfolded = flat_program(module, example, /*fold=*/false);
    check_names(config, module, flat->graph());
    if (config.equalize && !training) equalize(*flat);
    {
      const StateKeeper keeper(*flat);
      FinitenessRun run(*flat);
      run.run(copies_of(example));
      finiteness = run.result();
    }
    const StateKeeper keeper(*flat);
    shapes = propagate_shapes(*flat, example);
  }
  return Preparation(std::move(flat), shapes, config, finiteness, training).run(unfolded.get());
}

}  // namespace

std::shared_ptr<GraphModule> prepare(const GraphModule& module, const QuantConfig& config,
                                     const std::vector<c10::IValue>& example) {
  return prepare(module, config, example, /*training=*/false);
}

std::shared_ptr<GraphModule> prepare_qat(const GraphModule& module, const QuantConfig& config,
                                         const std::vector<c10::IValue>& example) {
  return prepare(module, config, example, /*training=*/true);
}

}  // namespace fx
