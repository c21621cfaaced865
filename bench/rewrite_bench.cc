// Edits that are checked: pattern replacement, rule sets, common subexpressions.
#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include "bench/harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::bench {
namespace {

void common_subexpression(benchmark::State& state, const Graph& graph) {
  std::size_t twins = 0;
  Graph doubled = testing::with_twin_relus(graph, twins);
  const std::size_t removed = eliminate_common_subexpressions(doubled);
  if (!verified(state, removed >= twins && doubled.check().empty(), "number of twins")) return;
  Graph plain = graph.clone();
  count_per_node(state, "removed_per_node", eliminate_common_subexpressions(plain), graph.size());
  time_editing(
      state, graph.size(), [&] { return graph.clone(); },
      [](Graph& copy) { benchmark::DoNotOptimize(eliminate_common_subexpressions(copy)); });
}

// Times `work(Graph&)`, which returns a RewriteReport, after seeing that it applies `right` rewrites.
template <typename Work>
void rewriting(benchmark::State& state, const Graph& graph, std::size_t right, Work work) {
  Graph first = graph.clone();
  const RewriteReport report = work(first);
  if (!verified(state, report.applied == right && report.refused.empty() && first.check().empty(), "rewrites")) return;
  std::size_t tried = 0;
  for (const RuleReport& rule : report.rules) tried += rule.tried;
  count_per_node(state, "candidates_per_node", tried, graph.size());
  count_per_node(state, "rewrites_per_node", right, graph.size());
  time_editing(
      state, graph.size(), [&] { return graph.clone(); },
      [&](Graph& copy) { benchmark::DoNotOptimize(work(copy).applied); });
}

// A third of a chain's nodes are relu(add(x, y)), and become two others.
void rewrite_all(benchmark::State& state, const Graph& graph) {
  const Pattern pattern("aten::relu(aten::add.Tensor(x, y))");
  const Replacement replacement("aten::relu6(aten::sub.Tensor(x, y))");
  rewriting(state, graph, graph.size() / 3 - 1,
            [&](Graph& copy) { return replace_pattern(copy, pattern, replacement); });
}

// The same among writes, views and draws, so that all checks are made.
void rewrite_among_effects(benchmark::State& state, const Graph& graph) {
  const Graph subject = testing::chain_with_effects(graph.size() / 6);
  const Pattern pattern("aten::relu(aten::add.Tensor(x, y))");
  const Replacement replacement("aten::relu6(aten::sub.Tensor(x, y))");
  rewriting(state, subject, graph.size() / 6, [&](Graph& copy) { return replace_pattern(copy, pattern, replacement); });
}

// One for one, wherever there is a relu: for graphs of any kind.
void rewrite_each(benchmark::State& state, const Graph& graph) {
  const Pattern pattern("aten::relu(x)");
  const Replacement replacement("aten::clamp_min(x, 0)");
  rewriting(state, graph, graph.count(Op::call_function, "aten::relu"),
            [&](Graph& copy) { return replace_pattern(copy, pattern, replacement); });
}

// Rules that start everywhere and fit nowhere, and at last one that always fits.
RuleSet many_rules(std::size_t count) {
  RuleSet rules;
  for (const std::string& pattern : testing::patterns_not_in_chain(count - 1))
    rules.add({.name = "miss-" + std::to_string(rules.size()), .pattern = pattern, .replacement = "x"});
  rules.add({.name = "hit",
             .pattern = "aten::relu(aten::add.Tensor(x, y))",
             .replacement = "aten::relu6(aten::sub.Tensor(x, y))"});
  return rules;
}

template <std::size_t Rules>
void rewrite_with_rules(benchmark::State& state, const Graph& graph) {
  const RuleSet rules = many_rules(Rules);
  rewriting(state, graph, graph.size() / 3 - 1, [&](Graph& copy) { return rewrite_once(copy, rules); });
}

template <std::size_t Rules>
void rewrite_to_the_end(benchmark::State& state, const Graph& graph) {
  const RuleSet rules = many_rules(Rules);
  rewriting(state, graph, graph.size() / 3 - 1, [&](Graph& copy) { return rewrite_to_fixed_point(copy, rules); });
}

// Each rewrite makes the next one possible: half as many rewrites as nodes, and nothing is left.
void cascade(benchmark::State& state, const Graph& graph) {
  const std::size_t pairs = graph.size() / 2;
  const Graph nested = testing::nested_transposes(2 * pairs);
  const RuleSet rules = {
      {.name = "transposes", .pattern = "aten::transpose.int(aten::transpose.int(x, 0, 1), 0, 1)", .replacement = "x"}};
  DriverOptions options;
  options.allow_output_aliases = true;
  rewriting(state, nested, pairs, [&](Graph& copy) { return rewrite_to_fixed_point(copy, rules, options); });
}

// Every match shares a node with the next: all but one of the nested relus go.
void overlap(benchmark::State& state, const Graph& graph) {
  const std::size_t count = graph.size();
  const Graph nested = testing::nested_relus(count);
  const RuleSet rules = {{.name = "relus", .pattern = "aten::relu(aten::relu(x))", .replacement = "aten::relu(x)"}};
  rewriting(state, nested, count - 1, [&](Graph& copy) { return rewrite_to_fixed_point(copy, rules); });
}

const bool rewrite_registered = register_works({
    {.name = "CommonSubexpression", .time = common_subexpression, .edits = true},
    {.name = "RewriteAll", .time = rewrite_all, .edits = true, .chain_only = true},
    {.name = "RewriteAmongEffects", .time = rewrite_among_effects, .edits = true, .chain_only = true},
    {.name = "RewriteEach", .time = rewrite_each, .edits = true},
    {.name = "Rewrite64Rules", .time = rewrite_with_rules<64>, .edits = true, .chain_only = true},
    {.name = "Rewrite200Rules", .time = rewrite_with_rules<200>, .edits = true, .chain_only = true},
    {.name = "FixedPoint64Rules", .time = rewrite_to_the_end<64>, .edits = true, .chain_only = true},
    {.name = "Cascade", .time = cascade, .edits = true, .chain_only = true},
    {.name = "Overlap", .time = overlap, .edits = true, .chain_only = true},
});

}  // namespace
}  // namespace fx::bench
