#include <fxgraph/run/failure.h>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>

namespace fx::internal {

void fail(const std::string& message) { throw Error(ErrorKind::execution, message); }

bool has_own_words(const Node& node) {
  return node.target() == python::kAssert && node.args().size() > 1 && node.arg(1).is_string();
}

std::string failure_text(const Node& node, const std::string& call, const std::string& cause) {
  if (has_own_words(node)) return "%" + node.name() + ": " + cause;
  const std::string place = source_place(node);
  return "while running " + call + ": " + cause + (place.empty() ? "" : "; it was made at " + place);
}

}  // namespace fx::internal
