#include <fxgraph/effects/effects_of.h>
#include <fxgraph/rewriter/replacement.h>

#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/call_check.h>
#include <fxgraph/rewriter/replacement_plan.h>
#include <fxgraph/text/parse.h>

namespace fx {

namespace {

using internal::PatternData;

/// What nobody can call is no call, wherever it is put. Nodes fit everything.
std::shared_ptr<const Graph> checked(Graph graph) {
  for (const Node& node : graph.nodes()) {
    if (!has_schema_source() && unknown_name(node.op(), node.target())) continue;  // others know it
    const std::optional<CallProblem> problem = call_problem(node);
    if (problem && !problem->foreign_namespace)
      throw Error(ErrorKind::invalid_argument, "replacement: " + problem->message, node.name());
  }
  for (Node& node : graph.nodes()) trust(node);
  return std::make_shared<const Graph>(std::move(graph));
}

std::shared_ptr<const Graph> build(const PatternData& data) { return checked(internal::graph_of_pattern(data)); }

}  // namespace

Replacement::Replacement(const Graph& graph) : graph_(checked(graph.clone())), positional_(true) {}
Replacement::Replacement(Graph&& graph) : graph_(checked(std::move(graph))), positional_(true) {}
Replacement::Replacement(std::string_view text) : positional_(internal::is_graph_text(text)) {
  graph_ = positional_ ? checked(parse_graph(text, "<replacement>")) : build(internal::parse_expression(text));
}
Replacement::Replacement(const match::Expr& result) : Replacement(std::vector<match::Expr>{result}) {}
Replacement::Replacement(const std::vector<match::Expr>& results) : graph_(build(internal::flatten(results, false))) {}

}  // namespace fx
