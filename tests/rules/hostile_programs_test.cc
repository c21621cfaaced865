// Hostile programs (testing/hostile/generator.h) through optimize, every rule alone, and replace_pattern: what
// callers can see stays as it was.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/generator.h>

#include "tests/rules/hostile_run.h"

namespace fx::hostile_programs_test {

using hostile::HostileProgram;
using hostile::Rewritten;
using testing::HostileRun;
using testing::patterns_of;
using testing::Trial;

// ── optimize ─────────────────────────────────────────────────────────────────────────────────────────────────────────

bool needs_finite(const OptimizeReport& report) {
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.applied == 0) continue;
    for (const Rule& rewrite : outcome.rule->rules()) {
      if (rewrite.needs.finite_inputs) return true;
    }
  }
  return false;
}

/// Sums of complex numbers the other way round are the same where they are finite: the precondition says so.
bool may_commute_complex_sums(const OptimizeReport& report, const HostileProgram& program) {
  const auto is_complex = [](const at::Tensor& tensor) { return tensor.defined() && tensor.is_complex(); };
  return std::ranges::any_of(report.rules,
                             [](const RuleOutcome& outcome) {
                               return outcome.applied > 0 && outcome.rule->name == "common-subexpression";
                             }) &&
         (std::ranges::any_of(program.inputs[0], is_complex) ||
          std::ranges::any_of(program.weights,
                              [&](const hostile::Weight& weight) { return is_complex(weight.value); }));
}

hostile::Rewrite optimizing(std::vector<std::string> names, bool with_shapes) {
  return [names = std::move(names), with_shapes](GraphModule& module, const HostileProgram& program) -> Rewritten {
    OptimizeOptions options{.rules = names};
    if (with_shapes) {
      for (const at::Tensor& input : program.inputs[0]) options.inputs.push_back(tensor_info(input));
    }
    const std::uint64_t revision = module.graph().revision();
    try {
      const OptimizeReport report = optimize(module, options);
      const bool rounds = std::ranges::any_of(report.rules, [](const RuleOutcome& outcome) {
        return outcome.applied > 0 && outcome.rule->promise == Promise::lower_precision;
      });
      return {module.graph().revision() != revision, needs_finite(report) || may_commute_complex_sums(report, program),
              rounds};
    } catch (const Error& error) {
      // Numbers that it made up for the inputs do not do, in masks for instance: it says so.
      if (error.kind() == ErrorKind::execution) return {};
      throw;
    }
  };
}

/// Leaves as few rules as it takes to get the program wrong.
void leave_out_rules(Trial& trial, const std::vector<std::string>& names, bool with_shapes) {
  std::vector<std::string> left;
  for (const rules::OptimizeRule* rule : rules::select(names)) left.emplace_back(rule->name);
  for (std::size_t i = left.size(); i-- > 0 && left.size() > 1;) {
    std::vector<std::string> fewer = left;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!judge(trial.program, optimizing(fewer, with_shapes)).wrong.empty()) left = fewer;
  }
  trial.rewrite = optimizing(left, with_shapes);
  trial.name.clear();
  for (const std::string& name : left) trial.name += (trial.name.empty() ? "" : ", ") + name;
}

