// Random edits of a graph, checked after each against a model that is only vectors. Its expectations are gtest's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include "tests/support/names.h"

namespace fx::testing {

/// An argument: a node (its key), an int, or a list of arguments.
struct ModelArgument {
  int node = -1;
  int number = 0;
  bool list = false;
  std::vector<ModelArgument> elements;
};

struct ModelNode {
  Node* node = nullptr;
  std::string name;
  std::vector<ModelArgument> args, kwargs;  // keywords are k0, k1, …
  std::vector<int> users;                   // distinct, in order of first use
};

inline void visit(std::vector<ModelArgument>& arguments, const auto& change) {
  for (ModelArgument& argument : arguments) {
    if (argument.list) {
      visit(argument.elements, change);
    } else if (argument.node >= 0) {
      change(argument);
    }
  }
}

/// `Choices` says what is done: below(bound) and chance(percent).
template <typename Choices>
class EditModel {
 public:
  explicit EditModel(Choices choices) : random_(std::move(choices)) {}

  void run(int steps) {
    for (int i = 0; i < 3; ++i) add(graph_.placeholder("in"), {}, {}, order_.size());
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      edit();
      check();
    }
  }

 private:
  void edit() {
    switch (random_.below(9)) {
      case 0:
      case 1:
      case 2: create(); break;
      case 3: erase(); break;
      case 4: replace_all_uses(); break;
      case 5: replace_input(); break;
      case 6: set_arguments(); break;
      case 7: move(); break;
      default: copy_whole(); break;
    }
  }

  // ── Edits, on both sides ───────────────────────────────────────────────────────────────────────────────────────────

  void create() {
    const std::size_t at = 3 + random_.below(order_.size() - 2);
    std::vector<ModelArgument> args = some_arguments(), kwargs = some_arguments();
    const bool at_end = at == order_.size();
    auto scope = at_end               ? graph_.inserting_after()
                 : random_.chance(50) ? graph_.inserting_before(*nodes_[order_[at]].node)
                                      : graph_.inserting_after(*nodes_[order_[at - 1]].node);
    const int count = 1 + static_cast<int>(random_.below(3));
    for (int i = 0; i < count; ++i) {
      Node& node = graph_.call_function("aten::f", arguments(args), keywords(kwargs));
      add(node, args, kwargs, at + static_cast<std::size_t>(i));
    }
  }

  void erase() {
    const int key = any();
    ModelNode& model = nodes_[key];
    if (!model.users.empty()) {
      EXPECT_THROW(graph_.erase_node(*model.node), Error);
      return;
    }
    if (model.node->is(Op::placeholder)) return;
    graph_.erase_node(*model.node);
    EXPECT_TRUE(model.node->is_erased());
    unregister(key);
    std::erase(order_, key);
    nodes_.erase(key);
  }

  void replace_all_uses() {
    const int from = any(), to = any();
    const bool filtered = random_.chance(50);
    const std::size_t salt = random_.below(3);
    const auto accepts = [&](const Node& user) { return !filtered || user.id() % 3 != salt; };
    std::vector<int> changing;
    for (const int user : nodes_[from].users) {
      if (accepts(*nodes_[user].node)) changing.push_back(user);
    }
    Node& old = *nodes_[from].node;
    const auto call = [&] {
      return filtered ? old.replace_all_uses_with(*nodes_[to].node, accepts)
                      : old.replace_all_uses_with(*nodes_[to].node);
    };
    if (from == to) {
      EXPECT_TRUE(call().empty());
      return;
    }
    if (std::ranges::count(changing, to)) {
      EXPECT_THROW(call(), Error) << "a self-cycle";
      return;
    }
    std::vector<Node*> expected;
    for (const int user : changing) expected.push_back(nodes_[user].node);
    EXPECT_EQ(call(), expected);
    for (const int user : changing) redirect(user, from, to);
  }

  void replace_input() {
    const int user = any(), from = any(), to = any();
    if (user == to) {
      EXPECT_THROW(nodes_[user].node->replace_input_with(*nodes_[from].node, *nodes_[to].node), Error);
      return;
    }
    nodes_[user].node->replace_input_with(*nodes_[from].node, *nodes_[to].node);
    if (from != to && std::ranges::count(nodes_[from].users, user)) redirect(user, from, to);
  }

  void set_arguments() {
    const int key = any();
    ModelNode& model = nodes_[key];
    if (model.node->is(Op::placeholder)) return;
    if (random_.chance(50)) {
      model.args = some_arguments();
      model.node->set_args(arguments(model.args));
    } else {
      model.kwargs = some_arguments();
      model.node->set_kwargs(keywords(model.kwargs));
    }
    unregister(key);
    register_uses(key);
  }

  void move() {
    const int key = any(), anchor = any();
    if (nodes_[key].node->is(Op::placeholder) || nodes_[anchor].node->is(Op::placeholder)) return;
    const bool after = random_.chance(50);
    if (after) {
      nodes_[anchor].node->append(*nodes_[key].node);
    } else {
      nodes_[anchor].node->prepend(*nodes_[key].node);
    }
    if (key == anchor) return;
    std::erase(order_, key);
    order_.insert(std::ranges::find(order_, anchor) + after, key);
  }

