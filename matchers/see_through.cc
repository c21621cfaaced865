// A pattern whose edges to calls see through copies: a transparent node is put on each of them.
#include <fxgraph/matchers/pattern_data.h>

namespace fx::internal {

namespace {

class Rebuilder {
 public:
  explicit Rebuilder(const PatternData& from) : from_(from), moved_(from.nodes.size()) {}

  PatternData rebuild() {
    to_.from_graph = from_.from_graph;
    for (std::uint32_t i = 0; i < from_.nodes.size(); ++i) {
      PatternNode node = from_.nodes[i];
      const bool edges = node.kind == PatternKind::call || node.kind == PatternKind::sequence ||
                         (node.kind == PatternKind::one_of && !only_calls(from_, i));
      for (std::uint32_t& arg : node.args) arg = edges ? edge_to(arg) : moved_[arg];
      for (auto& [name, arg] : node.kwargs) arg = edge_to(arg);
      moved_[i] = add(std::move(node));
    }
    for (PatternNode& node : to_.nodes) {
      for (std::uint32_t& dim : node.dims) dim = moved_[dim];
      if (node.tail != kNoPattern) node.tail = moved_[node.tail];
    }
    for (const std::uint32_t output : from_.outputs) to_.outputs.push_back(moved_[output]);
    for (const std::uint32_t root : from_.roots) to_.roots.push_back(moved_[root]);
    for (const std::uint32_t input : from_.inputs) to_.inputs.push_back(moved_[input]);
    to_.anchor = moved_[from_.anchor];
    return std::move(to_);
  }

 private:
  std::uint32_t add(PatternNode node) {
    to_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(to_.nodes.size() - 1);
  }

  /// The operand itself, or a transparent node before it, one for each user: the copies may differ.
  std::uint32_t edge_to(std::uint32_t operand) {
    if (!only_calls(from_, operand)) return moved_[operand];
    PatternNode edge;
    edge.kind = PatternKind::transparent;
    edge.args = {moved_[operand]};
    return add(std::move(edge));
  }

  const PatternData& from_;
  PatternData to_;
  std::vector<std::uint32_t> moved_;
};

}  // namespace

PatternData seeing_through(const PatternData& data) { return Rebuilder(data).rebuild(); }

}  // namespace fx::internal
