// What no cut may part is in stage_units.h.
#include <fxgraph/rewriter/partition/pipeline_plan.h>

#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/ir/meta.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/rewriter/partition/stage_costs.h>
#include <fxgraph/rewriter/partition/stage_cuts.h>
#include <fxgraph/rewriter/partition/stage_units.h>
#include <fxgraph/rewriter/partition/stopwatch.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>

namespace fx {
namespace {

const void* storage_of(const torch::Tensor& tensor) {
  if (tensor.has_storage()) return tensor.storage().unsafeGetStorageImpl();
  return tensor.unsafeGetTensorImpl();
}

void refuse_random(const Graph& graph, const Effects& effects) {
  for (const Node& node : graph.nodes()) {
    if (!effects.of(node).random) continue;
    throw Error(ErrorKind::unsupported,
                "split_pipeline: %" + node.name() +
                    " draws random numbers, which each process does by itself: the results would not be those of one "
                    "process; allow_random says that this is meant",
                node.name());
  }
}

void refuse_returned_weights(const Graph& graph) {
  if (!graph.output_node()) return;
  graph.output_node()->for_each_input([](const Node& value) {
    if (!value.is(Op::get_attr)) return;
    throw Error(ErrorKind::unsupported,
                "split_pipeline: the program returns " + value.target().str() +
                    " itself, which no stage computes: return a clone of it, or read it from the stage that has it",
                value.name());
  });
}

class PipelineSplitter {
 public:
  PipelineSplitter(GraphModule& module, std::size_t stages, const std::vector<c10::IValue>& examples,
                   const PipelineOptions& options)
      : module_(module), graph_(module.graph()), options_(options), stages_(stages), effects_(module) {
    const std::int64_t batch = batch_of(examples);
    check_batch(batch, options.micro_batches);
    for (const c10::IValue& example : examples) examples_.push_back(fx::cut(example, batch, 0, options.micro_batches));
    const std::int64_t samples = part_of(batch, 0, options.micro_batches).second;
    if (options.micro_batches > 1) parts_ = static_cast<double>(batch) / static_cast<double>(samples);
  }

  PipelineStages run() {
    if (stages_ == 0) throw Error(ErrorKind::invalid_argument, "split_pipeline: there must be at least one stage");
    if (stages_ > 1 && !options_.allow_random) refuse_random(graph_, effects_);
    refuse_returned_weights(graph_);
    refuse_nothing();
    shapes_ = ShapeProp(module_).propagate(examples_);
    const bool measured = options_.cost == PipelineOptions::Cost::measured;
    seconds_ = measured ? measured_seconds(module_, examples_) : modelled_seconds(module_, shapes_);
    const NodeMap<std::uint32_t> stage = cut();
    const auto split = split_module(module_, [&](const Node& node) { return static_cast<std::int64_t>(stage[node]); },
                                    {.name = [](std::int64_t i) { return "stage_" + std::to_string(i); }});
    PipelineStages result;
    result.plan.wiring = print_graph(split->graph());
    result.plan.measured = measured;
    result.plan.micro_batches = options_.micro_batches;
    if (measured) result.plan.threads = threads();
    for (std::size_t i = 0; i < stages_; ++i) {
      auto part = std::dynamic_pointer_cast<GraphModule>(split->submodule("stage_" + std::to_string(i)));
      result.plan.stages.push_back(forecast(stage, static_cast<std::uint32_t>(i), *part));
      result.modules.push_back(std::move(part));
    }
    if (measured) measure_stages(*split, result.plan);
    result.plan.not_joined = why_not_joined();
    find_tied(result);
    return result;
  }

 private:
  void refuse_nothing() const {
    if (std::ranges::any_of(graph_.nodes(), [](const Node& node) { return node.is_callable(); })) return;
    throw Error(ErrorKind::invalid_argument,
                "split_pipeline: the program calls nothing, so there is nothing to put into a stage");
  }

