// FX's print_tabular.
#include <array>
#include <ostream>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

namespace {

using Row = std::array<std::string, 5>;

std::string tuple_text(ArgumentSpan args) {
  std::string out = "(";
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += ", ";
    format(out, args[i], NodeStyle::plain);
  }
  return out + (args.size() == 1 ? ",)" : ")");
}

std::string dict_text(KwargSpan kwargs) {
  std::string out = "{";
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (i > 0) out += ", ";
    format_quoted(out, kwargs.name(i).view());
    out += ": ";
    format(out, kwargs.value(i), NodeStyle::plain);
  }
  return out + "}";
}

}  // namespace

void Graph::print_tabular(std::ostream& out) const {
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs"}, {}};
  for (const Node& node : nodes()) {
    rows.push_back({std::string(to_string(node.op())), node.name(), target_text(node.target()), tuple_text(node.args()),
                    dict_text(node.kwargs())});
  }
  std::array<std::size_t, 5> width{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  for (std::size_t i = 0; i < width.size(); ++i) rows[1][i].assign(width[i], '-');
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << row[i];
      if (i + 1 < row.size()) out << std::string(width[i] - row[i].size() + 2, ' ');
    }
    out << '\n';
  }
}

}  // namespace fx
