#include <fxgraph/matchers/pattern_data.h>

#include <string>

#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

/// Makes the graph that an expression stands for.
class GraphBuilder {
 public:
  explicit GraphBuilder(const PatternData& data) : data_(data), values_(data.nodes.size()) {}

  Graph build() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (is_input(data_.nodes[i])) values_[i] = graph_.placeholder(input_name(data_.nodes[i]));
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!is_input(data_.nodes[i])) values_[i] = value(data_.nodes[i]);
    }
    std::vector<Argument> results;
    for (const std::uint32_t output : data_.outputs) results.push_back(values_[output]);
    graph_.output(results.size() == 1 ? results[0] : Argument::tuple(results));
    return std::move(graph_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, "replacement: " + message);
  }

  static bool is_input(const PatternNode& node) {
    return node.kind == PatternKind::any || node.kind == PatternKind::value || node.kind == PatternKind::hole ||
           (node.kind == PatternKind::attribute && node.targets.accepts_all());
  }

  static std::string input_name(const PatternNode& node) {
    if (!node.name.empty()) return node.name.str();
    refuse("an input needs the name of something that the pattern binds");
  }

  static Symbol only_target(const PatternNode& node) {
    if (!node.targets.is_finite() || node.targets.names().size() != 1)
      refuse("a call needs one operator, not a set of them");
    return node.targets.names()[0];
  }

  Argument value(const PatternNode& node) {
    switch (node.kind) {
      case PatternKind::literal: return node.literal;
      case PatternKind::attribute: return graph_.create_node(Op::get_attr, only_target(node), {}, {}, node.name.view());
      case PatternKind::sequence: return Argument::list(arguments(node));
      case PatternKind::call: return call(node);
      case PatternKind::one_of:
      case PatternKind::absent:
        refuse("alternatives and optional parts belong to patterns; write a rule for each, or a function");
      case PatternKind::rest:
        refuse("a rest, `..." + node.name.str() + "`, belongs to patterns; write a function, which has what it took");
      default:
        refuse(
            "`constant`, `!`, `~` and `dominates` say what a value must be and belong to patterns; write the name that "
            "the pattern gives the value");
    }
  }

  std::vector<Argument> arguments(const PatternNode& node) const {
    if (node.open) refuse("`...` belongs to patterns");
    std::vector<Argument> args;
    for (const std::uint32_t arg : node.args) args.push_back(values_[arg]);
    return args;
  }

  Argument call(const PatternNode& node) {
    std::vector<NamedArgument> kwargs;
    for (const auto& [name, arg] : node.kwargs) kwargs.push_back({name, values_[arg]});
    return graph_.create_node(node.op, only_target(node), arguments(node), kwargs, node.name.view());
  }

  const PatternData& data_;
  Graph graph_;
  std::vector<Argument> values_;
};

}  // namespace

Graph graph_of_pattern(const PatternData& data) { return GraphBuilder(data).build(); }

}  // namespace fx::internal
