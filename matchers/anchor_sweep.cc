// A bottom-up tree automaton whose states are made as they are met (Hoffmann and O'Donnell, "Pattern Matching in
// Trees", 1982). Its states number the combinations of answers that occur in the graph, which are few: programs repeat
// themselves.
#include <fxgraph/matchers/anchor_sweep.h>

#include <algorithm>

namespace fx::internal {

AnchorSweep::AnchorSweep(const AnchorIndex& index, const Graph& graph)
    : index_(index), states_of_nodes_(graph.id_bound(), kUnknown), labels_(1), states_(1), place_(index.trees_.size()) {
  for (std::uint32_t tree = 1; tree < index.trees_.size(); ++tree) {
    const AnchorIndex::Tree& questions = index.trees_[tree];
    Label& label = labels_[label_for(questions.key)];
    place_[tree] = static_cast<std::uint32_t>(label.trees.size());
    label.trees.push_back(tree);
    if (index.root_of(questions.key) == tree) label.root = tree;
    for (const AnchorIndex::Tree::Branch& branch : questions.branches) {
      const auto at = std::lower_bound(label.positions.begin(), label.positions.end(), branch.position);
      if (at == label.positions.end() || *at != branch.position) label.positions.insert(at, branch.position);
    }
  }
}

std::uint32_t AnchorSweep::label_for(std::uint64_t key) {
  std::uint32_t& label = label_of_[key];
  if (label == 0) {
    label = static_cast<std::uint32_t>(labels_.size());
    labels_.emplace_back();
    states_.emplace_back();
  }
  return label;
}

// The label of what the node calls: kNothing when no question is about it, kUnknown when its target does not say.
std::uint32_t AnchorSweep::label_of_call(const Node& node) {
  std::uint32_t& known = label_of_spelling_[AnchorIndex::key(node.op(), node.target())];
  if (known == 0) {
    const AnchorIndex::Called called = index_.called(node);
    const std::uint32_t* label = label_of_.find(called.key);
    known = 1 + (!called.plain ? kUnknown : label ? *label : kNothing);
  }
  return known - 1;
}

const std::vector<std::uint32_t>& AnchorSweep::candidates(const Node& node) {
  const std::uint32_t label = label_of_call(node);
  const std::uint32_t state = label == kUnknown || label == kNothing ? label : state_of(label, node);
  states_of_nodes_[node.id()] = state;
  if (state == kNothing) return index_.anywhere_;
  if (state != kUnknown) return states_[state].ids;
  index_.candidates(node, scratch_);
  return scratch_;
}

// An argument that is given by keyword, or comes later in a graph that is out of order, is not known.
std::uint32_t AnchorSweep::state_of_operand(const Node& node, std::uint32_t position) const {
  const ArgumentSpan args = node.args();
  if (position >= args.size()) return kUnknown;
  const Node* operand = args[position].node_or_null();
  if (operand && index_.has_forms(*operand)) return kUnknown;
  return operand ? states_of_nodes_[operand->id()] : kNothing;
}

std::uint32_t AnchorSweep::state_of(std::uint32_t label, const Node& node) {
  std::uint32_t state = label;
  for (const std::uint32_t position : labels_[label].positions) {
    const std::uint32_t operand = state_of_operand(node, position);
    if (operand == kUnknown) return kUnknown;
    const std::uint32_t* next = steps_.find(step(state, operand));
    if (!next) return learn(label, node);
    state = *next;
  }
  return states_[state].label == kUnknown ? learn(label, node) : state;
}

/// Makes the states on the way to the one of `node`, where they are not known yet.
std::uint32_t AnchorSweep::learn(std::uint32_t label, const Node& node) {
  if (states_.size() >= kMostStates) return kUnknown;
  const std::vector<std::uint32_t>& positions = labels_[label].positions;
  for (const std::uint32_t position : positions) {
    if (state_of_operand(node, position) == kUnknown) return kUnknown;
  }
  const std::uint32_t last = state_with(label, node);
  std::uint32_t state = label;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::uint32_t& next = steps_[step(state, state_of_operand(node, positions[i]))];
    if (i + 1 == positions.size()) {
      next = last;
    } else if (next == 0) {
      next = static_cast<std::uint32_t>(states_.size());
      states_.emplace_back();
    }
    state = next;
  }
  return last;
}

/// The state with the answers that hold at `node`, whose operands are known.
std::uint32_t AnchorSweep::state_with(std::uint32_t label, const Node& node) {
  const Label& asked = labels_[label];
  State made;
  made.label = label;
  for (const std::uint32_t tree : asked.trees) {
    const AnchorIndex::Tree& questions = index_.trees_[tree];
    std::vector<std::uint32_t> ids = questions.ids;
    for (const AnchorIndex::Tree::Branch& branch : questions.branches) {
      const State& operand = states_[state_of_operand(node, branch.position)];
      if (operand.label != *label_of_.find(branch.key)) continue;
      const std::vector<std::uint32_t>& more = lists_[operand.answers[place_[branch.tree]]];
      ids.insert(ids.end(), more.begin(), more.end());
    }
    const auto [known, fresh] = list_of_.emplace(ids, lists_.size());
    if (fresh) lists_.push_back(ids);
    made.answers.push_back(known->second);
    if (tree != asked.root) continue;
    made.ids = index_.anywhere_;
    made.ids.insert(made.ids.end(), ids.begin(), ids.end());
    std::sort(made.ids.begin(), made.ids.end());
  }
  if (asked.root == 0) made.ids = index_.anywhere_;
  std::vector<std::uint32_t> key = made.answers;
  key.push_back(label);
  // A label that asks about no operand has its state already, its first.
  const bool fixed = asked.positions.empty();
  const auto [known, fresh] = with_.emplace(std::move(key), fixed ? label : states_.size());
  if (!fresh) return known->second;
  if (fixed) {
    states_[label] = std::move(made);
  } else {
    states_.push_back(std::move(made));
  }
  return known->second;
}

}  // namespace fx::internal
