// What the values of a reading are by definitions: `silu(x)` where x sigmoid(x) stands, and the other way round.
// Internal to matchers/ and rewriter/.
//
// A form is a call that gives a value of the reading, beside the one that stands there. Its nodes are in the reading's
// graph, and nothing but forms uses them. Forms are made from the table's rows until no row makes more, as far as the
// patterns of the search can meet them.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/definitions.h>
#include <fxgraph/matchers/matcher.h>

namespace fx::internal {

/// A call that gives a value by a definition.
struct Form {
  Node* root;                     ///< the call
  Node* of;                       ///< the node that stands there
  const Definition* row;          ///< by which
  std::vector<const Node*> read;  ///< whose types and sizes it goes by
  std::vector<Node*> covers;      ///< what of the graph it stands for, `of` among them, in graph order
};

/// The forms of the values of one graph; see the top of this file.
class Forms {
 public:
  /// Nodes that are made from now on are nodes of forms.
  explicit Forms(const Graph& graph) : first_(graph.id_bound()) {}

  /// Takes in a form.
  void add(Form form);

  /// Calls `visit(Node&)` for the nodes of the graph until it returns false: what stands there before what else it is.
  template <typename Visit>
  void for_each_node(const Graph& graph, Visit&& visit) const {
    std::vector<Node*> made;  // for the node that comes next
    for (Node& node : const_cast<Graph&>(graph).nodes()) {
      if (is_of_form(node)) {
        made.push_back(&node);
        continue;
      }
      if (!visit(node) || !std::ranges::all_of(made, [&](Node* form) { return visit(*form); })) return;
      made.clear();
    }
  }
  /// True for a node that is only there for forms.
  bool is_of_form(const Node& node) const { return node.id() >= first_; }
  /// The form that `node` is the call of; null for any other node.
  const Form* form(const Node& node) const {
    const std::uint32_t at = form_of_[node];
    return at == 0 ? nullptr : &forms_[at - 1];
  }
  /// The node that stands for the same value: of the call of a form the one that stands there.
  const Node& standing(const Node& node) const {
    const Form* form = this->form(node);
    return form ? *form->of : node;
  }
  Node& standing(Node& node) const { return const_cast<Node&>(standing(std::as_const(node))); }
  /// The forms of a value, by the node that stands there.
  std::span<Node* const> forms_of(const Node& node) const {
    const std::uint32_t at = list_of_[node];
    return at == 0 ? std::span<Node* const>() : std::span<Node* const>(lists_[at - 1]);
  }
  /// True for what lies inside a form that counts as one: a match does not end there by another form.
  bool is_part(const Node& node) const { return part_[node]; }
  std::size_t size() const { return forms_.size(); }

 private:
  std::uint32_t first_;
  std::deque<Form> forms_;
  NodeMap<std::uint32_t> form_of_, list_of_;  // 1 + position; 0: none
  std::deque<std::vector<Node*>> lists_;
  NodeMap<bool> part_;
};

/// Adds to `graph` the forms that patterns like these can meet. `info(node)` says what is known of a value.
class FormMaker {
 public:
  using Info = std::function<const TensorInfo*(const Node&)>;
  FormMaker(Graph& graph, Forms& forms, const FindOptions& options, Info info,
            std::function<void(const Node& made, const Node& of)> on_made)
      : graph_(graph), forms_(forms), options_(options), info_(std::move(info)), on_made_(std::move(on_made)) {}

  void run(std::span<const Pattern> patterns);

  /// False where no row has anything to say of such a graph to such patterns.
  static bool may_make_any(const Graph& graph, std::span<const Pattern> patterns);

 private:
  struct Step;
  struct Side;
  static const std::vector<Side>& sides();
  static std::vector<bool> possible_sides(const Graph& graph, std::span<const Pattern> patterns,
                                          std::vector<const Pattern*>& possible_patterns);
  static std::vector<Step> steps_for(const Graph& graph, std::span<const Pattern> patterns);
  bool take(const Step& step);
  bool make(const Step& step, const Match& match);
  Node* instantiate(const Graph& body, const DefinitionSite& site, Node& of);

  Graph& graph_;
  Forms& forms_;
  const FindOptions& options_;
  Info info_;
  std::function<void(const Node&, const Node&)> on_made_;
  std::unordered_multimap<std::size_t, Node*> made_;  // by hash of target and arguments; look-up only
};

}  // namespace fx::internal