  NodeMap<std::uint32_t> cut() {
    const OrderEdges order = effects_.order_edges();
    StageProblem problem;
    problem.graph = &graph_;
    problem.order = &order;
    problem.seconds = seconds_;
    problem.bytes = NodeMap<std::int64_t>(graph_, 0);
    problem.weights = NodeMap<std::vector<std::uint32_t>>(graph_);
    problem.unit = stage_units(effects_, shapes_);
    problem.stages = stages_;
    problem.slack = options_.slack;
    problem.max_weights = options_.max_weights;
    problem.max_memory = options_.max_memory;
    if (options_.max_memory) number_storages(problem);
    std::map<const void*, std::uint32_t> known;  // by storage; what is asked is membership alone
    for (const Node& node : graph_.nodes()) {
      problem.bytes[node] = node.is(Op::get_attr) ? 0 : bytes_of(node);
      if (!node.is_callable()) continue;
      std::vector<std::uint32_t>& reads = problem.weights[node];
      for_each_weight(node, [&](const torch::Tensor& tensor) {
        const auto [at, is_new] = known.emplace(storage_of(tensor), static_cast<std::uint32_t>(known.size()));
        if (is_new) problem.weight_bytes.push_back(static_cast<std::int64_t>(tensor.nbytes()));
        if (std::ranges::find(reads, at->second) == reads.end()) reads.push_back(at->second);
      });
    }
    return cut_stages(problem);
  }

  void number_storages(StageProblem& problem) const {
    problem.storages = NodeMap<std::vector<std::uint32_t>>(graph_);
    std::map<std::int64_t, std::uint32_t> known;  // by number of the storage in the shapes
    std::set<std::int64_t> weights;
    for (const Node* weight : graph_.find_nodes(Op::get_attr)) {
      for (const TensorInfo& tensor : shapes_[*weight].tensors) weights.insert(tensor.storage);
    }
    weights.erase(-1);
    for (const Node& node : graph_.nodes()) {
      if (!node.is_callable() && !node.is(Op::placeholder)) continue;
      for (const TensorInfo& tensor : shapes_[node].tensors) {
        if (weights.contains(tensor.storage)) continue;
        const auto next = static_cast<std::uint32_t>(problem.storage_bytes.size());
        const std::uint32_t number = tensor.storage < 0 ? next : known.emplace(tensor.storage, next).first->second;
        if (number == next) problem.storage_bytes.push_back(tensor.held_bytes());
        std::vector<std::uint32_t>& all = problem.storages[node];
        if (std::ranges::find(all, number) == all.end()) all.push_back(number);
      }
    }
  }

  /// The cut was made by the times of single calls; what the plan says is how long the stages take as they will run.
  void measure_stages(GraphModule& split, PipelinePlan& plan) const {
    const NodeMap<double> seconds = measured_seconds(split, examples_);
    for (const Node& call : split.graph().nodes()) {
      for (std::size_t i = 0; i < stages_; ++i) {
        if (call.is(Op::call_module) && call.target().view() == "stage_" + std::to_string(i))
          plan.stages[i].seconds = seconds[call] * parts_;
      }
    }
    plan.stages.back().seconds += joining_seconds(split);
  }

  /// Of the last stage: it makes one result of those of the micro-batches.
  double joining_seconds(GraphModule& split) const {
    const at::NoGradGuard inference;
    const auto parts = static_cast<std::size_t>(parts_);
    if (parts < 2) return 0;
    const c10::IValue result = split.clone_graph_module()->run(copies_of(examples_));
    std::vector<c10::IValue> results;
    for (std::size_t i = 0; i < parts; ++i) results.push_back(copy_of(result));
    const std::int64_t batch = batch_of(examples_) * static_cast<std::int64_t>(parts);
    double seconds = 0;
    try {
      const ProcessorClock clock(seconds);  // copying takes one thread, or hardly less than one
      join(results, batch);
      results.clear();
    } catch (const Error&) {  // results that are no batch: running says so
    }
    return seconds;
  }

  /// The shapes at half the batch, or twice a single sample, beside those at the whole.
  std::string why_not_joined() const {
    const std::int64_t batch = batch_of(examples_);
    if (batch < 1 || !graph_.output_node()) return {};
    std::vector<c10::IValue> other;
    for (const c10::IValue& example : examples_) {
      const bool doubled = batch == 1 && example.isTensor() && batch_of(example) == 1;
      other.push_back(doubled ? c10::IValue(at::cat({example.toTensor(), example.toTensor()}))
                              : fx::cut(example, batch, 0, batch == 1 ? 1 : 2));
    }
    const std::int64_t size = batch_of(other);
    try {
      ShapeProp prop(module_);
      const Shapes& shapes = prop.propagate(other);
      std::string why;
      graph_.output_node()->for_each_input([&](const Node& value) {
        const TensorInfos &whole = shapes_[value].tensors, &part = shapes[value].tensors;
        for (std::size_t i = 0; i < whole.size() && why.empty(); ++i) {
          const std::vector<std::int64_t>& sizes = whole[i].sizes;
          if (sizes.empty()) continue;  // to join them is refused by itself
          std::vector<std::int64_t> expected = sizes;
          expected[0] = sizes[0] * size / batch;
          if (sizes[0] * size % batch != 0 || i >= part.size() || part[i].sizes != expected)
            why = "the first dimension of the result %" + value.name() + ", " + to_string(whole[i]) +
                  ", is not the batch";
        }
      });
      return why;
    } catch (const std::exception&) {
      return {};  // other sizes do not run; then they are refused when they come
    }
  }

