// One const Graph, several threads: searches, analyses and texts come out as they do on one.
#include <gtest/gtest.h>

#include <thread>

#include <fxgraph/analysis/dominators.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/codegen/python.h>
#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"
#include "tests/support/workloads.h"

namespace fx::threads_test {

// All that can be asked of a graph without changing it, as text.
std::string everything(const Graph& graph, const PatternSet& patterns) {
  std::string out = print_graph(graph) + python_code(graph);
  for (const SetMatch& found : patterns.find(graph)) out += std::to_string(found.pattern) + found.match.anchor().name();
  const Dominators dominators(graph);
  const PostDominators post_dominators(graph);
  const Liveness live(graph);
  const Effects effects(graph);
  for (const Node& node : graph.nodes()) {
    const Node* above = dominators.immediate(node);
    const Node* below = post_dominators.immediate(node);
    out += (above ? above->name() : "-") + (below ? below->name() : "-") + live.last_use(node).name();
    out += effects.impure(node) ? '!' : '.';
  }
  for (const Node* node : backward_slice(*graph.output_node())) out += node->name();
  for (const LintViolation& violation : graph.check()) out += violation.message;
  return out + std::to_string(live.peak_live()) + print_graph(graph.clone()) +
         print_graph(parse_graph(print_graph(graph)));
}

TEST(Threads, ReadOneGraphAtOnce) {
  PatternSet patterns;
  patterns.add("aten::relu(aten::add.Tensor(x, y))");
  patterns.add("commutative(aten::add.Tensor(aten::relu(x), y))");
  for (const std::string& pattern : testing::patterns_not_in_chain(8)) patterns.add(pattern);
  for (const Graph& graph : {testing::model_mix(400),
                             testing::random_graph(5, {.nodes = 300, .vocabulary = &testing::mutating_vocabulary()}),
                             testing::corpus_graph("export214_transformer")}) {
    const Graph other = graph.clone();  // what is asked for the first time, is asked on several threads
    std::vector<std::string> answers(4);
    std::vector<std::thread> threads;
    for (std::string& answer : answers) threads.emplace_back([&] { answer = everything(graph, patterns); });
    for (std::thread& thread : threads) thread.join();
    const std::string expected = everything(other, patterns);
    for (const std::string& answer : answers) EXPECT_EQ(answer, expected);
  }
}

}  // namespace fx::threads_test
