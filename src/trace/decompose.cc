#include <fxgraph/trace/decompose.h>

#include <fxgraph/nn/module_tree.h>

#include <algorithm>

#include <fxgraph/ops/effects.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/trace/graph_appending_tracer.h>

namespace fx {

/// What functions of a table are called by.
struct internal::DecomposeAccess {
  static const Callable* find(const Decompositions& table, Symbol target) { return table.find(target); }
  static Argument append(GraphAppendingTracer& tracer, const Callable& function, std::vector<Argument> inputs) {
    return tracer.append_callable(function, std::move(inputs));
  }
};

namespace {

constexpr int kMaxRounds = 64;

const Symbol& getitem_symbol() {
  static const Symbol symbol("operator.getitem");
  return symbol;
}

bool is_decomposed(const Node& node, const Decompositions& table) {
  return node.is(Op::call_function) && table.contains(node.target());
}

/// Copies a graph, calling functions in place of operators.
class Decomposer {
 public:
  Decomposer(const Graph& graph, const Decompositions& table, const Shapes* shapes)
      : graph_(graph), table_(table), shapes_(shapes), values_(graph), tracer_(result_, &result_shapes_) {
    tracer_.avoid_paths([this](const std::string& path) { return graph_.count(Op::get_attr, path) != 0; });
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::output)) {
        result_.output(mapped(node.arg(0)));
      } else {
        values_[node] = is_decomposed(node, table_) ? call_function(node) : copy(node);
        note_shape(node);
      }
    }
    return std::move(result_);
  }

  const GraphModule::Attributes& attributes() const { return tracer_.attributes(); }

 private:
  Argument mapped(const Argument& argument) {
    return map_nodes(argument, [this](Node& node) { return values_[node]; });
  }

  // A getitem of a decomposed call takes the part that its function returned.
  Argument copy(const Node& node) {
    if (node.is(Op::call_function) && node.target() == getitem_symbol() && node.args().size() == 2) {
      const Node* of = node.arg(0).node_or_null();
      if (of && node.arg(1).is_int() && values_[*of].is_sequence()) {
        const ArgumentSpan parts = values_[*of].elements();
        const std::int64_t index = node.arg(1).as_int();
        const std::int64_t from_start = index < 0 ? index + static_cast<std::int64_t>(parts.size()) : index;
        if (from_start >= 0 && from_start < static_cast<std::int64_t>(parts.size())) {
          return parts[static_cast<std::size_t>(from_start)];
        }
      }
    }
    return Argument(result_.node_copy(node, [this](Node& input) { return values_[input]; }));
  }

  Argument call_function(const Node& node) {
    const internal::Callable& function = *internal::DecomposeAccess::find(table_, node.target());
    try {
      const std::uint32_t first = result_.id_bound();
      Argument value =
          internal::DecomposeAccess::append(tracer_, function, bound_arguments(node, function.parameters.size()));
      if (effects_of(node).writes && !writes_since(first)) {
        throw Error(ErrorKind::invalid_argument,
                    "the operator writes to its argument, and the function does not: end it with `copy_` to that");
      }
      return value;
    } catch (const Error& error) {
      throw Error(error.kind(), "decompose: %" + node.name() + " (" + node.target().str() + "): " + error.message(),
                  node.name());
    }
  }

  bool writes_since(std::uint32_t first_id) const {
    for (std::uint32_t id = first_id; id < result_.id_bound(); ++id) {
      const Node* node = result_.node_by_id(id);
      if (node && effects_of(*node).writes) return true;
    }
    return false;
  }

  // The call's arguments in the order of the schema, as many as the function takes.
  std::vector<Argument> bound_arguments(const Node& node, std::size_t count) {
    std::vector<Argument> arguments;
    const OperatorSchema* schema = overload_of(node);
    if (!schema) {
      for (const Argument& argument : node.args()) arguments.push_back(mapped(argument));
      return arguments;
    }
    for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
      const Argument* argument = bound_argument(*schema, node, i);
      if (i < count) {
        arguments.push_back(argument ? mapped(*argument) : Argument());
      } else if (argument && schema->arguments[i].default_value != *argument) {
        throw Error(ErrorKind::invalid_argument, "the function takes " + std::to_string(count) +
                                                     " arguments, but the call has " + schema->arguments[i].name.str() +
                                                     "=" + to_string(*argument));
      }
    }
    return arguments;
  }

  void note_shape(const Node& node) {
    const Node* made = values_[node].node_or_null();
    if (shapes_ && made) result_shapes_[*made] = (*shapes_)[node];
  }

  const Graph& graph_;
  const Decompositions& table_;
  const Shapes* shapes_;
  NodeMap<Argument> values_;
  Graph result_;
  Shapes result_shapes_;
  GraphAppendingTracer tracer_;
};

// The functions' own results may hold operators of the table; shapes are known for the first round only.
Graph decompose_all(const Graph& graph, const Decompositions& table, GraphModule::Attributes& attributes,
                    const Shapes* shapes) {
  const auto needs_another_round = [&](const Graph& result) {
    const auto nodes = result.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return is_decomposed(node, table); });
  };
  const auto round = [&](const Graph& from, const Shapes* known) {
    Decomposer decomposer(from, table, known);
    Graph result = decomposer.run();
    attributes.insert(attributes.end(), decomposer.attributes().begin(), decomposer.attributes().end());
    return result;
  };
  Graph result = round(graph, shapes);
  for (int i = 1; needs_another_round(result); ++i) {
    if (i == kMaxRounds) {
      throw Error(ErrorKind::invalid_argument,
                  "decompose: after " + std::to_string(kMaxRounds) +
                      " rounds the functions still produce operators of the table; let none produce its own operator");
    }
    result = round(result, nullptr);
  }
  return result;
}

}  // namespace

const internal::Callable* Decompositions::find(Symbol target) const {
  const auto entry = functions_.find(canonical_target(target));
  return entry == functions_.end() ? nullptr : &entry->second;
}

void Decompositions::set(Symbol target, internal::Callable function) {
  functions_.insert_or_assign(target, std::move(function));
}

std::shared_ptr<GraphModule> decompose(const GraphModule& module, const Decompositions& table, const Shapes* shapes) {
  GraphModule::Attributes attributes;
  Graph graph = decompose_all(module.graph(), table, attributes, shapes);
  for (const Node& node : module.graph().nodes()) {
    const std::string path = node.target().str();
    if (node.is(Op::get_attr)) attributes.emplace_back(path, module.attribute(path));
    if (node.is(Op::call_module)) attributes.emplace_back(path, module.submodule(path));
  }
  auto result = std::make_shared<GraphModule>(attributes, std::move(graph), module.class_name());
  copy_modes(module, *result);
  result->take_mode(module);
  return result;
}

Graph decompose(const Graph& graph, const Decompositions& table, GraphModule::Attributes* attributes,
                const Shapes* shapes) {
  GraphModule::Attributes captured;
  Graph result = decompose_all(graph, table, captured, shapes);
  if (!captured.empty() && !attributes) {
    throw Error(ErrorKind::invalid_argument,
                "decompose: a function uses a tensor from outside; pass `attributes` to receive it");
  }
  if (attributes) attributes->insert(attributes->end(), captured.begin(), captured.end());
  return result;
}

}  // namespace fx
