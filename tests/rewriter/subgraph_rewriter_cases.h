// The cases of torch.fx's test/fx/test_subgraph_rewriter.py that a table can hold, each by its name there.
#pragma once

#include <cstddef>
#include <ostream>
#include <vector>

#include "tests/support/short_graph.h"

namespace fx::testing {

/// A graph as graph_of takes it.
struct Source {
  const char* inputs;
  const char* body;

  Graph graph() const { return graph_of(body, inputs); }
};

enum class Computes { other, same };  // whether the replacement computes what the pattern does

struct SubgraphRewriterCase {
  const char* name;
  Source graph;
  Source pattern;
  Source replacement;
  const char* expected;  // the graph afterwards
  std::size_t applied = 1;
  Computes result = Computes::other;
  bool allow_output_aliases = false;
};
inline std::ostream& operator<<(std::ostream& out, const SubgraphRewriterCase& one) { return out << one.name; }

const std::vector<SubgraphRewriterCase>& subgraph_rewriter_cases();

}  // namespace fx::testing
