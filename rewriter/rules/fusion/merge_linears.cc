// Linear layers on one input become one, split afterwards: the projections of an attention to query, key and value.
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/rules.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/layout_checks.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules::fusion_merge_linears {

namespace {

bool is_view(const Node& node) {
  const Call call = call_of(node);
  return call && call.schema().target == "aten::view";
}

// The result of a merged layer is a column of a wider matrix: its rows do not follow one another. What asks for the
// storage of a value, not for its elements, would fail on it or see others' elements.
bool reads_storage(const Node& node) {
  const Call call = call_of(node);
  return call && call.schema().target != "aten::view" && internal::needs_strides(call.schema());
}

/// `view` wants storage that it can look at otherwise; `reshape` copies where it cannot.
void make_reshape(Rewriter& rewriter, Node& view) {
  spell_as_operator(view);
  std::vector<NamedArgument> kwargs = view.kwargs().to_vector();
  for (auto& [name, value] : kwargs) name = name == "size" ? Symbol("shape") : name;
  const std::vector<Argument> args(view.args().begin(), view.args().end());
  rewriter.set_target(view, "aten::reshape");
  rewriter.set_args_kwargs(view, args, kwargs);
}

class LinearMerger {
 public:
  explicit LinearMerger(RuleContext& program)
      : module_(program.module), rule_(program.rule.name), rewriter_(program.rewriter), weights_(program) {}

  PassResult run() {
    // Nodes come and go while layers are merged.
    std::vector<Node*> inputs;
    for (Node& node : module_.graph().nodes()) inputs.push_back(&node);
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
    std::sort(users.begin(), users.end(), GraphOrder{});
    for (Node* user : users) {
      auto site = OperationSite::find(module_, *user, is_linear);
      if (!site || site->input() != &input || !is_mergeable(*site)) continue;
      bool placed = false;
      for (auto& group : groups) {
        if (placed || !go_together(group.front(), *site) || is_written_between(input, group.front(), *site)) continue;
        group.push_back(*site);
        placed = true;
      }
      if (!placed) groups.push_back({*site});
    }
    for (auto& group : groups) {
      if (group.size() < 2) continue;
      views_.clear();
      std::erase_if(group, [&](const OperationSite& site) { return !may_be_a_column(site.node()); });
      if (group.size() > 1) merge(input, group);
    }
  }

  /// Whether `result` may become a part of a wider matrix. Notes what looks at it by `view`.
  bool may_be_a_column(Node& result) {
    std::string reason;
    if (weights_.effects().is_written(result)) reason = "something writes to its result";
    std::vector<Node*> views;
    std::unordered_set<const Node*> seen = {&result};  // membership only
    std::vector<Node*> open = {&result};
    while (!open.empty() && reason.empty()) {
      Node& value = *open.back();
      open.pop_back();
      for (Node& user : value.users()) {
        const NodeEffects effects = weights_.effects().of(user);
        if (user.is(Op::output)) reason = "it is returned, and the caller may ask for its storage";
        if (reads_storage(user)) reason = user.name() + " reads the storage of its result";
        if (effects.unknown) reason = "nothing is known of " + user.name() + ", which takes its result";
        if (!weights_.effects().may_alias_input(user, value) || !seen.insert(&user).second) continue;
        if (is_view(user)) views.push_back(&user);
        open.push_back(&user);
      }
    }
    if (!reason.empty()) {
      outcome_.refused.push_back({{}, result.name(), reason});
      return false;
    }
    views_.insert(views_.end(), views.begin(), views.end());
    return true;
  }

  /// The merged layer reads its input where the first of its parts did.
  bool is_written_between(const Node& input, const OperationSite& first, const OperationSite& last) {
    return weights_.effects().write_between(input, first.node(), last.node()) != nullptr;
  }

  bool is_mergeable(const OperationSite& site) {
    if (std::string reason = weights_.not_constant(site, {"weight", "bias"}); !reason.empty()) {
      outcome_.refused.push_back({{}, site.node().name(), reason});
      return false;
    }
    const at::Tensor weight = site.tensor("weight"), bias = site.tensor("bias");
    // A bias of one number, which linear takes for all outputs, has no place in one of a number for each.
    return weight.defined() && weight.dim() == 2 && weight.is_floating_point() &&
           (bias.defined() ? bias.dim() == 1 && bias.size(0) == weight.size(0) : site.is_none("bias"));
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
    for (Node* view : views_) make_reshape(rewriter_, *view);
    const std::string stem = module_.fresh_path("_merged_" + group.front().node().name());
    module_.set_parameter(stem + "_weight", at::cat(weights));
    if (any_bias) module_.set_parameter(stem + "_bias", at::cat(biases));

    const auto scope = rewriter_.inserting_before(group.front().node());
    std::vector<Argument> args = {input, rewriter_.get_attr(stem + "_weight")};
    if (any_bias) args.emplace_back(rewriter_.get_attr(stem + "_bias"));
    Node& product = rewriter_.call_function("aten::linear", args);
    Node& parts =
        rewriter_.call_function("aten::split_with_sizes", (std::vector<Argument>{product, Argument::list(rows), -1}));
    std::string origin(rule_);
    std::vector<Node*> pieces;
    for (std::size_t i = 0; i < group.size(); ++i) {
      pieces.push_back(
          &rewriter_.call_function(python::kGetItem, (std::vector<Argument>{parts, static_cast<std::int64_t>(i)})));
      origin += (i ? ", " : ": ") + group[i].node().name();
    }
    for (Node* node : {&product, &parts}) node->meta().set(meta_key::kProvenance, origin);
    for (std::size_t i = 0; i < group.size(); ++i) {
      Node& old = group[i].node();
      const std::vector<Node*> read = old.all_input_nodes();
      rewriter_.replace_all_uses_with(old, *pieces[i]);
      rewriter_.erase_node(old);
      weights_.erase_unread(read);
    }
    outcome_.applied += group.size();
  }

  GraphModule& module_;
  std::string_view rule_;
  Rewriter& rewriter_;
  Weights weights_;
  std::vector<Node*> views_;  // of the group's results
  PassResult outcome_;
};

PassResult merge_linears(RuleContext& program) {
  const at::NoGradGuard no_grad;
  return LinearMerger(program).run();
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "merge-linears",
          .summary = "Linear layers on one input (query, key, value) become one linear, split afterwards",
          .preconditions =
              "weights are attributes that nothing writes, of one type, device and number of inputs; nobody writes to "
              "the results, which come to share storage, or reads them by their strides; a view of them becomes a "
              "reshape",
          .order = 370,
          .group = Group::fusion,
          .promise = Promise::reassociates,
          .pass = merge_linears,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::fusion_merge_linears