  std::int64_t of_all_parts(std::int64_t bytes) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * parts_ + 0.5);
  }

  // What is no tensor is a number or two.
  std::int64_t bytes_of(const Node& node) const { return std::max<std::int64_t>(shapes_[node].bytes(), 8); }

  template <typename Visit>
  void for_each_weight(const Node& call, Visit&& visit) const {
    call.for_each_input([&](const Node& input) {
      if (!input.is(Op::get_attr)) return;
      const torch::Tensor tensor = module_.find_attribute(input.target().str());
      if (tensor.defined()) visit(tensor);
    });
    if (!call.is(Op::call_module)) return;
    const auto called = module_.find_submodule(call.target().str());
    if (!called) return;
    for (const torch::Tensor& tensor : called->parameters()) visit(tensor);
    for (const torch::Tensor& tensor : called->buffers()) visit(tensor);
  }

  StageForecast forecast(const NodeMap<std::uint32_t>& stage, std::uint32_t at, const GraphModule& part) const {
    StageForecast result;
    std::set<const void*> weights;
    std::map<std::size_t, std::int64_t> sends;
    Shapes shapes(part.graph());
    std::map<std::string, const Node*> by_name;
    for (const Node& node : graph_.nodes()) {
      if (!node.is(Op::get_attr) && !node.is(Op::output)) {
        std::set<std::uint32_t> to;
        const std::uint32_t from = node.is_callable() ? stage[node] : 0;
        for (const Node& user : node.users())
          to.insert(user.is_callable() ? stage[user] : static_cast<std::uint32_t>(stages_ - 1));
        to.erase(from);
        for (const std::uint32_t other : from == at ? to : std::set<std::uint32_t>())
          sends[other] += of_all_parts(bytes_of(node));
      }
      by_name[node.name()] = &node;
      if (!node.is_callable() || stage[node] != at) continue;
      ++result.nodes;
      result.seconds += seconds_[node] * parts_;
      for_each_weight(node, [&](const torch::Tensor& tensor) {
        if (weights.insert(storage_of(tensor)).second)
          result.weight_bytes += static_cast<std::int64_t>(tensor.nbytes());
      });
    }
    for (const auto& [to, bytes] : sends) {
      result.sends.emplace_back(to, bytes);
      result.sent_bytes += bytes;
    }
    for (const Node& node : part.graph().nodes()) {
      if (const auto whole = by_name.find(node.name()); whole != by_name.end()) shapes[node] = shapes_[*whole->second];
    }
    result.peak_bytes = Liveness(part.graph(), shapes, {.count_inputs = true}).peak().bytes;
    return result;
  }

  static void find_tied(PipelineStages& stages) {
    std::map<const void*, std::size_t> index;
    std::vector<TiedParameter> all;
    for (std::size_t i = 0; i < stages.modules.size(); ++i) {
      for (const auto& parameter : stages.modules[i]->named_parameters()) {
        const auto [at, is_new] = index.emplace(storage_of(parameter.value()), all.size());
        if (is_new) all.emplace_back();
        std::vector<std::pair<std::size_t, std::string>>& places = all[at->second].places;
        if (places.empty() || places.back().first != i) places.emplace_back(i, parameter.key());
      }
    }
    for (TiedParameter& tied : all) {
      if (tied.places.size() > 1) stages.plan.tied.push_back(std::move(tied));
    }
  }

  GraphModule& module_;
  const Graph& graph_;
  std::vector<c10::IValue> examples_;  // a micro-batch of them
  const PipelineOptions& options_;
  std::size_t stages_;
  double parts_ = 1;  // of which the whole has so many
  Effects effects_;
  Shapes shapes_;
  NodeMap<double> seconds_;
};

}  // namespace

PipelineStages split_pipeline(GraphModule& module, std::size_t stages, const std::vector<c10::IValue>& examples,
                              const PipelineOptions& options) {
  return PipelineSplitter(module, stages, examples, options).run();
}

}  // namespace fx
