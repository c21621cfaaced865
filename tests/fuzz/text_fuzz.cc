// Graph text: it is a graph, or refused as a mistake of syntax. What is printed reads back as it was printed.
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph = fx::fuzz::made_or_refused([&] { return fx::parse_graph(fx::fuzz::text_of(data, size)); });
  if (!graph) return 0;
  const std::string printed = fx::print_graph(*graph);
  const auto again = fx::fuzz::made_or_refused([&] { return fx::parse_graph(printed); });
  fx::fuzz::expect(again && fx::print_graph(*again) == printed, "print and parse are each other's inverse", printed);
  fx::fuzz::expect(fx::print_graph(graph->clone()) == printed, "a clone prints the same", printed);
  (void)fx::print_json(*graph);
  (void)fx::print_dot(*graph);
  (void)graph->check();
  return 0;
}
