// Assertions: what must hold when a program runs, as nodes. The one place that makes them; contract.h reads them back.
//
//   fx::AssertionWriter assertions(graph);
//   assertions.add(fx::SizeRelation::at_least, size, 4, "x[0] must be at least 4");
//   assertions.add({fx::SizeRelation::multiple, fx::SizeExpr::symbol("h"), 8}, node_of, "h must be a multiple of 8");
//
// Nodes stand where those stand that the graph is given meanwhile. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <fxgraph/ir/graph.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx {

/// See the top of this file.
class AssertionWriter {
 public:
  /// Makes a call: a graph's own, a rewriter's, one that a trace notes its place at.
  using MakeCall = std::function<Node&(Symbol target, ArgumentSpan arguments)>;
  /// What stands for a symbol: a node, or a number.
  using NumberOf = std::function<Argument(const std::string& symbol)>;

  /// Makes them by `make`.
  explicit AssertionWriter(MakeCall make) : make_(std::move(make)) {}
  /// Makes them at the graph's insertion point.
  explicit AssertionWriter(Graph& graph)
      : make_([&graph](Symbol target, ArgumentSpan arguments) -> Node& {
          return graph.call_function(target, arguments);
        }) {}

  /// True for arithmetic of whole numbers, which alone can be written.
  static bool can_write(const SizeExpr& expression);
  /// The nodes that compute a number, or whether a condition holds. Throws Error(unsupported) for what is no arithmetic
  /// of whole numbers.
  /// @{
  Argument number(const SizeExpr& expression, const NumberOf& number_of) const;
  Argument holds(const SizeCondition& condition, const NumberOf& number_of) const;
  /// @}
  /// That one number, or what else was asked of an input, is another. Of None it is identity; NaN is what is not
  /// itself; what must be true is asserted itself.
  Argument holds(SizeRelation relation, const Argument& left, const Argument& right) const;

  /// Asserts that it holds: the program refuses all else with the message.
  /// @{
  void add(const Argument& holds, std::string_view message) const;
  void add(SizeRelation relation, const Argument& left, const Argument& right, std::string_view message) const {
    add(holds(relation, left, right), message);
  }
  void add(const SizeCondition& condition, const NumberOf& number_of, std::string_view message) const {
    add(holds(condition, number_of), message);
  }
  /// @}

 private:
  Argument made(const SizeExpr& expression, const NumberOf& number_of) const;
  Argument sum(const SizeExpr& expression, const NumberOf& number_of) const;
  Argument call(Symbol target, const Argument& a, const Argument& b) const;

  MakeCall make_;
};

}  // namespace fx
