// Reading: a program as patterns read it. Internal to matchers/ and rewriter/.
//
// A copy of the graph in which called modules are the operators that they compute in evaluation, and calls that write
// over a value that nobody else sees make a new one: `relu_` is `relu`. What a pattern names as it stands stays so:
// modules by path or type, `aten::relu_`. Each node of the copy knows the node of the program that it is part of.
//
// Cost: that of a copy, and of the operators of the modules; none where a program reads as it stands.
// Thread-safety: const functions may run on several threads at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/compiled_pattern.h>
#include <fxgraph/matchers/forms.h>
#include <fxgraph/matchers/match.h>

namespace fx::internal {

class Reading {
 public:
  /// The reading for a search of these patterns together; null where the graph reads as it stands. What `options`
  /// points to must outlive it. Nodes with an id from `made_from` on are taken as they stand.
  static std::shared_ptr<const Reading> of(const Graph& graph, std::span<const Pattern> patterns,
                                           const FindOptions& options, std::uint32_t made_from = ~std::uint32_t{0});

  /// The copy. Searches may hand out its nodes, and change none.
  const Graph& graph() const { return graph_; }
  /// What is known beside the copy.
  const FindOptions& options() const { return options_; }

  /// What its values are by definitions; none unless FindOptions::definitions asks for them.
  const Forms& forms() const { return *forms_; }
  /// What is known of a value of the copy; null: nothing.
  const TensorInfo* info(const Node& node) const { return shapes_[node].tensor(); }
  /// The rows by which the values of a match in the copy are what the pattern says, each once.
  std::vector<const Definition*> rows(const std::vector<Argument>& values) const;

  /// What the program's values are; null: not known.
  const Shapes* program_shapes() const { return program_shapes_; }

  /// The node of the program that a node of the copy is, is made from, or is a part of.
  Node& source(const Node& node) const { return *sources_[node]; }
  /// The node of the program that has the value; null for what lies inside a module or a form.
  Node* value(const Node& node) const { return values_[forms_->standing(node)]; }
  /// True where the program's node does something else: it calls a module, or writes.
  bool is_changed(const Node& node) const { return changed_[node]; }
  /// What the value of a node of the program is in the copy: several where a module makes several.
  const Argument& result(const Node& node) const { return results_[node]; }
  /// What a node of the program is in the copy, in order; nothing of a module that returns what it is given.
  std::vector<const Node*> parts(const Node& source) const;

  /// Makes a match in the copy one in the program. What lies inside a module stays a node of the copy, which the match
  /// keeps alive.
  static void translate(const std::shared_ptr<const Reading>& reading, Match& match);

 private:
  Reading(const Graph& graph, const FindOptions& options);
  class Wanted;
  class Builder;

  Graph graph_;
  FindOptions options_;
  const Shapes* program_shapes_;
  Shapes shapes_;
  NodeMap<Node*> sources_, values_;  // of the copy's nodes
  NodeMap<bool> changed_;            // of the copy's
  NodeMap<Argument> results_;        // of the program's
  std::unique_ptr<Forms> forms_;
  NodeMap<const Node*> first_;  // of the program's: its first part
};

/// What is searched for some patterns: the program, or a reading of it. What it is made of must outlive it.
struct Searched {
  Searched(const Graph& program, std::span<const Pattern> patterns, const FindOptions& given)
      : reading(Reading::of(program, patterns, given)),
        graph(reading ? reading->graph() : program),
        options(reading ? reading->options() : given) {}

  /// What it has for the value of a node of the program; null where that is no one node.
  const Node* value_of(const Node& node) const { return reading ? reading->result(node).node_or_null() : &node; }
  /// What the value that stands at `node` is by definitions.
  std::span<Node* const> forms_of(const Node& node) const {
    return reading ? reading->forms().forms_of(node) : std::span<Node* const>();
  }

  const std::shared_ptr<const Reading> reading;  ///< null: the program itself
  const Graph& graph;
  const FindOptions& options;
};

}  // namespace fx::internal
