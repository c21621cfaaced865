// The yardstick: torch::jit on the same chain workload, in the same process.
#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/ir/subgraph_matcher.h>
#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/liveness.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/python_print.h>

#include <memory>
#include <string>

#include "bench/harness.h"
#include "tests/support/workloads.h"

namespace fx::bench {
namespace {

namespace jit = torch::jit;
using JitGraph = std::shared_ptr<jit::Graph>;

JitGraph jit_chain(std::int64_t blocks, bool dead = false) {
  auto graph = std::make_shared<jit::Graph>();
  jit::Value* x = graph->addInput("x");
  jit::Value* y = graph->addInput("y");
  jit::Value* one = graph->insertConstant(1);
  jit::Value* t = x;
  for (std::int64_t i = 0; i < blocks; ++i) {
    jit::Value* a = graph->insertNode(graph->create(c10::aten::add, {t, y, one}))->output();
    jit::Value* r = graph->insertNode(graph->create(c10::aten::relu, {a}))->output();
    if (dead) graph->insertNode(graph->create(c10::aten::neg, {r}));
    t = graph->insertNode(graph->create(c10::aten::mul, {r, y}))->output();
  }
  graph->registerOutput(t);
  return graph;
}

std::size_t size(const jit::Graph& graph) {
  const auto nodes = graph.nodes();
  return static_cast<std::size_t>(std::distance(nodes.begin(), nodes.end()));
}

// Times `work(JitGraph&)` on fresh graphs.
template <typename Work>
void on_fresh_graphs(benchmark::State& state, bool dead, std::size_t nodes, Work work) {
  time_editing(
      state, nodes, [&] { return jit_chain(state.range(0), dead); }, work);
}

void BM_JitBuild(benchmark::State& state) {
  time_reading(state, chain_nodes(state), [&] { return jit_chain(state.range(0)); });
}
BENCHMARK(BM_JitBuild)->Apply(peer_sizes);

void BM_JitClone(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  if (!verified(state, size(*graph->copy()) == size(*graph), "size of the copy")) return;
  time_reading(state, chain_nodes(state), [&] { return graph->copy(); });
}
BENCHMARK(BM_JitClone)->Apply(peer_sizes);

void BM_JitLint(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] {
    graph->lint();
    return graph.get();
  });
}
BENCHMARK(BM_JitLint)->Apply(peer_sizes);

void BM_JitDeadCode(benchmark::State& state) {
  const JitGraph first = jit_chain(state.range(0), true);
  const std::size_t before = size(*first);
  jit::EliminateDeadCode(first);
  if (!verified(state, before - size(*first) == static_cast<std::size_t>(state.range(0)), "number of dead nodes"))
    return;
  on_fresh_graphs(state, true, chain_nodes(state) + static_cast<std::size_t>(state.range(0)),
                  [](JitGraph& graph) { jit::EliminateDeadCode(graph); });
}
BENCHMARK(BM_JitDeadCode)->Apply(peer_sizes)->UseManualTime();

void BM_JitCommonSubexpression(benchmark::State& state) {
  on_fresh_graphs(state, false, chain_nodes(state), [](JitGraph& graph) { jit::EliminateCommonSubexpression(graph); });
}
BENCHMARK(BM_JitCommonSubexpression)->Apply(peer_sizes)->UseManualTime();

constexpr const char* kJitHit = "graph(%x, %y, %o):\n %a = aten::add(%x, %y, %o)\n %r = aten::relu(%a)\n return (%r)";
constexpr const char* kJitMiss =
    "graph(%x, %y, %o):\n %a = aten::add(%x, %y, %o)\n %r = aten::sigmoid(%a)\n return (%r)";
constexpr const char* kReplacement =
    "graph(%x, %y, %o):\n %a = aten::sub(%x, %y, %o)\n %r = aten::relu6(%a)\n return (%r)";

// One of testing::operators_not_in_chain; every operand but the first is an input.
std::string jit_pattern(const std::vector<std::string>& operators) {
  std::string inputs = "%x, %o", body, value = "%x";
  for (std::size_t i = operators.size(); i-- > 0;) {
    const std::string index = std::to_string(i), name = operators[i].substr(0, operators[i].find('.'));
    std::string arguments = value;
    if (name != "aten::relu") {
      inputs += ", %y" + index;
      arguments += ", %y" + index;
    }
    if (name == "aten::add") arguments += ", %o";
    value = "%v" + index;
    body += " " + value + " = " + name + "(" + arguments + ")\n";
  }
  return "graph(" + inputs + "):\n" + body + " return (" + value + ")";
}

std::size_t matches(const std::string& pattern, jit::Graph& graph) {
  jit::Graph parsed;
  jit::parseIR(pattern, &parsed);
  return jit::findPatternMatches(parsed, graph).size();
}

