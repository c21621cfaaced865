#include <fxgraph/report/report.h>

#include <algorithm>
#include <map>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/memory_plan.h>
#include <fxgraph/analysis/regions.h>
#include <fxgraph/analysis/schedule.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/ops/call.h>

namespace fx {

namespace {

/// Makes one report: the analyses that several parts need are made once.
class ReportMaker {
 public:
  ReportMaker(const Graph& graph, const ReportInputs& inputs, const ReportOptions& options)
      : graph_(graph), inputs_(inputs), options_(options), effects_(graph, {.modules = inputs.modules}) {
    if (inputs.shapes && (options.cost || options.uses)) cost_.emplace(graph, *inputs.shapes, inputs.modules);
  }

  Report make() {
    Report report;
    report.name = inputs_.name;
    count_nodes(report);
    if (options_.dead_code) report.dead_code = dead_code();
    if (options_.liveness) report.liveness = liveness();
    if (options_.uses) report.uses = uses();
    if (options_.dominance) report.dominance = dominance();
    if (options_.cost && cost_) report.cost = cost();
    return report;
  }

 private:
  template <typename T>
  void cut(std::vector<T>& rows) const {
    if (rows.size() > options_.max_rows) rows.resize(options_.max_rows);
  }

  void count_nodes(Report& report) const {
    report.nodes = graph_.size();
    std::map<std::string_view, std::size_t> counts;
    for (const Node& node : graph_.nodes()) {
      switch (node.op()) {
        case Op::placeholder: ++report.inputs; break;
        case Op::get_attr: ++report.attributes; break;
        case Op::output: break;
        case Op::call_module: ++report.modules; break;
        default: ++counts[node.target().view()];
      }
    }
    for (const auto& [target, count] : counts) report.operators.push_back({std::string(target), count});
    std::stable_sort(report.operators.begin(), report.operators.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    cut(report.operators);
  }

  Report::DeadCodePart dead_code() const {
    using Kind = DeadFinding::Kind;
    const DeadCode dead(graph_, {.effects = &effects_, .shapes = inputs_.shapes, .attributes = inputs_.attributes});
    Report::DeadCodePart part;
    std::size_t* const counts[] = {&part.dead_nodes, &part.dead_stores,       &part.unused_outputs, &part.unused_inputs,
                                   &part.no_ops,     &part.unused_attributes, &part.unused_modules};
    std::size_t shown[std::size(counts)] = {};
    for (const DeadFinding& finding : dead.findings()) {
      const auto kind = static_cast<std::size_t>(finding.kind);
      ++*counts[kind];
      if (finding.kind == Kind::unused_attribute || finding.kind == Kind::unused_module)
        part.unused_bytes += finding.bytes;
      if (shown[kind]++ >= options_.max_rows) continue;
      part.findings.push_back({std::string(to_string(finding.kind)), finding.node ? finding.node->name() : finding.path,
                               dead.explain(finding), finding.bytes});
    }
    return part;
  }

  Report::LivenessPart liveness() const {
    const LivenessOptions counted{.count_inputs = options_.count_inputs,
                                  .count_attributes = options_.count_attributes,
                                  .effects = inputs_.modules.effects ? &effects_ : nullptr,
                                  .modules = &inputs_.modules};
    const Liveness live = inputs_.shapes ? Liveness(graph_, *inputs_.shapes, counted) : Liveness(graph_);
    Report::LivenessPart part;
    part.peak_values = live.peak_live();
    if (const Node* node = live.peak_live_node()) part.peak_values_at = node->name();
    part.has_bytes = inputs_.shapes && live.peak().node;
    if (part.has_bytes) add_bytes(part, live);
    return part;
  }

  void add_bytes(Report::LivenessPart& part, const Liveness& live) const {
    part.peak_bytes = part.best_order_bytes = live.peak().bytes;
    part.peak_bytes_at = live.peak().node->name();
    part.inside_bytes = live.inside(*live.peak().node);
    part.unknown = live.unknown();
    for (const Storage& storage : live.storages()) {
      if (!storage.counted) continue;
      ++part.storages;
      part.storage_bytes += storage.bytes;
    }
    for (const Storage* storage : live.storages_at(*live.peak().node)) {
      if (part.at_peak.size() == options_.max_rows) break;
      const TensorInfo* tensor = (*inputs_.shapes)[*storage->base].tensor();
      part.at_peak.push_back({storage->base->name(), tensor ? to_string(*tensor) : std::string(), storage->bytes,
                              live.node_at(storage->interval.begin).name(),
                              live.node_at(storage->interval.end).name()});
    }
    const MemoryPlan plan = plan_memory(live);
    part.plan_bytes = plan.bytes;
    part.plan_lower_bound = plan.lower_bound;
    if (options_.lower_peak) part.best_order_bytes = lower_peak(live, effects_).peak_after;
  }

  Report::UsesPart uses() const {
    Report::UsesPart part;
    std::vector<const Node*> by_users;
    for (const Node& node : graph_.nodes()) {
      node.for_each_input([&](Node&) { ++part.uses; });
      if (node.is(Op::output)) continue;
      ++part.values;
      part.single_use += node.num_users() == 1;
      if (node.num_users() > 1) by_users.push_back(&node);
    }
    std::stable_sort(by_users.begin(), by_users.end(),
                     [](const Node* a, const Node* b) { return a->num_users() > b->num_users(); });
    cut(by_users);
    for (const Node* node : by_users) part.most_used.push_back({node->name(), node->num_users()});

    part.critical_path_is_timed = cost_ && inputs_.machine;
    const CriticalPath longest = critical_path(graph_);
    part.depth = static_cast<std::uint32_t>(longest.nodes.size());
    const auto seconds = [&](const Node& node) { return roofline_seconds(cost_->of(node), *inputs_.machine); };
    const CriticalPath path = part.critical_path_is_timed ? critical_path(graph_, seconds) : longest;
    if (part.critical_path_is_timed) part.critical_seconds = path.length;
    for (const Node* node : path.nodes) {
      if (part.critical_path.size() == options_.max_rows) break;
      part.critical_path.push_back(node->name());
    }
    return part;
  }

  Report::DominancePart dominance() const {
    Report::DominancePart part;
    const Dominators dominators(graph_);
    const PostDominators post_dominators(graph_);
    for (const Node& node : graph_.nodes()) part.depth = std::max(part.depth, dominators.depth(node));
    part.regions = single_entry_single_exit_regions(dominators, post_dominators).size();
    // Of the inputs that merely hold parameters none is at the start of the longest path.
    const std::vector<Node*> longest = critical_path(graph_).nodes;
    const Node* node = longest.empty() ? nullptr : longest.front();
    for (; node && !node->is(Op::output) && part.bottlenecks.size() < options_.max_rows;
         node = post_dominators.immediate(*node)) {
      part.bottlenecks.push_back(node->name());
    }
    auto groups = fusion_groups(graph_, [&](const Node& node) {
      const Call call = call_of(node);
      return call && call.schema().traits.pointwise && !effects_.impure(node);
    });
    part.fusion_groups = groups.size();
    for (const auto& group : groups) part.fused_nodes += group.size();
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    cut(groups);
    for (const auto& group : groups) {
      auto& names = part.largest_groups.emplace_back();
      for (const Node* node : group) {
        if (names.size() < options_.max_rows) names.push_back(node->name());
      }
    }
    return part;
  }

  Report::CostRow row(const NodeCost& cost) const {
    Report::CostRow row;
    row.macs = cost.macs;
    row.flops = cost.flops;
    row.intensity = cost.intensity();
    row.bytes = cost.bytes();
    row.parameter_bytes = cost.parameter_bytes;
    if (inputs_.machine) {
      row.seconds = roofline_seconds(cost, *inputs_.machine);
      row.memory_bound = is_memory_bound(cost, *inputs_.machine);
    }
    return row;
  }

  /// To the module at `path` and all that it lies in.
  static void add_to_modules(std::map<std::string, std::vector<double>, std::less<>>& sums, std::string path,
                             const std::vector<double>& runs) {
    while (true) {
      add_runs(sums[path], runs);
      if (path.empty()) return;
      const std::size_t dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
  }

  Report::CostPart cost() const {
    Report::CostPart part;
    part.total = row(cost_->total());
    part.unknown = cost_->unknown();
    if (inputs_.machine) {
      part.machine = inputs_.machine->name;
      part.total.seconds = 0;  // one node after the other, not the whole at once
    }
    std::vector<const Node*> nodes;
    NodeMap<MeasuredTime> measured(graph_, MeasuredTime());
    std::map<std::string, std::vector<double>, std::less<>> of_modules;  // by path; "": the whole
    for (const Node& node : graph_.nodes()) {
      if (inputs_.times) {
        const std::vector<double>& runs = (*inputs_.times)[node];
        measured[node] = summarize(runs);
        add_to_modules(of_modules, module_path(node), runs);
      }
      if (inputs_.machine) part.total.seconds += roofline_seconds(cost_->of(node), *inputs_.machine);
      if (cost_->of(node).flops > 0 || cost_->of(node).bytes() > 0) nodes.push_back(&node);
    }
    if (inputs_.times) part.total.measured = summarize(of_modules[""]);
    std::stable_sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) {
      const NodeCost &x = cost_->of(*a), &y = cost_->of(*b);
      if (inputs_.times) return measured[*a].seconds > measured[*b].seconds;
      if (inputs_.machine) return roofline_seconds(x, *inputs_.machine) > roofline_seconds(y, *inputs_.machine);
      return x.flops != y.flops ? x.flops > y.flops : x.bytes() > y.bytes();
    });
    cut(nodes);
    for (const Node* node : nodes) {
      part.nodes.push_back(row(cost_->of(*node)));
      part.nodes.back().name = node->name();
      part.nodes.back().target = node->target().str();
      if (inputs_.times) part.nodes.back().measured = measured[*node];
    }
    for (std::size_t i = 1; i < cost_->modules().size() && part.modules.size() < options_.max_rows; ++i) {
      const ModuleCost& module = cost_->modules()[i];
      part.modules.push_back(row(module.cost));
      part.modules.back().name = module.path;
      part.modules.back().depth = module.depth;
      if (inputs_.times) part.modules.back().measured = summarize(of_modules[module.path]);
    }
    return part;
  }

  const Graph& graph_;
  const ReportInputs& inputs_;
  const ReportOptions& options_;
  const Effects effects_;
  std::optional<Cost> cost_;
};

}  // namespace

std::vector<const Report::Measured*> Report::BaselinePart::past_limit() const {
  std::vector<const Measured*> found;
  for (const Measured& measure : measures) {
    if (measure.is_worse(limit)) found.push_back(&measure);
  }
  return found;
}

Report make_report(const Graph& graph, const ReportInputs& inputs, const ReportOptions& options) {
  return ReportMaker(graph, inputs, options).make();
}

}  // namespace fx
