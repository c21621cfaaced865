#include <fxgraph/rewriter/rules/transformations.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <set>

#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/program_image.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr const char* kTransformed = "transformed";

/// The changes that made a node what it is, the latest last.
using Marks = std::vector<std::shared_ptr<const ProgramChange>>;

const Marks* marks_of(const Node& node) {
  const Meta* meta = node.find_meta();
  return meta ? meta->get<Marks>(kTransformed) : nullptr;
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// The column of ones is made from the input, so that any size of batch will do.
class BiasFusion {
 public:
  explicit BiasFusion(GraphModule& module) : module_(module), graph_(module.graph()), rewriter_(graph_) {
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::get_attr)) read_.push_back(rules::path_of(node));
    }
  }

  void run() {
    std::set<std::string> replaced;
    for (Node& node : graph_.nodes()) {
      if (!node.is(Op::call_module) || node.args().size() != 1 || !node.kwargs().empty()) continue;
      const std::string path = rules::path_of(node);
      Node* input = node.arg(0).node_or_null();
      if (!input || (!replaced.contains(path) && !replace(path))) continue;
      replaced.insert(path);
      const auto before = rewriter_.inserting_before(node);
      Node& column = rewriter_.call_function("aten::slice.Tensor", {*input, -1, 0, 1});
      Node& ones = rewriter_.call_function("aten::ones_like", {column});
      Node& wider = rewriter_.call_function("aten::cat", {Argument::list({*input, ones}), -1});
      rewriter_.set_args(node, {wider});
    }
  }

 private:
  bool replace(const std::string& path) {
    const auto leaf = module_.leaf(path);
    if (!leaf || leaf->type_name() != "Linear" || is_read(path) || rules::is_run_by_another(module_, path))
      return false;
    const torch::Tensor weight = leaf->find_tensor("weight"), bias = leaf->find_tensor("bias");
    if (!weight.defined() || !bias.defined() || weight.dim() != 2) return false;
    torch::Tensor fused = at::cat({weight.detach(), bias.detach().unsqueeze(1)}, 1);
    fused.requires_grad_(weight.requires_grad());
    Graph body;
    Node &x = body.placeholder("input"), &w = body.get_attr("weight");
    body.output(body.call_function("aten::linear", {x, w}));
    const auto made = make_leaf("Linear", {{"weight", fused, true}}, std::move(body));
    made->train(leaf->is_training());
    module_.replace_submodule(path, made);
    return true;
  }

  bool is_read(const std::string& path) const {
    return std::ranges::any_of(read_, [&](const std::string& other) { return other.starts_with(path + "."); });
  }

  GraphModule& module_;
  Graph& graph_;
  Rewriter rewriter_;
  std::vector<std::string> read_;
};

}  // namespace

Transformation::Transformation(std::string name, std::function<void(GraphModule&)> transform)
    : name_(std::move(name)), transform_(std::move(transform)) {}

std::size_t Transformation::transform(GraphModule& module) const {
  if (!transform_) {
    std::size_t total = 0;
    for (const Transformation& part : parts_) total += part.transform(module);
    return total;
  }
  const ProgramImage before = ProgramImage::of(module);
  transform_(module);
  ProgramChange change = change_between(before, ProgramImage::of(module));
  if (change.empty()) return 0;
  change.by = name_;
  change.number = next_number();
  change.made_in = &module;
  const std::size_t size = change.size();
  const auto shared = std::make_shared<const ProgramChange>(std::move(change));
  bool marked = false;
  for (Node& node : module.graph().nodes()) {
    // One that changed nothing that stays is noted at what returns the result.
    if (!shared->after.contains(node.name()) && !(node.is(Op::output) && !marked)) continue;
    Marks marks = marks_of(node) ? *marks_of(node) : Marks();
    marks.push_back(shared);
    node.meta().set(kTransformed, std::move(marks));
    marked = true;
  }
  return size;
}

std::size_t Transformation::reverse(GraphModule& module) const {
  std::size_t total = 0;
  if (!transform_) {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) total += part->reverse(module);
    return total;
  }
  while (true) {
    std::shared_ptr<const ProgramChange> latest;
    for (const Node& node : module.graph().nodes()) {
      const Marks* marks = marks_of(node);
      for (const auto& change : marks ? *marks : Marks()) {
        if (change->by == name_ && (!latest || change->number > latest->number)) latest = change;
      }
    }
    if (!latest) return total;
    for (const Node& node : module.graph().nodes()) {
      const Marks* marks = marks_of(node);
      if (!marks || std::ranges::find(*marks, latest) == marks->end() || marks->back() == latest) continue;
      throw Error(
          ErrorKind::invalid_argument,
          "%" + node.name() + " was changed by " + marks->back()->by + " after " + name_ + "; take that back first",
          node.name());
    }
    ProgramImage now = ProgramImage::of(module);
    ProgramImage image = latest->made_in == &module ? latest->undo(std::move(now)) : latest->for_copy(now).undo(now);
    for (NodeImage& node : image.nodes) {
      const Marks* marks = node.meta.get<Marks>(kTransformed);
      if (!marks || marks->empty() || marks->back() != latest) continue;
      Marks rest(marks->begin(), marks->end() - 1);
      if (rest.empty()) {
        node.meta.erase(kTransformed);
      } else {
        node.meta.set(kTransformed, std::move(rest));
      }
    }
    image.install(module);
    total += latest->size();
  }
}

Transformation compose(std::vector<Transformation> parts) {
  std::string name;
  for (const Transformation& part : parts) name += (name.empty() ? "" : ", ") + part.name();
  Transformation all(name, {});
  all.parts_ = std::move(parts);
  return all;
}

Transformation reversible_rules(std::string name, std::vector<std::string> rules, std::vector<TensorInfo> inputs) {
  return Transformation(std::move(name), [rules = std::move(rules), inputs = std::move(inputs)](GraphModule& module) {
    optimize(module, {.rules = rules, .inputs = inputs});
  });
}

std::vector<Node*> transformed_nodes(GraphModule& module, const std::string& name) {
  std::vector<Node*> nodes;
  for (Node& node : module.graph().nodes()) {
    const Marks* marks = marks_of(node);
    if (marks && std::ranges::any_of(*marks, [&](const auto& mark) {
          return (name.empty() || mark->by == name) && mark->after.contains(node.name());
        }))
      nodes.push_back(&node);
  }
  return nodes;
}

Transformation MergeLinears() { return reversible_rules("MergeLinears", {"merge-linears"}); }
Transformation FuseBiasInLinear() {
  return Transformation("FuseBiasInLinear", [](GraphModule& module) { BiasFusion(module).run(); });
}
Transformation ChangeTrueDivToMulByInverse() {
  return reversible_rules("ChangeTrueDivToMulByInverse", {"division-by-constant"});
}
Transformation FuseBatchNorm2dInConv2d() { return reversible_rules("FuseBatchNorm2dInConv2d", {"fuse-conv-bn"}); }
Transformation FuseBatchNorm1dInLinear(std::vector<TensorInfo> inputs) {
  return reversible_rules("FuseBatchNorm1dInLinear", {"fuse-linear-bn", "fuse-bn-linear"}, std::move(inputs));
}

}  // namespace fx
