// Each function of a table is a rule: its call is the pattern, what the function makes at the match the replacement. So
// a decomposition is held to what every rewrite is held to.
#include <fxgraph/rewriter/program/decompose.h>

#include <algorithm>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/matchers/expr.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/retrace/graph_appending_tracer.h>
#include <fxgraph/rewriter/program/replace_pattern.h>

namespace fx {

/// The way in for functions that are known by their signatures alone.
struct internal::AppendedCallable {
  static Argument append(GraphAppendingTracer& tracer, const Callable& function, std::vector<Argument> inputs) {
    return tracer.append_callable(function, std::move(inputs));
  }
};

namespace {

/// Appends what functions compute through the Rewriter of a match, which can undo it.
class RewritingTracer : public GraphAppendingTracer {
 public:
  using GraphAppendingTracer::GraphAppendingTracer;

  /// What `function` computes of `inputs`, at the insertion point of `rewriter`'s graph.
  Argument append(Rewriter& rewriter, const internal::Callable& function, std::vector<Argument> inputs) {
    rewriter_ = &rewriter;
    return internal::AppendedCallable::append(*this, function, std::move(inputs));
  }

 private:
  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override {
    return rewriter_->create_node(op, target, args, kwargs, name);
  }

  Rewriter* rewriter_ = nullptr;
};

constexpr int kMaxDepth = 64;

[[noreturn]] void refuse(const Node& node, ErrorKind kind, const std::string& why) {
  throw Error(kind, "decompose: %" + node.name() + " (" + node.target().str() + "): " + why, node.name());
}

/// The call's arguments in the order of the schema, as many as the function takes.
std::vector<Argument> arguments_of(const Node& node, std::size_t count) {
  const Call call = call_of(node);
  if (!call) return node.args().to_vector();
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
    const Argument* argument = call.argument(i);
    if (i < count) {
      arguments.push_back(argument ? *argument : Argument());
    } else if (const SchemaArgument& other = call.schema().arguments[i]; argument && other.default_value != *argument) {
      refuse(node, ErrorKind::invalid_argument,
             "the function takes " + std::to_string(count) + " arguments, but the call has " + other.name.str() + "=" +
                 to_string(*argument));
    }
  }
  return arguments;
}

/// Makes what functions compute in place of calls.
class Decomposer {
 public:
  Decomposer(RewritingTracer& tracer, const Graph& graph) : tracer_(tracer), depths_(graph) {}

  Argument call_function(const Node& node, const internal::Callable& function, Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    if (depths_[node] == kMaxDepth) {
      refuse(node, ErrorKind::invalid_argument,
             "after " + std::to_string(kMaxDepth) +
                 " rounds the functions still produce operators of the table; let none produce its own operator");
    }
    const std::uint32_t first = graph.id_bound();
    Argument value = appended(node, function, rewriter);
    bool writes = false;
    for (std::uint32_t id = first; id < graph.id_bound(); ++id) {
      const Node* made = graph.node_by_id(id);
      if (!made) continue;
      depths_[*made] = depths_[node] + 1;
      writes |= effects_of(*made).writes;
    }
    if (effects_of(node).writes && !writes) {
      refuse(node, ErrorKind::invalid_argument,
             "the operator writes to its argument, and the function does not: end it with `copy_` to that");
    }
    return value;
  }

 private:
  Argument appended(const Node& node, const internal::Callable& function, Rewriter& rewriter) {
    std::vector<Argument> arguments = arguments_of(node, function.parameters.size());
    try {
      return tracer_.append(rewriter, function, std::move(arguments));
    } catch (const Error& error) {
      refuse(node, error.kind(), error.message());
    }
  }