void BM_JitMatchMiss(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  if (!verified(state, matches(kJitMiss, *graph) == 0, "number of matches")) return;
  jit::Graph pattern;
  jit::parseIR(kJitMiss, &pattern);
  time_reading(state, chain_nodes(state), [&] { return jit::findPatternMatches(pattern, *graph); });
}
BENCHMARK(BM_JitMatchMiss)->Apply(peer_sizes);

void BM_JitMatchMiss64(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  std::vector<std::unique_ptr<jit::Graph>> patterns;
  for (const std::vector<std::string>& operators : testing::operators_not_in_chain(64)) {
    patterns.push_back(std::make_unique<jit::Graph>());
    jit::parseIR(jit_pattern(operators), patterns.back().get());
  }
  const auto search = [&] {
    std::size_t found = 0;
    for (const auto& pattern : patterns) found += jit::findPatternMatches(*pattern, *graph).size();
    return found;
  };
  if (!verified(state, search() == 0, "number of matches")) return;
  time_reading(state, chain_nodes(state), search);
}
BENCHMARK(BM_JitMatchMiss64)->Apply(peer_sizes);

void BM_JitMatchHit(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  jit::Graph pattern;
  jit::parseIR(kJitHit, &pattern);
  const auto right = static_cast<std::size_t>(state.range(0));
  if (!verified(state, jit::findPatternMatches(pattern, *graph).size() == right, "number of matches")) return;
  time_reading(state, chain_nodes(state), [&] { return jit::findPatternMatches(pattern, *graph); });
}
BENCHMARK(BM_JitMatchHit)->Apply(peer_sizes);

void BM_JitRewriteAll(benchmark::State& state) {
  jit::SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(kJitHit, kReplacement);
  JitGraph first = jit_chain(state.range(0));
  rewriter.runOnGraph(first);
  if (!verified(state, matches(kJitHit, *first) == 0, "number of matches left")) return;
  on_fresh_graphs(state, false, chain_nodes(state), [&](JitGraph& graph) { rewriter.runOnGraph(graph); });
}
BENCHMARK(BM_JitRewriteAll)->Apply(peer_sizes)->UseManualTime();

void BM_JitRewrite64Rules(benchmark::State& state) {
  jit::SubgraphRewriter rewriter;
  for (const std::vector<std::string>& operators : testing::operators_not_in_chain(63)) {
    const std::string pattern = jit_pattern(operators);
    rewriter.RegisterRewritePattern(pattern, pattern.substr(0, pattern.find('\n')) + "\n return (%x)");
  }
  rewriter.RegisterRewritePattern(kJitHit, kReplacement);
  on_fresh_graphs(state, false, chain_nodes(state), [&](JitGraph& graph) { rewriter.runOnGraph(graph); });
}
BENCHMARK(BM_JitRewrite64Rules)->Apply(peer_sizes)->UseManualTime();

void BM_JitPrint(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] { return graph->toString(false); });
}
BENCHMARK(BM_JitPrint)->Apply(peer_sizes);

void BM_JitParse(benchmark::State& state) {
  const std::string text = jit_chain(state.range(0))->toString(false);
  time_reading(state, chain_nodes(state), [&] {
    jit::Graph graph;
    jit::parseIR(text, &graph);
    return graph.outputs().size();
  });
}
BENCHMARK(BM_JitParse)->Apply(peer_sizes);

void BM_JitCodegen(benchmark::State& state) {
  jit::GraphFunction function("forward", jit_chain(state.range(0)), nullptr);
  time_reading(state, chain_nodes(state), [&] {
    std::vector<at::IValue> constants;
    jit::PrintDepsTable dependencies;
    jit::PythonPrint printer(constants, dependencies);
    printer.printFunction(function);
    return printer.str();
  });
}
BENCHMARK(BM_JitCodegen)->Apply(peer_sizes);

void BM_JitLiveness(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] { return jit::BuildLivenessSets(graph); });
}
BENCHMARK(BM_JitLiveness)->Apply(peer_sizes);

void BM_JitEffects(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] { return jit::AliasDb(graph).hasWriters(graph->outputs()[0]); });
}
BENCHMARK(BM_JitEffects)->Apply(peer_sizes);

void BM_JitRecompile(benchmark::State& state) {
  const JitGraph graph = jit_chain(state.range(0));
  time_reading(state, chain_nodes(state), [&] { return jit::Code(graph, "forward").register_size(); });
}
// Compiling recurses over the graph: at 10^4 nodes it has run out of an 8 MiB stack.
BENCHMARK(BM_JitRecompile)->Arg(33)->Arg(333)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fx::bench
