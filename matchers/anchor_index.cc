#include "matchers/anchor_index.h"

#include <algorithm>

namespace fx::internal {

namespace {

/// A positional operand of the anchor that must be one certain call; null when there is none.
const Operand* telling_operand(Program& program, const SearchPlan& plan) {
  const PatternNode& anchor = program.node(plan.anchor);
  if (anchor.kind != PatternKind::call || anchor.bare || plan.keys.size() != 1) return nullptr;
  const CallPlan* call = program.fixed_plan(plan.anchor);
  if (!call || program.commutes(plan.anchor, *call)) return nullptr;
  for (const Operand& operand : call->operands) {
    const PatternNode& node = program.node(operand.pattern);
    const bool call_of_one =
        node.kind == PatternKind::call && node.targets.is_finite() && node.targets.names().size() == 1;
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
  const Operand* operand = telling_operand(program, plan);
  for (const TargetKey& wanted : plan.keys) {
    std::uint32_t& at = index_[key(wanted.op, wanted.target)];
    if (at == 0) {
      entries_.emplace_back();
      at = static_cast<std::uint32_t>(entries_.size());
    }
    Entries& entries = entries_[at - 1];
    if (operand) {
      const PatternNode& node = program.node(operand->pattern);
      add_to_bucket(entries, static_cast<std::size_t>(operand->position), key(node.op, node.targets.names()[0]), id);
    } else {
      entries.always.push_back(id);
    }
  }
}

void AnchorIndex::add_to_bucket(Entries& entries, std::size_t position, std::uint64_t key, std::uint32_t id) {
  if (std::find(entries.positions.begin(), entries.positions.end(), position) == entries.positions.end())
    entries.positions.push_back(position);
  const auto before = [&](const Entries::Bucket& bucket, int) {
    return std::pair(bucket.position, bucket.key) < std::pair(position, key);
  };
  auto at = std::lower_bound(entries.buckets.begin(), entries.buckets.end(), 0, before);
  if (at == entries.buckets.end() || at->position != position || at->key != key)
    at = entries.buckets.insert(at, {position, key, {}});
  at->ids.push_back(id);
}

void AnchorIndex::candidates(const Node& node, std::vector<std::uint32_t>& ids) const {
  ids.clear();
  ids.insert(ids.end(), anywhere_.begin(), anywhere_.end());
  std::size_t sources = !ids.empty();
  if (const Entries* entries = entries_of(node)) {
    ids.insert(ids.end(), entries->always.begin(), entries->always.end());
    sources += !entries->always.empty();
    const ArgumentSpan args = node.args();
    for (const std::size_t position : entries->positions) {
      const Node* operand = position < args.size() ? args[position].node_or_null() : nullptr;
      const std::uint64_t wanted = operand ? key(operand->op(), operand->target()) : 0;
      const bool unknown = position >= args.size();  // given by keyword: the search itself looks
      for (const Entries::Bucket& bucket : entries->buckets) {
        if (bucket.position != position || (bucket.key != wanted && !unknown)) continue;
        ids.insert(ids.end(), bucket.ids.begin(), bucket.ids.end());
        ++sources;
      }
    }
  }
  if (sources > 1) std::sort(ids.begin(), ids.end());
}

}  // namespace fx::internal