  RewritingTracer& tracer_;
  NodeMap<int> depths_;  // how many functions made the node, one inside the other
};

RuleSet rules_of(const internal::DecompositionTable& table, Decomposer& decomposer) {
  RuleSet rules;
  for (const auto& [target, function] : table) {
    rules.add({.name = target.str(),
               .pattern = match::op(target.str(), match::rest()),
               .replacement = [&](const Match& match, Rewriter& rewriter) {
                 return decomposer.call_function(match.anchor(), function, rewriter);
               }});
  }
  return rules;
}

/// A getitem of a decomposed call is the part that its function returned.
void take_parts(Graph& graph) {
  Rewriter rewriter(graph);
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || node.target() != python::kGetItem || node.args().size() != 2) continue;
    if (!node.arg(0).is_sequence() || !node.arg(1).is_int()) continue;
    const ArgumentSpan parts = node.arg(0).elements();
    const auto count = static_cast<std::int64_t>(parts.size());
    const std::int64_t index = node.arg(1).as_int() + (node.arg(1).as_int() < 0 ? count : 0);
    if (index < 0 || index >= count) continue;
    rewriter.replace_all_uses_with(node, Argument(parts[static_cast<std::size_t>(index)]));
    rewriter.erase_node(node);
  }
}

/// Decomposes in place, by `rewrite`, which takes rules and options.
template <typename Rewrite>
void decompose_in_place(Graph& graph, const internal::DecompositionTable& table, RewritingTracer& tracer,
                        Shapes* shapes, Rewrite&& rewrite) {
  Decomposer decomposer(tracer, graph);
  const RewriteReport report = rewrite(rules_of(table, decomposer), DriverOptions{.shapes = shapes});
  for (const Refusal& refusal : report.refused) {
    const Node* node = graph.find(refusal.node);
    const Call call = node ? call_of(*node) : Call();
    if (node && internal::find(table, call ? call.schema().target : node->target()))
      refuse(*node, ErrorKind::invalid_argument, refusal.reason);
  }
  take_parts(graph);
}

/// The shapes of the same nodes in a copy of their graph.
Shapes shapes_of_copy(const Shapes* shapes, const Graph& graph, const Graph& copy) {
  Shapes known(copy);
  if (!shapes) return known;
  auto node = copy.nodes().begin();
  for (const Node& original : graph.nodes()) known[*node++] = (*shapes)[original];
  return known;
}

}  // namespace

const internal::Callable* internal::find(const DecompositionTable& table, Symbol target) {
  const auto entry = std::ranges::find(table, canonical_target(target), &DecompositionTable::value_type::first);
  return entry == table.end() ? nullptr : &entry->second;
}

void Decompositions::set(Symbol target, internal::Callable function) {
  std::erase_if(functions_, [&](const auto& entry) { return entry.first == target; });
  functions_.emplace_back(target, std::move(function));
}

std::shared_ptr<GraphModule> decompose(const GraphModule& module, const Decompositions& table, const Shapes* shapes) {
  auto result = std::make_shared<GraphModule>(module, module.graph().clone(), module.class_name());
  Graph& graph = result->graph();
  Shapes known = shapes_of_copy(shapes, module.graph(), graph);
  RewritingTracer tracer(*result, &known);
  decompose_in_place(graph, table.functions_, tracer, &known, [&](const RuleSet& rules, const DriverOptions& options) {
    return rewrite_to_fixed_point(*result, rules, options);
  });
  return result;
}

Graph decompose(const Graph& graph, const Decompositions& table, GraphModule::Attributes* attributes,
                const Shapes* shapes) {
  Graph result = graph.clone();
  Shapes known = shapes_of_copy(shapes, graph, result);
  RewritingTracer tracer(result, &known);
  decompose_in_place(result, table.functions_, tracer, &known, [&](const RuleSet& rules, const DriverOptions& options) {
    return rewrite_to_fixed_point(result, rules, options);
  });
  const GraphModule::Attributes& captured = tracer.attributes();
  if (!captured.empty() && !attributes) {
    throw Error(ErrorKind::invalid_argument,
                "decompose: a function uses a tensor from outside; pass `attributes` to receive it");
  }
  if (attributes) attributes->insert(attributes->end(), captured.begin(), captured.end());
  return result;
}

}  // namespace fx
