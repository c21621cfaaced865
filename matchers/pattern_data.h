// How a Pattern is stored: a flat DAG. Internal to matchers/ and rewriter/.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/pattern.h>

namespace fx::internal {

inline constexpr std::uint32_t kNoPattern = ~std::uint32_t{0};

struct PatternNode : PatternTest {
  std::vector<Symbol> operators;    ///< of a call of a function: the overloads that its names mean, by operator_name
  Symbol meaning;                   ///< of a call that is spelt() in Python's words: the operator; else empty
  std::vector<std::uint32_t> args;  ///< operands, elements or alternatives
  std::vector<std::pair<Symbol, std::uint32_t>> kwargs;
  std::vector<std::uint32_t> dims;  ///< sizes, which may come later than the node
  std::uint32_t tail = kNoPattern;

  /// What it calls by name.
  const std::vector<Symbol>& names() const {
    return kind == PatternKind::call && op == Op::call_function ? operators : targets.names();
  }
  /// The operands.
  template <typename Visit>
  void for_each_child(Visit&& visit) const {
    for (const std::uint32_t arg : args) visit(arg);
    for (const auto& [keyword, arg] : kwargs) visit(arg);
  }
};

struct PatternData {
  std::vector<PatternNode> nodes;      ///< operands before their users
  std::vector<std::uint32_t> outputs;  ///< what the pattern returns, in order; one node may be returned twice
  std::vector<std::uint32_t> roots;    ///< the outputs, and calls that are there for their effect only; each once
  std::vector<std::uint32_t> inputs;   ///< named wildcards and holes, in order of declaration
  std::uint32_t anchor = kNoPattern;   ///< the first root that only a call can match: what Match::anchor() is
  std::vector<CallProblem> problems;   ///< calls that nobody can make
  bool from_graph = false;             ///< inputs have positions, and the nodes an order of execution

  /// Index of the node with this name, or -1.
  int find(Symbol name) const;
};

/// Fills what follows from the nodes and outputs, and checks that the pattern can be looked for. Throws when it cannot.
void finish_pattern(PatternData& data);

/// Makes calls that are written in Python's words the operators that they call, and finds the overloads that take the
/// arguments of each call.
void resolve_calls(PatternData& data);
/// True for arguments that choose how a result is computed, not which: a pattern that does not write them accepts any.
bool changes_no_value(Symbol argument);

PatternData flatten(const std::vector<match::Expr>& results, bool check = true);
PatternData read_graph(const Graph& graph, const PatternOptions& options);
PatternData parse_pattern(std::string_view text, const Predicates& predicates = {});
/// Adds to `node` what `type`, such as `f32[N, C, *, *] on cpu`, says of a tensor. Throws Error(syntax).
void parse_tensor_test(std::string_view type, ExprNode& node);
/// The type as parse_tensor_test reads it; `dim` prints a size.
std::string print_tensor_test(const PatternNode& node, const std::function<std::string(std::uint32_t)>& dim);
/// True for FX text; anything else is the expression form.
bool is_graph_text(std::string_view text);
/// Parses the expression form without asking whether it could be looked for: a replacement may return an input.
PatternData parse_expression(std::string_view text);
std::string print_pattern(const PatternData& data);
/// The graph that a pattern without sets, alternatives and open ends spells out; its wildcards are inputs. Throws
/// Error(invalid_argument) for any other pattern.
Graph graph_of_pattern(const PatternData& data);

/// True when the node is one that only a call can match: a call, or alternatives that are all calls.
bool only_calls(const PatternData& data, std::uint32_t index);
/// True when a match gives the node a value: a parameter that a pattern function does not use has none.
bool is_bound(const PatternData& data, std::uint32_t index);
/// The pattern where each operand that is a call may be reached through calls that hand their input on.
PatternData seeing_through(const PatternData& data);
/// True when some node asks for the shapes of values, or for the types of modules.
bool needs_shapes(const PatternData& data);
bool needs_module_types(const PatternData& data);

}  // namespace fx::internal
