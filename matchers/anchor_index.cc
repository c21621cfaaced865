#include <fxgraph/matchers/anchor_index.h>

#include <algorithm>

namespace fx::internal {

namespace {

constexpr int kMostQuestions = 6;

/// A positional operand of the call that must be one certain call; null when there is none.
const MentionedArgument* telling_operand(const PatternFacts& facts, std::uint32_t call) {
  const PatternNode& node = facts.node(call);
  const CallPlan* plan = node.kind == PatternKind::call && !node.bare ? facts.fixed_plan(call) : nullptr;
  if (!plan || plan->commutes) return nullptr;
  for (const MentionedArgument& operand : plan->operands) {
    const PatternNode& below = facts.node(operand.pattern);
    const bool call_of_one =
        below.kind == PatternKind::call && below.targets.is_finite() && below.targets.names().size() == 1;
    if (call_of_one && operand.position >= 0) return &operand;
  }
  return nullptr;
}

}  // namespace

void AnchorIndex::add(std::uint32_t id, const PatternFacts& facts, const SearchPlan& plan) {
  if (plan.impossible) return;
  if (plan.keys.empty() || (facts.normalize && !normalized_)) {
    anywhere_.push_back(id);
    return;
  }
  for (const TargetKey& wanted : plan.keys) {
    std::uint32_t& root = roots_[key(wanted.op, wanted.target)];
    if (root == 0) {
      root = static_cast<std::uint32_t>(trees_.size());
      trees_.push_back({key(wanted.op, wanted.target), {}, {}});
    }
    std::uint32_t tree = root;
    const MentionedArgument* operand = plan.keys.size() == 1 ? telling_operand(facts, plan.anchor) : nullptr;
    for (int i = 0; operand && i < kMostQuestions; ++i) {
      const PatternNode& below = facts.node(operand->pattern);
      tree = branch(tree, static_cast<std::uint32_t>(operand->position), key(below.op, below.targets.names()[0]));
      operand = telling_operand(facts, operand->pattern);
    }
    trees_[tree].ids.push_back(id);
  }
}

std::uint32_t AnchorIndex::branch(std::uint32_t tree, std::uint32_t position, std::uint64_t key) {
  for (const Tree::Branch& known : trees_[tree].branches) {
    if (known.position == position && known.key == key) return known.tree;
  }
  const auto fresh = static_cast<std::uint32_t>(trees_.size());
  std::vector<Tree::Branch>& branches = trees_[tree].branches;
  const auto after = std::upper_bound(branches.begin(), branches.end(), position,
                                      [](std::uint32_t at, const Tree::Branch& known) { return at < known.position; });
  branches.insert(after, {position, fresh, key});
  trees_.push_back({key, {}, {}});
  return fresh;
}

void AnchorIndex::collect(std::uint32_t tree, const Node* node, std::vector<std::uint32_t>& ids) const {
  // Of the branches that are taken the last is followed here: mostly there is one.
  while (tree != 0) {
    const Tree& at = trees_[tree];
    // Python's functions may take their arguments in another order: there the search itself looks.
    if (normalized_ && key(node->op(), node->target()) != at.key) return collect_all(tree, ids);
    if (!at.ids.empty()) ids.insert(ids.end(), at.ids.begin(), at.ids.end());
    const ArgumentSpan args = node->args();
    const Node* operand = nullptr;
    std::uint64_t found = 0;
    std::uint32_t position = ~std::uint32_t{0};
    const Node* next = nullptr;
    tree = 0;
    for (const Tree::Branch& branch : at.branches) {
      if (branch.position != position) {
        position = branch.position;
        operand = position < args.size() ? args[position].node_or_null() : nullptr;
        found = operand ? key(*operand) : 0;
      }
      if (position >= args.size()) {
        collect_all(branch.tree, ids);  // given by keyword: the search itself looks
      } else if (operand && found == branch.key) {
        if (tree != 0) collect(tree, next, ids);
        tree = branch.tree;
        next = operand;
      }
    }
    node = next;
  }
}

void AnchorIndex::collect_all(std::uint32_t tree, std::vector<std::uint32_t>& ids) const {
  ids.insert(ids.end(), trees_[tree].ids.begin(), trees_[tree].ids.end());
  for (const Tree::Branch& branch : trees_[tree].branches) collect_all(branch.tree, ids);
}

void AnchorIndex::candidates(const Node& node, std::vector<std::uint32_t>& ids) const {
  ids.clear();
  if (!anywhere_.empty()) ids = anywhere_;
  collect(root_of(key(node)), &node, ids);
  if (ids.size() > 1) std::sort(ids.begin(), ids.end());
}

}  // namespace fx::internal
