#include "rewriter/rules/fusion/merge_linears.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "rewriter/rules/weights.h"

namespace fx::rules {

namespace {

class LinearMerger {
 public:
  explicit LinearMerger(GraphModule& module) : module_(module), graph_(module.graph()), weights_(module) {}

  Outcome run() {
    // Nodes come and go while layers are merged.
    std::vector<Node*> inputs;
    for (Node& node : graph_.nodes()) inputs.push_back(&node);
    for (Node* input : inputs) {
      if (!input->is_erased()) merge_users(*input);
    }
    return std::move(outcome_);
  }

 private:
  /// Groups the linear layers that take `input` by type, in graph order.
  void merge_users(Node& input) {
    std::vector<std::vector<OperationSite>> groups;
    std::vector<Node*> users;
    for (Node& user : input.users()) users.push_back(&user);
    std::sort(users.begin(), users.end(), [](const Node* a, const Node* b) { return a->is_before(*b); });
    for (Node* user : users) {
      auto site = OperationSite::find(module_, *user, is_linear);
      if (!site || site->input() != &input || !is_mergeable(*site)) continue;
      bool placed = false;
      for (auto& group : groups) {
        if (placed || !go_together(group.front(), *site)) continue;
        group.push_back(*site);
        placed = true;
      }
      if (!placed) groups.push_back({*site});
    }
    for (const auto& group : groups) {
      if (group.size() > 1) merge(input, group);
    }
  }

  bool is_mergeable(const OperationSite& site) {
    if (std::string reason = weights_.not_constant(site, {"weight", "bias"}); !reason.empty()) {
      outcome_.refused.push_back({{}, site.node().name(), reason});
      return false;
    }
    const at::Tensor weight = site.tensor("weight"), bias = site.tensor("bias");
    return weight.defined() && weight.dim() == 2 && weight.is_floating_point() &&
           (bias.defined() ? bias.dim() == 1 : site.is_none("bias"));
  }

  static bool go_together(const OperationSite& a, const OperationSite& b) {
    const at::Tensor x = a.tensor("weight"), y = b.tensor("weight");
    return x.scalar_type() == y.scalar_type() && x.device() == y.device() && x.size(1) == y.size(1);
  }

  void merge(Node& input, const std::vector<OperationSite>& group) {
    std::vector<at::Tensor> weights, biases;
    std::vector<Argument> rows;
    bool any_bias = false;
    for (const OperationSite& site : group) any_bias |= site.tensor("bias").defined();
    for (const OperationSite& site : group) {
      const at::Tensor weight = site.tensor("weight").detach(), bias = site.tensor("bias");
      weights.push_back(weight);
      rows.emplace_back(weight.size(0));
      if (any_bias) biases.push_back(bias.defined() ? bias.detach() : at::zeros({weight.size(0)}, weight.options()));
    }
    const std::string stem = module_.fresh_path("_merged_" + group.front().node().name());
    module_.set_parameter(stem + "_weight", at::cat(weights));
    if (any_bias) module_.set_parameter(stem + "_bias", at::cat(biases));

    const auto scope = graph_.inserting_before(group.front().node());
    std::vector<Argument> args = {input, graph_.get_attr(stem + "_weight")};
    if (any_bias) args.emplace_back(graph_.get_attr(stem + "_bias"));
    Node& product = graph_.call_function("aten::linear", args);
    Node& parts =
        graph_.call_function("aten::split_with_sizes", (std::vector<Argument>{product, Argument::list(rows), -1}));
    std::string origin(kMergeLinears.name);
    std::vector<Node*> pieces;
    for (std::size_t i = 0; i < group.size(); ++i) {
      pieces.push_back(
          &graph_.call_function("operator.getitem", (std::vector<Argument>{parts, static_cast<std::int64_t>(i)})));
      origin += (i ? ", " : ": ") + group[i].node().name();
    }
    for (Node* node : {&product, &parts}) node->meta().set(meta_key::kProvenance, origin);
    for (std::size_t i = 0; i < group.size(); ++i) {
      Node& old = group[i].node();
      const std::vector<Node*> read = old.all_input_nodes();
      old.replace_all_uses_with(*pieces[i]);
      graph_.erase_node(old);
      weights_.erase_unread(read);
    }
    outcome_.applied += group.size();
  }

  GraphModule& module_;
  Graph& graph_;
  Weights weights_;
  Outcome outcome_;
};

Outcome merge_linears(Program& program) {
  const at::NoGradGuard no_grad;
  return LinearMerger(program.module).run();
}

}  // namespace

const ProgramRule kMergeLinears = {
    .name = "merge-linears",
    .summary = "Linear layers on one input (query, key, value) become one linear, split afterwards",
    .preconditions =
        "weights are attributes that nothing writes, of one type, device and number of inputs; nobody writes to "
        "the results, which come to share storage",
    .group = Group::fusion,
    .inference = false,
    .promise = Promise::reassociates,
    .pass = merge_linears,
};

}  // namespace fx::rules
