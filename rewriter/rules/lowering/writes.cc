// Where results lie: before lowering, operators that write over a value of their own become those that make a new one,
// which patterns know; after it, those that may write over their operand do.
//
// A value is written over anew when nobody can see it: an operator made it, it is no view of anything, and the one node
// that writes is its only user.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <array>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::rules::lowering_writes {

namespace {

constexpr auto kInPlace = std::to_array<std::string_view>({
    "aten::add.Scalar", "aten::add.Tensor", "aten::clamp",      "aten::clamp_max",   "aten::clamp_min",
    "aten::div.Scalar", "aten::div.Tensor", "aten::elu",        "aten::hardsigmoid", "aten::hardswish",
    "aten::hardtanh",   "aten::leaky_relu", "aten::mul.Scalar", "aten::mul.Tensor",  "aten::relu",
    "aten::relu6",      "aten::sigmoid",    "aten::silu",       "aten::sub.Scalar",  "aten::sub.Tensor",
    "aten::tanh",
});

class Writes {
 public:
  explicit Writes(RuleContext& program)
      : program_(program),
        graph_(program.module.graph()),
        effects_(graph_, module_info(program.module)),
        own_(graph_, false) {
    effects_.expect_writes();
  }

  PassResult take_out() {
    return each([](const OperatorSchema& called) { return functional_overload(called); },
                [](const OperatorSchema&, const OperatorSchema& other) { return other.target; },
                [&](const Node& node, const Node&) { return !sees_write(node, effects_); });
  }

  PassResult put_in() {
    return each([](const OperatorSchema& called) { return in_place_overload(called); },
                [](const OperatorSchema& called, const OperatorSchema&) { return called.target; },
                [&](const Node&, const Node& value) { return own_[value] && value.num_users() == 1; });
  }

 private:
  /// Puts `other(schema)` in the place of each call where `functional(schema, other)` is in the table, and nobody sees
  /// whether `value` is written over.
  template <typename Other, typename Functional, typename Unseen>
  PassResult each(Other other, Functional functional, Unseen is_unseen) {
    PassResult result;
    for (Node& node : graph_.nodes()) {
      own_[node] = makes_own(node);
      const Call call = call_of(node);
      const OperatorSchema* becomes = call ? other(call.schema()) : nullptr;
      const Node* value = becomes && call.argument(0) ? call.argument(0)->node_or_null() : nullptr;
      if (!value || !std::ranges::count(kInPlace, functional(call.schema(), *becomes).view())) continue;
      FactLog asked;
      if (!is_unseen(node, *value) || !same_tensor(node, *value, asked)) continue;
      if (!program_.values.require(program_.rule.name, asked.facts()).empty()) continue;
      spell_as_operator(node);
      program_.rewriter.set_target(node, becomes->target);
      effects_.changed(node);
      own_[node] = true;
      ++result.applied;
    }
    return result;
  }

  /// True when the value is nobody else's: an operator made it, and it is no view.
  bool makes_own(const Node& node) const {
    if (!node.is(Op::call_function) && !node.is(Op::call_method)) return false;
    const NodeEffects made = effects_.of(node);
    return !made.impure() && !made.may_alias;
  }

  /// One type throughout, and no size grows: in place and out of place give the same.
  bool same_tensor(const Node& node, const Node& value, FactLog& asked) const {
    const TensorFacts before = program_.values.info(value, asked), after = program_.values.info(node, asked);
    if (!before || !after || !after.is_of_sizes_of(before)) return false;
    if (!before.is_of({DType::float32, DType::float64, DType::bfloat16}) || !after.is_of_type_of(before)) return false;
    bool same = true;
    node.for_each_input([&](const Node& input) {
      const TensorFacts other = program_.values.info(input, asked);
      same = same && other && other.is_of_type_of(before);
    });
    return same;
  }

  RuleContext& program_;
  Graph& graph_;
  internal::TrackedEffects effects_;
  NodeMap<bool> own_;
};

PassResult out_of_place(RuleContext& program) { return Writes(program).take_out(); }

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "out-of-place",
          .summary = "Operators that write over a value that nobody else sees make a new one, as the rules expect",
          .preconditions = "shapes known (--input); an operator made the value, and nothing reads it later; one type",
          .order = 500,
          .group = Group::lowering,
          .promise = Promise::bit_exact,
          .pass = out_of_place,
      },
      {
          .name = "in-place",
          .summary = "Operators that may write over a value that nobody else sees do so",
          .preconditions = "shapes known (--input); an operator made the value, and this is its only use; one type; "
                           "inference: no gradients",
          .order = 590,
          .group = Group::lowering,
          .promise = Promise::bit_exact,
          .pass = write_in_place,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_writes

fx::rules::PassResult fx::rules::write_in_place(RuleContext& program) {
  return lowering_writes::Writes(program).put_in();
}
