// The graph itself: build, clone, lint, dead code, edits with and without hooks.
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph_hooks.h>
#include <fxgraph/text/print.h>
#include "bench/harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::bench {
namespace {

constexpr std::size_t kPrintable = 10'000;  // comparing the texts of larger graphs takes longer than timing them

void build(benchmark::State& state, const Graph& graph) {
  const std::size_t nodes = graph.size(), blocks = nodes / 3 - 1;
  if (!verified(state, testing::chain(blocks).size() == nodes, "number of nodes")) return;
  state.counters["bytes_per_node"] = static_cast<double>(graph.memory_bytes()) / static_cast<double>(nodes);
  time_reading(state, nodes, [&] { return testing::chain(blocks); });
}

void clone(benchmark::State& state, const Graph& graph) {
  const Graph copy = graph.clone();
  const bool equal = graph.size() > kPrintable ? copy.size() == graph.size() : print_graph(copy) == print_graph(graph);
  if (!verified(state, equal, "the copy")) return;
  state.counters["bytes_per_node"] = static_cast<double>(copy.memory_bytes()) / static_cast<double>(graph.size());
  time_reading(state, graph.size(), [&] { return graph.clone(); });
}

void lint(benchmark::State& state, const Graph& graph) {
  Graph broken = testing::chain(1);
  broken.nodes().front().prepend(broken.nodes().back());
  if (!verified(state, graph.check().empty() && !broken.check().empty(), "violations")) return;
  time_reading(state, graph.size(), [&] { return graph.check(); });
}

void dead_code(benchmark::State& state, const Graph& graph) {
  std::size_t dead = 0;
  const Graph original = testing::with_dead_calls(graph, dead);
  Graph first = original.clone();
  const std::size_t erased = eliminate_dead_code(first);
  if (!verified(state, erased >= dead && first.size() + erased == original.size(), "number of dead nodes")) return;
  time_editing(
      state, original.size(), [&] { return original.clone(); },
      [](Graph& copy) { benchmark::DoNotOptimize(eliminate_dead_code(copy)); });
}

// Every relu makes way for another: a node is created, takes over the uses, the old one is erased.
std::size_t edit(Graph& graph) {
  std::size_t edits = 0;
  for (Node* relu : graph.find_nodes(Op::call_function, "aten::relu")) {
    const auto scope = graph.inserting_before(*relu);
    Node& made = graph.call_function("aten::neg", {relu->arg(0)});
    relu->replace_all_uses_with(made);
    graph.erase_node(*relu);
    ++edits;
  }
  return edits;
}

void edits(benchmark::State& state, const Graph& graph) {
  Graph copy = graph.clone();
  const std::size_t relus = graph.find_nodes(Op::call_function, "aten::relu").size();
  if (!verified(state, edit(copy) == relus && copy.check().empty(), "the edits")) return;
  time_editing(
      state, graph.size(), [&] { return graph.clone(); },
      [](Graph& subject) { benchmark::DoNotOptimize(edit(subject)); });
}

// The same while a pass counts what happens: three calls for each relu.
void hooked_edits(benchmark::State& state, const Graph& graph) {
  std::size_t told = 0;
  const auto edit_hooked = [&told](Graph& subject) {
    const GraphHooks hooks(subject, {.created = [&](Node&) { ++told; },
                                     .erased = [&](Node&) { ++told; },
                                     .replaced = [&](Node&, const Argument&, Node&) { ++told; }});
    return edit(subject);
  };
  Graph copy = graph.clone();
  const std::size_t relus = graph.find_nodes(Op::call_function, "aten::relu").size();
  if (!verified(state, edit_hooked(copy) == relus && told == 3 * relus, "what hooks are told")) return;
  time_editing(
      state, graph.size(), [&] { return graph.clone(); },
      [&](Graph& subject) { benchmark::DoNotOptimize(edit_hooked(subject)); });
}

const bool graph_registered = register_works({
    {.name = "Build", .time = build, .chain_only = true},
    {.name = "Clone", .time = clone},
    {.name = "Lint", .time = lint},
    {.name = "DeadCode", .time = dead_code, .edits = true},
    {.name = "Edits", .time = edits, .edits = true, .chain_only = true},
    {.name = "EditsHooked", .time = hooked_edits, .edits = true, .chain_only = true},
});

}  // namespace
}  // namespace fx::bench