TEST(HostilePrograms, OptimizeKeepsWhatCallersSee) {
  std::vector<std::string> names;
  for (const rules::OptimizeRule* rule : rules::all_rules()) names.emplace_back(rule->name);
  HostileRun run(600);
  run.run([&](std::uint64_t seed) {
    // Every other program through the default group, the others through one rule or several groups.
    std::vector<std::string> chosen;
    if (seed % 2) chosen = {names[seed / 2 % names.size()]};
    if (seed % 16 == 0) chosen = {"inference", "fusion", "simplify"};
    if (seed % 16 == 8) chosen = {"decomposition", "inference"};
    const bool with_shapes = seed % 5 < 3;
    return Trial{hostile::draw_program(seed, {.motifs = patterns_of(chosen), .other_sizes_percent = 30}),
                 optimizing(chosen, with_shapes), "",
                 [chosen, with_shapes](Trial& trial) { leave_out_rules(trial, chosen, with_shapes); }};
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 4);
}

// ── replace_pattern ──────────────────────────────────────────────────────────────────────────────────────────────────

/// A part of the program as a graph of its own: a call and some of the calls that it depends on, whatever they do. What
/// they take from elsewhere is its inputs, what others take of them its results. Nothing when there is no call.
std::optional<Graph> draw_part(hostile::Random& random, const Graph& graph) {
  std::vector<const Node*> calls;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::call_function) || node.is(Op::call_method)) calls.push_back(&node);
  }
  if (calls.empty()) return {};
  NodeMap<bool> inside(graph, false);
  std::vector<const Node*> open = {random.pick(calls)};
  for (std::size_t left = 1 + random.below(4); left > 0 && !open.empty(); --left) {
    const std::size_t next = random.below(open.size());
    inside[*open[next]] = true;
    const Node* node = open[next];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(next));
    const auto add = [&](const Node& other) {
      if ((other.is(Op::call_function) || other.is(Op::call_method)) && !inside[other]) open.push_back(&other);
    };
    node->for_each_input(add);
    if (random.chance(30)) {
      for (const Node& user : node->users()) add(user);
    }
  }
  Graph part;
  Graph::ValueMap values(graph);
  std::vector<Argument> results;
  for (const Node& node : graph.nodes()) {
    if (!inside[node]) continue;
    node.for_each_input([&](const Node& input) {
      if (!values[input].is_none()) return;
      const auto scope = part.inserting_before();
      values[input] = part.placeholder(input.name());
    });
    Node& copy = part.node_copy(node, [&](Node& input) { return values[input]; });
    values[node] = copy;
    bool seen = !node.has_users();
    for (const Node& user : node.users()) seen = seen || !inside[user];
    if (seen) results.emplace_back(copy);
  }
  part.output(results.size() == 1 ? results[0] : Argument::tuple(results));
  return part;
}

bool is_complex(const hostile::HostileProgram& program) {
  const auto any = [](const auto& tensors) {
    return std::ranges::any_of(tensors, [](const at::Tensor& tensor) { return tensor.is_complex(); });
  };
  return std::ranges::any_of(program.inputs, any) ||
         std::ranges::any_of(program.weights, [](const auto& weight) { return weight.value.is_complex(); });
}

/// The same part, in which some calls take their operands in the other order where that makes no difference to what
/// they compute; to where it lies it may. Of complex numbers the first may decide which part of a NaN is one.
Graph with_operands_turned_round(hostile::Random& random, const Graph& part) {
  Graph turned = part.clone();
  for (Node& node : turned.nodes()) {
    const Call call = call_of(node);
    if (!call || !call.schema().traits.commutative || call.schema().traits.writes || random.chance(50)) continue;
    if (node.args().size() != 2 || !node.kwargs().empty() || !node.arg(0).is_node() || !node.arg(1).is_node()) continue;
    node.set_args({node.arg(1), node.arg(0)});
  }
  return turned;
}

TEST(HostileReplacements, WhatIsReplacedByItselfStaysAsItIs) {
  HostileRun run(600);
  run.run([&](std::uint64_t seed) {
    Trial trial{hostile::draw_program(seed, {.other_sizes_percent = 30}), {}, "replace_pattern"};
    hostile::Random random(~seed);
    std::optional<Graph> part = draw_part(random, trial.program.graph);
    if (!part) part = Graph();
    const auto shared = std::make_shared<Graph>(std::move(*part));
    const auto other =
        is_complex(trial.program) ? shared : std::make_shared<Graph>(with_operands_turned_round(random, *shared));
    trial.rewrite = [shared, other](GraphModule& module, const HostileProgram&) -> Rewritten {
      try {
        const Pattern pattern(*shared);
        return {replace_pattern(module, pattern, Replacement(*other)).changed()};
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::invalid_argument) return {};  // such a pattern cannot be looked for
        throw;
      }
    };
    return trial;
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 4);
}

}  // namespace fx::hostile_programs_test
