// Graphs as text: FX text out and in, Python source.
#include <fxgraph/codegen/python.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "bench/harness.h"

namespace fx::bench {
namespace {

void print(benchmark::State& state, const Graph& graph) {
  const std::string text = print_graph(graph);
  if (!verified(state, print_graph(parse_graph(text)) == text, "round trip")) return;
  count_per_node(state, "bytes_per_node", text.size(), graph.size());
  time_reading(state, graph.size(), [&] { return print_graph(graph); });
}

void parse(benchmark::State& state, const Graph& graph) {
  const std::string text = print_graph(graph);
  if (!verified(state, print_graph(parse_graph(text)) == text, "round trip")) return;
  time_reading(state, graph.size(), [&] { return parse_graph(text); });
}

void codegen(benchmark::State& state, const Graph& graph) {
  const std::string code = python_code(graph);
  const auto lines = static_cast<std::size_t>(std::count(code.begin(), code.end(), '\n'));
  // A line for the head and one for each node but the inputs.
  if (!verified(state, lines >= 1 + graph.size() - graph.placeholders().size(), "number of lines")) return;
  time_reading(state, graph.size(), [&] { return python_code(graph); });
}

const bool text_registered = register_works({
    {.name = "Print", .time = print},
    {.name = "Parse", .time = parse},
    {.name = "Codegen", .time = codegen},
});

}  // namespace
}  // namespace fx::bench
