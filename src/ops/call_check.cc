#include <fxgraph/ops/call_check.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_target.h>

namespace fx {

namespace {

using internal::overload_list;

// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

// The operator whose name differs least, when it differs little.
std::string nearest_operator(std::string_view name) {
  std::string best;
  std::size_t least = 1 + std::min<std::size_t>(2, name.size() / 4);
  for (const Symbol target : builtin_targets()) {
    const std::string_view packet = packet_of(target.view());
    const std::size_t steps = distance(packet.substr(packet.find("::") + 2), name);
    if (steps < least) {
      least = steps;
      best = packet;
    }
  }
  return best;
}

std::string with_suggestion(std::string message, std::string_view name) {
  const std::string nearest = nearest_operator(name);
  return nearest.empty() ? message : message + "; did you mean " + nearest + "?";
}

bool has_operators(std::string_view name_space) {
  constexpr std::array kOwn = {std::string_view("aten"), std::string_view("prim"), std::string_view("quantized")};
  return std::ranges::find(kOwn, name_space) != kOwn.end();
}

std::optional<CallProblem> unknown_operator(Symbol target) {
  const std::string_view text = target.view();
  const std::string_view packet = packet_of(text);
  const internal::Overloads& overloads = overload_list(Symbol(packet));
  if (overloads.empty()) {
    const std::string_view space = text.substr(0, text.find("::"));
    if (!overload_list(Symbol(internal::agreed_name(packet))).empty()) return std::nullopt;
    const std::string message = "no operator " + std::string(packet) + " is known";
    return CallProblem{with_suggestion(message, packet.substr(space.size() + 2)), target, {}, !has_operators(space)};
  }
  if (packet == text || find_overload(target)) return std::nullopt;
  std::string message =
      std::string(packet) + " has no overload " + std::string(text.substr(packet.size() + 1)) + "; it has";
  for (const OperatorSchema* schema : overloads) {
    const std::string_view name = schema->target.view().substr(packet.size());
    message += (schema == overloads.front() ? " " : ", ") + std::string(name.empty() ? "default" : name.substr(1));
  }
  return CallProblem{std::move(message), target};
}

bool is_known_in_python(Op op, Symbol target) {
  const internal::PythonTarget& found = internal::python_target(op, target);
  return !found.candidates.empty() || found.effect || !found.rows.empty();
}

}  // namespace

bool is_known_function(Symbol target) { return is_known_in_python(Op::call_function, canonical_target(target)); }

std::optional<CallProblem> unknown_name(Op op, Symbol target) {
  if (op != Op::call_function) return std::nullopt;
  const Symbol canonical = canonical_target(target);
  const std::string_view text = canonical.view();
  if (text.find("::") != std::string_view::npos) return unknown_operator(canonical);
  if (is_known_in_python(op, canonical)) return std::nullopt;
  const std::size_t last = text.find_last_of(".:");
  const std::string_view name = last == std::string_view::npos ? text : text.substr(last + 1);
  const bool is_operator = !overload_list(Symbol("aten::" + std::string(name))).empty();
  // Functions of torch are known; a single colon, or no module at all, is a slip where an operator has the name.
  const bool torch = text.starts_with("torch.") && std::ranges::count(text, '.') == 1;
  const bool functional = text.starts_with("torch.nn.functional.");
  const bool slip = is_operator && (last == std::string_view::npos || text.find(':') != std::string_view::npos);
  if (!torch && !functional && !slip) return std::nullopt;
  return CallProblem{with_suggestion("no function " + std::string(text) + " is known", name), canonical};
}

/// Of what takes its operator's own arguments.
static std::optional<CallProblem> python_problem(const Node& node) {
  const internal::PythonTarget& target = internal::python_target(node.op(), node.target());
  if (target.op || !target.rows.empty() || target.packet.empty()) return std::nullopt;
  if (internal::python_call_in_pattern(node, /*open=*/true)) return std::nullopt;
  return CallProblem{node.target().str() + " does not take these arguments: no overload of " + target.packet.str() +
                         " has as many, or all of the keywords",
                     node.target()};
}

std::optional<CallProblem> call_problem(const Node& node) {
  if (!node.is(Op::call_function)) return std::nullopt;
  if (std::optional<CallProblem> problem = unknown_name(node.op(), node.target())) return problem;
  const internal::TargetInfo& info = internal::target_info(node.target());
  if (info.overloads->empty()) return python_problem(node);
  std::string why;
  if (info.exact) {
    why = check_call(*info.schema, node.args(), node.kwargs()).value_or("");
  } else {
    resolve_overload(node.target(), node.args(), node.kwargs(), &why);
  }
  return why.empty() ? std::nullopt : std::optional(CallProblem{std::move(why), node.target()});
}

std::vector<CallProblem> call_problems(const Graph& graph) {
  std::vector<CallProblem> problems;
  for (const Node& node : graph.nodes()) {
    std::optional<CallProblem> problem = call_problem(node);
    if (!problem) continue;
    problem->node = node.name();
    problems.push_back(*std::move(problem));
  }
  return problems;
}

bool has_schema_source() { return internal::has_source(); }

}  // namespace fx
