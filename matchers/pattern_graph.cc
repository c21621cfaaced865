// A Graph, read as a pattern.
#include <array>
#include <string>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::internal {

namespace {

struct Annotation {
  std::string_view text;
  PatternKind kind;
  HoleKind hole;
};

constexpr std::array kAnnotations = {
    Annotation{"Tensor", PatternKind::value, HoleKind::any},
    Annotation{"torch.Tensor", PatternKind::value, HoleKind::any},
    Annotation{"int", PatternKind::hole, HoleKind::integer},
    Annotation{"float", PatternKind::hole, HoleKind::floating},
    Annotation{"double", PatternKind::hole, HoleKind::floating},
    Annotation{"int64_t", PatternKind::hole, HoleKind::integer},
    Annotation{"bool", PatternKind::hole, HoleKind::boolean},
    Annotation{"str", PatternKind::hole, HoleKind::string},
};

class Reader {
 public:
  Reader(const Graph& graph, const PatternOptions& options) : graph_(graph), options_(options), index_(graph, kNone) {}

  PatternData read() {
    data_.from_graph = true;
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::output)) {
        finish(node);
      } else {
        index_[node] = add(make(node));
      }
    }
    if (!graph_.output_node()) throw Error(ErrorKind::invalid_argument, "pattern: the graph returns nothing");
    for (const Node& node : graph_.nodes()) check_used(node);
    finish_pattern(data_);
    return std::move(data_);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t add(PatternNode node) {
    data_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(data_.nodes.size() - 1);
  }

  PatternNode make(const Node& node) {
    PatternNode made;
    made.name = node.name();
    if (node.is(Op::placeholder)) {
      data_.inputs.push_back(static_cast<std::uint32_t>(data_.nodes.size()));
      make_input(node, made);
    } else if (node.is(Op::get_attr)) {
      made.kind = PatternKind::attribute;
      if (options_.exact_attributes) made.targets = TargetSet(node.target());
    } else {
      make_call(node, made);
    }
    return made;
  }

  void make_input(const Node& node, PatternNode& made) const {
    if (options_.match_placeholder) {
      made.kind = PatternKind::call;
      made.op = Op::placeholder;
      made.bare = true;
      return;
    }
    const Meta* meta = node.find_meta();
    const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    if (!type) return;
    for (const Annotation& annotation : kAnnotations) {
      if (annotation.text != *type) continue;
      made.kind = annotation.kind;
      made.hole = annotation.hole;
    }
  }

  void make_call(const Node& node, PatternNode& made) {
    made.kind = PatternKind::call;
    made.op = node.op();
    if (node.op() != Op::output) made.targets = TargetSet(node.target());
    for (const Argument& arg : node.args()) made.args.push_back(argument(arg));
    for (const auto& [name, value] : node.kwargs()) made.kwargs.emplace_back(name, argument(value));
  }

  std::uint32_t argument(const Argument& value) {
    if (const Node* node = value.node_or_null()) return index_[*node];
    PatternNode made;
    if (names_nodes(value)) {
      made.kind = PatternKind::sequence;
      made.container = value.kind();
      for (const Argument& element : value.elements()) made.args.push_back(argument(element));
    } else {
      made.kind = PatternKind::literal;
      made.literal = value;
    }
    return add(std::move(made));
  }

  void finish(const Node& output) {
    if (options_.match_output) {
      PatternNode made;
      make_call(output, made);
      made.name = "output";
      data_.outputs.push_back(add(std::move(made)));
      return;
    }
    if (!output.args().empty()) collect(output.args()[0]);
  }

  void collect(const Argument& value) {
    if (const Node* node = value.node_or_null()) {
      data_.outputs.push_back(index_[*node]);
    } else if (value.is_sequence() && names_nodes(value)) {
      for (const Argument& element : value.elements()) collect(element);
    } else {
      throw Error(ErrorKind::invalid_argument,
                  "pattern: it returns " + to_string(value) + "; only values that the graph computes can be returned");
    }
  }

  /// A call that nothing uses must be there for its effect, and then is a root of its own.
  void check_used(const Node& node) {
    if (node.has_users() || node.is(Op::placeholder) || node.is(Op::output)) return;
    if (!effects_of(node).impure() || effects_of(node).unknown) {
      throw Error(ErrorKind::invalid_argument,
                  "pattern: nothing uses " + node.name() + "; remove it, it would never take part", node.name());
    }
    data_.roots.push_back(index_[node]);
  }

  const Graph& graph_;
  const PatternOptions& options_;
  NodeMap<std::uint32_t> index_;
  PatternData data_;
};

}  // namespace

PatternData read_graph(const Graph& graph, const PatternOptions& options) { return Reader(graph, options).read(); }

}  // namespace fx::internal
