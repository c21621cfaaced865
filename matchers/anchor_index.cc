#include "matchers/anchor_index.h"

#include <algorithm>

namespace fx::internal {

namespace {

constexpr int kMostQuestions = 6;

/// A positional operand of the call that must be one certain call; null when there is none.
const Operand* telling_operand(const Program& program, std::uint32_t call) {
  const PatternNode& node = program.node(call);
  const CallPlan* plan = node.kind == PatternKind::call && !node.bare ? program.fixed_plan(call) : nullptr;
  if (!plan || program.commutes(call, *plan)) return nullptr;
  for (const Operand& operand : plan->operands) {
    const PatternNode& below = program.node(operand.pattern);
    const bool call_of_one =
        below.kind == PatternKind::call && below.targets.is_finite() && below.targets.names().size() == 1;
    if (call_of_one && operand.position >= 0) return &operand;
  }
  return nullptr;
}

}  // namespace

void AnchorIndex::add(std::uint32_t id, Program& program, const SearchPlan& plan) {
  if (plan.impossible) return;
  if (plan.keys.empty() || program.normalizes()) {
    anywhere_.push_back(id);
    return;
  }
  for (const TargetKey& wanted : plan.keys) {
    std::uint32_t& root = roots_[key(wanted.op, wanted.target)];
    if (root == 0) {
      root = static_cast<std::uint32_t>(trees_.size());
      trees_.emplace_back();
    }
    std::uint32_t tree = root;
    const Operand* operand = plan.keys.size() == 1 ? telling_operand(program, plan.anchor) : nullptr;
    for (int i = 0; operand && i < kMostQuestions; ++i) {
      const PatternNode& below = program.node(operand->pattern);
      tree = branch(tree, static_cast<std::uint32_t>(operand->position), key(below.op, below.targets.names()[0]));
      operand = telling_operand(program, operand->pattern);
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
  trees_.emplace_back();
  return fresh;
}

void AnchorIndex::collect(std::uint32_t tree, const Node& node, std::vector<std::uint32_t>& ids) const {
  const Tree& at = trees_[tree];
  ids.insert(ids.end(), at.ids.begin(), at.ids.end());
  if (at.branches.empty()) return;
  const ArgumentSpan args = node.args();
  const Node* operand = nullptr;
  std::uint64_t found = 0;
  std::uint32_t position = ~std::uint32_t{0};
  for (const Tree::Branch& branch : at.branches) {
    if (branch.position != position) {
      position = branch.position;
      operand = position < args.size() ? args[position].node_or_null() : nullptr;
      found = operand ? key(operand->op(), operand->target()) : 0;
    }
    if (position >= args.size()) {
      collect_all(branch.tree, ids);  // given by keyword: the search itself looks
    } else if (operand && found == branch.key) {
      collect(branch.tree, *operand, ids);
    }
  }
}

void AnchorIndex::collect_all(std::uint32_t tree, std::vector<std::uint32_t>& ids) const {
  ids.insert(ids.end(), trees_[tree].ids.begin(), trees_[tree].ids.end());
  for (const Tree::Branch& branch : trees_[tree].branches) collect_all(branch.tree, ids);
}

void AnchorIndex::candidates(const Node& node, std::vector<std::uint32_t>& ids) const {
  ids.clear();
  ids.insert(ids.end(), anywhere_.begin(), anywhere_.end());
  if (const std::uint32_t root = root_of(node)) collect(root, node, ids);
  if (ids.size() > 1) std::sort(ids.begin(), ids.end());
}

}  // namespace fx::internal