  // Copies must equal the original; the graph under test goes on as one of them now and then.
  void copy_whole() {
    NodeMap<Node*> map;
    Graph clone = graph_.clone(&map);
    EXPECT_EQ(table(clone), table(graph_));
    if (valid_) {
      Graph copy;
      NodeMap<Argument> values(graph_);
      EXPECT_EQ(copy.graph_copy(graph_, values), std::nullopt);
      EXPECT_EQ(copy.size(), graph_.size());
      copy.lint();
    }
    if (random_.chance(50)) return;
    for (auto& [key, model] : nodes_) model.node = map[*model.node];
    graph_ = std::move(clone);
    for (auto& [key, model] : nodes_) model.users.clear();  // users of a clone are in the order of the nodes
    for (const int key : order_) register_uses(key);
  }

  // ── The model ──────────────────────────────────────────────────────────────────────────────────────────────────────

  int any() { return order_[random_.below(order_.size())]; }

  ModelArgument some_argument(int depth) {
    ModelArgument argument;
    if (depth < 3 && random_.chance(20)) {
      argument.list = true;
      for (std::size_t i = random_.below(4); i > 0; --i) argument.elements.push_back(some_argument(depth + 1));
    } else if (random_.chance(80)) {
      argument.node = order_[random_.chance(40) ? random_.below(3) : random_.below(order_.size())];
    } else {
      argument.number = static_cast<int>(random_.below(10));
    }
    return argument;
  }

  std::vector<ModelArgument> some_arguments() {
    std::vector<ModelArgument> made;
    const std::size_t count = random_.chance(3) ? 40 : random_.below(4);  // large ones: blocks of another size class
    for (std::size_t i = 0; i < count; ++i) made.push_back(some_argument(0));
    return made;
  }

  Argument argument(const ModelArgument& model) {
    if (model.list) return Argument::list(arguments(model.elements));
    return model.node >= 0 ? Argument(nodes_[model.node].node) : Argument(model.number);
  }

  std::vector<Argument> arguments(const std::vector<ModelArgument>& models) {
    std::vector<Argument> made;
    for (const ModelArgument& model : models) made.push_back(argument(model));
    return made;
  }

  std::vector<NamedArgument> keywords(const std::vector<ModelArgument>& models) {
    std::vector<NamedArgument> made;
    for (const ModelArgument& model : models) made.push_back({"k" + std::to_string(made.size()), argument(model)});
    return made;
  }

  void add(Node& node, std::vector<ModelArgument> args, std::vector<ModelArgument> kwargs, std::size_t at) {
    const int key = next_key_++;
    nodes_[key] = {&node, node.name(), std::move(args), std::move(kwargs), {}};
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(at), key);
    register_uses(key);
  }

  void register_uses(int user) {
    const auto add_user = [&](ModelArgument& argument) {
      std::vector<int>& users = nodes_[argument.node].users;
      if (!std::ranges::count(users, user)) users.push_back(user);
    };
    visit(nodes_[user].args, add_user);
    visit(nodes_[user].kwargs, add_user);
  }

  void unregister(int user) {
    for (auto& [key, model] : nodes_) std::erase(model.users, user);
  }

  void redirect(int user, int from, int to) {
    const auto change = [&](ModelArgument& argument) {
      if (argument.node == from) argument.node = to;
    };
    visit(nodes_[user].args, change);
    visit(nodes_[user].kwargs, change);
    std::erase(nodes_[from].users, user);
    if (!std::ranges::count(nodes_[to].users, user)) nodes_[to].users.push_back(user);
  }

  // ── The comparison ─────────────────────────────────────────────────────────────────────────────────────────────────

  void check() {
    ASSERT_EQ(graph_.size(), order_.size());
    ASSERT_EQ(graph_.node_by_id(graph_.id_bound()), nullptr);
    std::map<int, std::size_t> place;
    std::size_t i = 0;
    for (Node& node : graph_.nodes()) {
      ASSERT_EQ(&node, nodes_[order_[i]].node);
      place[order_[i]] = i;
      ++i;
    }
    i = order_.size();
    for (Node& node : graph_.nodes().reversed()) ASSERT_EQ(&node, nodes_[order_[--i]].node);
    for (int pair = 0; pair < 10; ++pair) {
      const int a = any(), b = any();
      ASSERT_EQ(nodes_[a].node->is_before(*nodes_[b].node), place[a] < place[b]);
    }
    std::size_t late = 0;  // uses before their definitions
    for (auto& [key, model] : nodes_) {
      ASSERT_EQ(model.node->name(), model.name);
      ASSERT_EQ(model.node->args().to_vector(), arguments(model.args));
      ASSERT_EQ(model.node->kwargs().to_vector(), keywords(model.kwargs));
      std::vector<Node*> users;
      for (const int user : model.users) users.push_back(nodes_[user].node);
      ASSERT_EQ(model.node->users().to_vector(), users) << model.name;
      ASSERT_EQ(model.node->num_users(), users.size());
      const auto count_late = [&](ModelArgument& argument) { late += place[argument.node] >= place[key]; };
      visit(model.args, count_late);
      visit(model.kwargs, count_late);
    }
    const std::vector<LintViolation> violations = graph_.check();
    ASSERT_EQ(violations.size(), late);
    for (const LintViolation& violation : violations) ASSERT_EQ(violation.rule, 3);
    valid_ = late == 0;
  }

  Choices random_;
  Graph graph_;
  std::map<int, ModelNode> nodes_;
  std::vector<int> order_;
  int next_key_ = 0;
  bool valid_ = true;
};

}  // namespace fx::testing
