// Constant folding: what can be computed from attributes and literals alone is computed now. Numbers that a trace has
// stored as tensors become literals, which patterns can read.
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/rules.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules::simplify_constants {

namespace {

/// A result may be as large as what it was computed from, or this large.
constexpr std::int64_t kFreeBytes = 64 * 1024;

std::int64_t bytes_of(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? static_cast<std::int64_t>(value.toTensor().nbytes()) : 0;
}

class ConstantFolding {
 public:
  explicit ConstantFolding(RuleContext& program)
      : module_(program.module),
        graph_(program.module.graph()),
        rewriter_(program.rewriter),
        effects_(program.module),
        constant_(graph_, false) {}

  PassResult run() {
    // Front to back: operands are known before their users, chains fold as one.
    for (Node& node : graph_.nodes()) {
      if (foldable(node)) constant_[node] = true;
    }
    std::vector<Node*> results;
    for (Node& node : graph_.nodes()) {
      if (constant_[node] && !node.is(Op::get_attr) && feeds_program(node)) results.push_back(&node);
    }
    for (Node* node : results) fold(*node);
    return std::move(outcome_);
  }

 private:
  bool foldable(const Node& node) {
    if (node.is(Op::get_attr)) return effects_.not_constant(path_of(node)).empty();
    if (effects_.is_written(node) || effects_of(node).impure()) return false;
    bool all = true;
    bool any = false;
    node.for_each_input([&](const Node& input) {
      all = all && constant_[input];
      any = true;
    });
    // Factories are small programs already, and empty() is whatever was there.
    return all && any && (call_of(node) || node.is_call(python::kGetItem));
  }

  /// True when something that is not folded itself takes the value.
  bool feeds_program(const Node& node) const {
    for (const Node& user : node.users()) {
      if (!constant_[user]) return true;
    }
    return false;
  }

  void fold(Node& node) {
    c10::IValue value;
    try {
      value = evaluate(node);
    } catch (const std::exception& error) {
      outcome_.refused.push_back({{}, node.name(), std::string("computing it fails: ") + error.what()});
      return;
    }
    if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().layout() != at::kStrided) return;
    // The next call would get what the caller has written to this one's result.
    if (effects_.escapes(node)) {
      outcome_.refused.push_back({{}, node.name(), "it is returned, and the caller may write to it"});
      return;
    }
    // Laid out anew it would decide how results of it lie; as it is, it costs nothing.
    if (!value.toTensor().is_non_overlapping_and_dense()) {
      outcome_.refused.push_back({{}, node.name(), "its elements do not follow one another"});
      return;
    }
    if (bytes_of(value) > std::max(kFreeBytes, input_bytes_)) {
      outcome_.refused.push_back({{}, node.name(), "the result is larger than what it is computed from"});
      return;
    }
    const std::string path = module_.fresh_path("_folded_" + node.name());
    module_.set_buffer(path, value.toTensor().detach().clone());
    const auto scope = rewriter_.inserting_before(node);
    Node& attribute = rewriter_.get_attr(path);
    std::vector<Node*> users;
    for (Node& user : node.users()) {
      if (!constant_[user]) users.push_back(&user);
    }
    for (Node* user : users) rewriter_.replace_input_with(*user, node, attribute);
    constant_[attribute] = true;
    ++outcome_.applied;
  }

  /// Runs what the node depends on, operands first, without recursion.
  c10::IValue evaluate(Node& node) {
    input_bytes_ = 0;
    std::vector<Node*> order = {&node};
    std::vector<Node*> pending = {&node};
    std::unordered_set<const Node*> seen = {&node};
    while (!pending.empty()) {
      Node* next = pending.back();
      pending.pop_back();
      next->for_each_input([&](Node& input) {
        if (!seen.insert(&input).second) return;
        order.push_back(&input);
        pending.push_back(&input);
      });
    }
    std::sort(order.begin(), order.end(), GraphOrder{});
    Graph small;
    NodeMap<Node*> copies(graph_, nullptr);
    for (Node* part : order) {
      copies[*part] = &small.node_copy(*part, [&](Node& input) { return Argument(copies[input]); });
      if (part->is(Op::get_attr)) input_bytes_ += bytes_of(module_.attribute(path_of(*part)));
    }
    small.output(*copies[node]);
    return Interpreter(module_, small).run({});
  }

  GraphModule& module_;
  Graph& graph_;
  Rewriter& rewriter_;
  ProgramEffects effects_;
  NodeMap<bool> constant_;
  std::int64_t input_bytes_ = 0;
  PassResult outcome_;
};

/// `mul(x, c)` with a stored number c becomes `mul(x, 0.5)`: of floating-point x the type stays the same.
class LiteralOperands {
 public:
  explicit LiteralOperands(RuleContext& program)
      : program_(program), graph_(program.module.graph()), effects_(program.module) {}

  PassResult run() {
    for (Node& node : graph_.nodes()) {
      const Call call = call_of(node);
      if (!call || call.args().size() != 2) continue;
      const auto overload = std::ranges::find(kOverloads, call.schema().target.view(),
                                              &std::pair<std::string_view, std::string_view>::first);
      if (overload == kOverloads.end()) continue;
      Node* x = call.args()[0].node_or_null();
      Node* c = call.args()[1].node_or_null();
      if (!x || !c) continue;
      if (is_number(*c)) {
        make_literal(node, *x, *c, overload->second);
      } else if (is_number(*x) && call.kwargs().empty() && overload->first != "aten::sub.Tensor" &&
                 overload->first != "aten::div.Tensor") {  // x + 2 c is not c + 2 x
        make_literal(node, *c, *x, overload->second);
      }
    }
    return std::move(outcome_);
  }

 private:
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOverloads = {{
      {"aten::add.Tensor", "aten::add.Scalar"},
      {"aten::sub.Tensor", "aten::sub.Scalar"},
      {"aten::mul.Tensor", "aten::mul.Scalar"},
      {"aten::div.Tensor", "aten::div.Scalar"},
  }};

  bool is_number(const Node& node) {
    if (!node.is(Op::get_attr) || !effects_.not_constant(path_of(node)).empty()) return false;
    const at::Tensor tensor = program_.module.find_attribute(path_of(node));
    return tensor.defined() && tensor.dim() == 0 && tensor.device().is_cpu() && !tensor.requires_grad() &&
           (tensor.is_floating_point() || tensor.scalar_type() == at::kLong);
  }

  void make_literal(Node& node, Node& x, Node& c, std::string_view scalar_overload) {
    FactLog asked;
    const TensorFacts info = program_.values.info(x, asked);
    if (!info) {
      outcome_.refused.push_back({{}, node.name(), "the type of its input is not known; give --input"});
      return;
    }
    if (!info.is_of(floating_types()) || !info.has_dimensions())
      return;  // without dimensions it takes the other's type
    if (const std::string reason = program_.values.require(program_.rule.name, asked.facts()); !reason.empty()) {
      outcome_.refused.push_back({{}, node.name(), reason});
      return;
    }
    const at::Tensor value = program_.module.attribute(path_of(c));
    const Argument number =
        value.is_floating_point() ? Argument(value.item<double>()) : Argument(value.item<std::int64_t>());
    spell_as_operator(node);
    program_.rewriter.set_target(node, scalar_overload);
    program_.rewriter.set_args(node, std::vector<Argument>{x, number});
    if (!c.has_users()) program_.rewriter.erase_node(c);
    ++outcome_.applied;
  }

  RuleContext& program_;
  Graph& graph_;
  ProgramEffects effects_;
  PassResult outcome_;
};

PassResult literal_operands(RuleContext& program) { return LiteralOperands(program).run(); }

PassResult fold_constants(RuleContext& program) {
  const at::NoGradGuard no_grad;
  PassResult outcome = ConstantFolding(program).run();
  if (outcome.applied) eliminate_dead_code(program.module);
  return outcome;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "constant-folding",
          .summary = "Computes now what depends on parameters, buffers and literals alone",
          .preconditions =
              "weights are frozen and nothing writes to them; pure, not random; the result is no larger than what it "
              "was computed from, or 64 KiB",
          .order = 380,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .pass = fold_constants,
      },
      {
          .name = "literal-operands",
          .summary = "Numbers that a trace has stored as tensors without dimensions become literals",
          .preconditions = "an operand of +, -, * or / that nothing writes to; the other is known to be "
                           "floating-point, with dimensions "
                           "(--input)",
          .order = 130,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .pass = literal_operands,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_constants
