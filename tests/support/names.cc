#include "tests/support/names.h"

#include <sstream>

namespace fx::testing {

std::string table(const Graph& graph) {
  std::ostringstream out;
  graph.print_tabular(out);
  return out.str();
}

}  // namespace fx::testing
