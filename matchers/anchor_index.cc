#include <fxgraph/matchers/anchor_index.h>

#include <algorithm>

namespace fx::internal {

namespace {

constexpr int kMostQuestions = 6;
constexpr std::size_t kMostNames = 4;

/// A positional operand of the call that must be a call of one of few operators, which go into `names`; null when there
/// is none.
const MentionedArgument* telling_operand(const PatternFacts& facts, std::uint32_t call, std::vector<TargetKey>& names) {
  const PatternNode& node = facts.node(call);
  const OperandPlan* plan = node.kind == PatternKind::call && !node.bare ? facts.fixed_plan(call) : nullptr;
  if (!plan || plan->commutes) return nullptr;
  for (const MentionedArgument& operand : plan->operands) {
    const PatternNode& below = facts.node(operand.pattern);
    if (operand.position < 0 || below.kind != PatternKind::call) continue;
    names.clear();
    if (facts.names_of(operand.pattern, names) && names.size() <= kMostNames) return &operand;
  }
  return nullptr;
}

}  // namespace

void AnchorIndex::add(std::uint32_t id, const PatternFacts& facts, const SearchPlan& plan) {
  if (plan.impossible) return;
  std::vector<TargetKey> names;
  if (!facts.names_of(plan.anchor, names)) {
    anywhere_.push_back(id);
    return;
  }
  for (const TargetKey& wanted : names) add_below(root_for(wanted), id, facts, plan.anchor, kMostQuestions);
}

void AnchorIndex::add_below(std::uint32_t tree, std::uint32_t id, const PatternFacts& facts, std::uint32_t call,
                            int questions) {
  std::vector<TargetKey> names;
  const MentionedArgument* operand = questions > 0 ? telling_operand(facts, call, names) : nullptr;
  if (!operand) return trees_[tree].ids.push_back(id);
  for (const TargetKey& wanted : names) {
    const std::uint32_t next = branch(tree, static_cast<std::uint32_t>(operand->position), key_of(wanted));
    add_below(next, id, facts, operand->pattern, questions - 1);
  }
}

/// An operator goes by the name on which its aliases agree.
std::uint64_t AnchorIndex::key_of(const TargetKey& wanted) {
  return key(wanted.op, wanted.op == Op::call_function ? target_info(wanted.target).name : wanted.target);
}

std::uint32_t AnchorIndex::root_for(const TargetKey& wanted) {
  const std::uint64_t own = key_of(wanted);
  std::uint32_t& root = roots_[own];
  if (root != 0) return root;
  root = static_cast<std::uint32_t>(trees_.size());
  trees_.push_back({own, {}, {}});
  const std::string_view packet = packet_of(wanted.target.view());
  if (packet == wanted.target.view()) return root;
  if (const std::uint64_t every = key_of({wanted.op, Symbol(packet)}); every != own) packets_[every] = 1;
  return root;
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
    if (!at.ids.empty()) ids.insert(ids.end(), at.ids.begin(), at.ids.end());
    const ArgumentSpan args = node->args();
    const Node* operand = nullptr;
    Called found;
    std::uint32_t position = ~std::uint32_t{0};
    const Node* next = nullptr;
    tree = 0;
    for (const Tree::Branch& branch : at.branches) {
      if (branch.position != position) {
        position = branch.position;
        operand = position < args.size() ? args[position].node_or_null() : nullptr;
        found = operand ? called(*operand) : Called{};
      }
      if (position >= args.size()) {
        collect_all(branch.tree, ids);  // given by keyword: the search itself looks
      } else if (operand && (!found.plain || has_forms(*operand))) {
        collect_all(branch.tree, ids);  // nor does its target say what it is
      } else if (operand && found.key == branch.key) {
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
  const Called own = called(node);
  if (own.plain) {
    collect(root_of(own.key), &node, ids);
    if (ids.size() > 1) std::sort(ids.begin(), ids.end());
    return;
  }
  // Python's functions may take their arguments in another order: there the search itself looks.
  for_each_root(node, own, [&](std::uint32_t root) { collect_all(root, ids); });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

bool AnchorIndex::starts_at(const Node& node) const {
  if (!anywhere_.empty()) return true;
  const Called own = called(node);
  bool any = root_of(own.key) != 0;
  if (!own.plain) for_each_root(node, own, [&](std::uint32_t) { any = true; });
  return any;
}

/// Where a node that is spelt in Python's words, or without its overload, may start.
template <typename Visit>
void AnchorIndex::for_each_root(const Node& node, const Called& own, Visit&& visit) const {
  if (const std::uint32_t root = root_of(key(node.op(), node.target()))) visit(root);
  if (const std::uint32_t root = root_of(own.key)) visit(root);
  for (const OperatorSchema* schema : candidate_overloads(node.op(), node.target())) {
    if (const std::uint32_t root = root_of(key(Op::call_function, target_info(schema->target).name))) visit(root);
  }
}

}  // namespace fx::internal
