#include <fxgraph/trace/trace_log.h>

#include <fxgraph/ir/target.h>

namespace fx::internal {
namespace {

const Argument* leaf_of(const Argument& argument, std::uint32_t& leaf) {
  if (!argument.is_container() || argument.kind() == ArgumentKind::complex) return leaf-- == 0 ? &argument : nullptr;
  for (const Argument& element : argument.elements()) {
    if (const Argument* found = leaf_of(element, leaf)) return found;
  }
  return nullptr;
}

}  // namespace

std::uint32_t count_leaves(const Argument& argument) {
  if (!argument.is_container() || argument.kind() == ArgumentKind::complex) return 1;
  std::uint32_t count = 0;
  for (const Argument& element : argument.elements()) count += count_leaves(element);
  return count;
}

void TraceLog::making(const TracedCall& call) {
  const auto first = static_cast<std::uint32_t>(arguments_.size());
  for (const Argument& argument : call.arguments) arguments_.push_back(argument);
  calls_.push_back(
      {call.op, call.target, call.record, first, static_cast<std::uint32_t>(call.arguments.size()), nullptr, 0});
}

void TraceLog::made(Node& node) {
  calls_.back().node = &node;
  if (node.id() >= index_by_id_.size()) index_by_id_.resize(node.id() + 1 + index_by_id_.size() / 2);
  index_by_id_[node.id()] = size() - 1;
}

void TraceLog::note_rank_query(const Node& node) {
  const std::uint32_t of = index_of(node);
  if (rank_questions_.empty() || rank_questions_.back().of != of) rank_questions_.push_back({of, size()});
}

void TraceLog::asked(const Node& node) {
  const std::uint32_t of = index_of(node);
  if (questions_.empty() || questions_.back().of != of) questions_.push_back({of, size()});
}

std::uint32_t TraceLog::operator_at(std::uint32_t i) const {
  while (i + 1 < size() && calls_[i].op == Op::get_attr) ++i;
  return i;
}

Argument TraceLog::leaf(std::uint32_t i, std::uint32_t leaf) const {
  for (const Argument& argument : arguments(i)) {
    if (const Argument* found = leaf_of(argument, leaf)) return *found;
  }
  return {};
}

std::uint32_t TraceLog::num_leaves(std::uint32_t i) const {
  std::uint32_t count = 0;
  for (const Argument& argument : arguments(i)) count += count_leaves(argument);
  return count;
}

void TraceLog::note_leaf(std::uint32_t first, std::uint32_t last) {
  inside_leaf_.resize(size());
  for (std::uint32_t call = first + 1; call <= last; ++call) inside_leaf_[call] = true;
}

std::string TraceLog::describe(std::uint32_t i) const {
  i = operator_at(i);
  if (i >= size()) return "the end of the program";
  const Call& call = calls_[i];
  std::string name = call.op == Op::output ? "the result" : call.target.str();
  for (const Argument& argument : arguments(i)) {
    const Node* input = argument.node_or_null();
    if (!input || calls_[index_of(*input)].op != Op::get_attr) continue;
    return calls_[index_of(*input)].target.str() + " (" + name + ")";
  }
  return name;
}

}  // namespace fx::internal
