// Match: one place where a pattern fits, and what its names stand for there.
//
//   for (const fx::Match& m : fx::find(graph, pattern)) std::cout << m["conv"] << " feeds " << m.anchor() << "\n";
//
// A match names nodes of the graph it was found in; it stays readable while those nodes exist. Where a called module
// matched by its operators, a value inside it is a node that the match itself holds, and what the call gives is the
// call.
// Thread-safety: const functions may run on several threads at once.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_facts.h>

namespace fx {

namespace internal {
struct PatternData;
struct MatchBuilder;
struct PatternAccess;
class Reading;
}  // namespace internal

/// What a named rest of a call, `...others`, took.
struct RestArguments {
  std::vector<Argument> args;         ///< by position, with the operator's defaults where the call gives none between
  std::vector<NamedArgument> kwargs;  ///< what can be given by keyword alone
};

/// What the names of a pattern stand for at one place; see the top of this file.
class Match {
 public:
  Match() = default;  ///< of no pattern: binds nothing

  /// The node bound to `name`. Throws Error(not_found) for a name the pattern does not bind, and
  /// Error(invalid_argument) when a literal, a list or nothing is bound.
  Node& operator[](std::string_view name) const;
  /// What is bound to `name`, of any kind; None when an optional part is not there. Throws Error(not_found) for an
  /// unknown name.
  const Argument& argument(std::string_view name) const;
  /// The arguments that the rest called `name` stands for, to be handed on: `...others`. Throws Error(not_found) for an
  /// unknown name and Error(invalid_argument) for what is no rest.
  RestArguments rest(std::string_view name) const;
  /// The number bound to `name`, whether an int, a float or a bool. Throws Error(invalid_argument) for anything else.
  double literal(std::string_view name) const;
  /// True when the pattern binds `name` and something other than None is bound.
  bool has(std::string_view name) const;
  /// The type and shape of the tensor bound to `name`; nothing when FindOptions::shapes does not know it, or when it is
  /// no tensor. In a driver with a guard what is read is noted. Throws Error(not_found) for an unknown name.
  TensorFacts info(std::string_view name) const;
  /// The same of a node that is found from what is bound.
  TensorFacts info(const Node& node) const;
  /// The operator that the call bound to `name` calls, however it is spelt: `aten::div.Tensor` for `operator.truediv`
  /// of a tensor. The target itself when no operator does the same. Throws as operator[].
  Symbol called(std::string_view name) const;
  /// By which rows of matchers/definitions.h values are what the pattern says; none unless FindOptions::definitions was
  /// given.
  std::vector<std::string> definitions() const;
  /// Which alternative of the one_of called `name` fits, counted from 0.
  int alternative(std::string_view name) const;

  /// The node of the pattern's first result that is a call. Throws Error(invalid_argument) for a match of no pattern.
  Node& anchor() const;
  /// Every call that the pattern's operators matched, once each, in graph order. Parameters and wildcards are not among
  /// them.
  std::span<Node* const> nodes() const { return nodes_; }
  /// The values of the pattern's results, in their order.
  std::vector<Argument> outputs() const;
  /// True when the pattern's operators matched `node`.
  bool contains(const Node& node) const;

  /// The nodes that were seen through: copies that stand between two parts of the pattern, in graph order. They are
  /// among nodes().
  std::vector<Node*> skipped() const;
  /// The nodes between the value called `name`, a dominates(), and what dominates it, the latest first. They are among
  /// nodes().
  std::vector<Node*> path(std::string_view name) const;

  /// Everything that is bound, by name, in the pattern's order.
  std::vector<std::pair<Symbol, Argument>> bindings() const;
  /// The value of each part of the pattern, with a name or without, in the pattern's order.
  std::span<const Argument> values() const { return values_; }

  /// True when both bind the same values at every place.
  friend bool operator==(const Match& a, const Match& b) {
    return a.pattern_ == b.pattern_ && a.values_ == b.values_ && a.read_ == b.read_;
  }

 private:
  friend struct internal::MatchBuilder;
  friend struct internal::PatternAccess;
  const Argument& at(std::string_view name, std::uint32_t* index = nullptr) const;

  std::shared_ptr<const internal::PatternData> pattern_;
  std::vector<Argument> values_;
  std::vector<Node*> nodes_;
  std::vector<std::uint8_t> alternatives_;                 // empty when the pattern has none
  std::vector<std::pair<std::uint32_t, Node*>> interior_;  // nodes of see-through edges and paths, by pattern node
  std::shared_ptr<const internal::Reading> reading_;       // in which it was found; null: in the graph itself
  std::vector<Argument> read_;                             // the values there
  const Shapes* shapes_ = nullptr;
  bool notes_ = false;  // what is asked, which one thread may
  mutable FactLog asked_;
};

/// Prints `add_1 {x: x, conv: conv2d_3}`, and ` through clone_2` when that was seen through.
std::ostream& operator<<(std::ostream& out, const Match& match);

/// What torch.fx's SubgraphMatcher returns for a match, by the names of the pattern's nodes.
struct InternalMatch {
  std::vector<Node*> anchors;                                ///< the results that no other part of the pattern uses
  std::vector<std::pair<std::string, Argument>> nodes_map;   ///< every pattern node and what it stands for
  std::vector<Argument> placeholder_nodes;                   ///< what the inputs are bound to, in their order
  std::vector<Node*> returning_nodes;                        ///< the results, in their order
  std::vector<std::pair<std::string, Node*>> name_node_map;  ///< the named nodes among nodes_map
};

/// Says the match in torch.fx's way; it names the same nodes.
InternalMatch internal_match(const Match& match);

}  // namespace fx
