#include "tests/support/cut_rule.h"

#include <algorithm>
#include <functional>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ir/node_map.h>

namespace fx::testing {

namespace {

using Nodes = std::vector<const Node*>;

bool has(const Nodes& nodes, const Node& node) { return std::find(nodes.begin(), nodes.end(), &node) != nodes.end(); }
bool fits(const Node& node) { return node.is_callable() || node.is(Op::get_attr); }

Nodes part_of(const Graph& graph, Random& random) {
  Nodes all, part;
  for (const Node& node : graph.nodes()) {
    if (node.is_callable()) all.push_back(&node);
  }
  if (all.empty()) return {};
  part.push_back(random.pick(all));
  for (std::size_t tries = random.below(5); tries > 0; --tries) {
    Nodes near;
    const Node& from = *random.pick(part);
    from.for_each_input([&](const Node& input) { near.push_back(&input); });
    if (random.chance(40)) {
      for (const Node& user : from.users()) near.push_back(&user);
    }
    if (near.empty()) continue;
    const Node& next = *random.pick(near);
    if (fits(next) && !has(part, next)) part.push_back(&next);
  }
  std::sort(part.begin(), part.end(), [](const Node* a, const Node* b) { return a->is_before(*b); });
  return part;
}

/// What the copy of a part is to be.
enum class Change : std::uint8_t { none, target, left_out, twice, view, exchanged, last };

/// Another call of the same values, as far as it takes them.
void retarget(Node& node, Random& random) {
  static constexpr const char* kUnary[] = {"aten::relu",     "aten::relu_", "aten::clone",     "aten::contiguous",
                                           "aten::detach",   "aten::t",     "aten::rand_like", "aten::zero_",
                                           "aten::alias",    "aten::abs",   "aten::dropout_",  "aten::t_",
                                           "aten::sigmoid_", "mine.g",      "aten::sum"};
  static constexpr const char* kBinary[] = {
      "aten::add.Tensor", "aten::mul.Tensor", "aten::matmul", "aten::add_.Tensor", "aten::copy_",     "aten::view_as",
      "aten::mm",         "aten::expand_as",  "mine.f",       "aten::sub.Tensor",  "aten::reshape_as"};
  const bool takes_two = node.args().size() == 2 && node.args()[1].is_node();
  const Symbol target(takes_two ? random.pick(kBinary) : random.pick(kUnary));
  std::vector<Argument> args = {node.args()[0]};
  if (takes_two) args.push_back(node.args()[1]);
  if (target == "aten::dropout_") args.insert(args.end(), {0.5, false});
  node.set_args_kwargs(args, {});
  node.set_target(Op::call_function, target);
}

Graph copy_of(const Nodes& part, const Nodes& results, Change change, std::uint64_t seed) {
  Random random(seed);
  Graph copy;
  std::vector<std::pair<const Node*, Argument>> values;
  const std::function<Argument(Node&)> map = [&](Node& node) -> Argument {
    for (const auto& [known, value] : values) {
      if (known == &node) return value;
    }
    return copy.placeholder("in_" + std::to_string(values.size()));
  };
  // Placeholders first, in the order in which they are taken.
  for (const Node* node : part) {
    node->for_each_input([&](Node& input) {
      const bool known =
          std::any_of(values.begin(), values.end(), [&](const auto& one) { return one.first == &input; });
      if (!known && !has(part, input)) values.emplace_back(&input, map(input));
    });
  }
  const std::size_t changed = random.below(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    const Node& node = *part[i];
    const Node* first = node.args().empty() ? nullptr : node.args()[0].node_or_null();
    if (i == changed && change == Change::left_out && first) {
      values.emplace_back(&node, map(const_cast<Node&>(*first)));
      continue;
    }
    Node* made = &copy.node_copy(node, map);
    if (i == changed && change == Change::twice) made = &copy.node_copy(node, map);
    if (i == changed && change == Change::target && first) retarget(*made, random);
    if (i == changed && change == Change::view) {
      static constexpr const char* kViews[] = {"aten::alias", "aten::t", "aten::clone", "aten::contiguous"};
      made = &copy.call_function(random.pick(kViews), {*made});
    }
    values.emplace_back(&node, *made);
  }
  std::vector<Argument> returned;
  for (const Node* result : results) returned.push_back(map(const_cast<Node&>(*result)));
  if (change == Change::exchanged) std::rotate(returned.begin(), returned.begin() + 1, returned.end());
  copy.output(returned.size() == 1 ? returned[0] : Argument::tuple(returned));
  return copy;
}

}  // namespace

CutRule cut_rule(const Graph& graph, Random& random) {
  const Nodes part = part_of(graph, random);
  if (part.empty()) return {};
  Nodes results;
  for (const Node* node : part) {
    bool inside = false, outside = false;
    for (const Node& user : node->users()) (has(part, user) ? inside : outside) = true;
    if ((outside && node->is_callable()) || !inside) results.push_back(node);
  }
  const auto change = static_cast<Change>(random.below(static_cast<std::size_t>(Change::last)));
  const std::uint64_t seed = random.next();
  return {copy_of(part, results, Change::none, seed), copy_of(part, results, change, seed), change == Change::none};
}

}  // namespace fx::testing
