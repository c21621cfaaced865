// A way from one partition to another is looked for backwards, breadth first; a partition on it counts as one node.
#include <deque>
#include <map>

#include <fxgraph/rewriter/partition/partitioner.h>

namespace fx {
namespace {

constexpr std::size_t kNamesShown = 12;

std::string percent_name(const Node& node) { return "%" + node.name(); }

std::string names(const std::vector<Node*>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kNamesShown; ++i) {
    text += (i ? ", " : "") + percent_name(*nodes[i]);
  }
  if (nodes.size() > kNamesShown) text += ", … and " + std::to_string(nodes.size() - kNamesShown) + " more";
  return text;
}

}  // namespace

std::optional<std::size_t> Partitioning::of(const Node& node) const {
  const std::uint32_t part = part_of_[node];
  return part ? std::optional<std::size_t>(part - 1) : std::nullopt;
}

std::string Partitioning::why_not(const Node& node) const {
  const std::uint32_t reason = reason_of_[node];
  return reason ? reasons_[reason - 1] : std::string();
}

std::string Partitioning::why_apart(std::size_t first, std::size_t second) const {
  const Partition &a = partitions_.at(first), &b = partitions_.at(second);
  if (first == second) return {};
  if (a.colour != b.colour) {
    return "they are of colours " + std::to_string(a.colour) + " and " + std::to_string(b.colour);
  }
  for (const auto& [x, y] : options_.keep_apart) {
    if ((of(*x) == first && of(*y) == second) || (of(*x) == second && of(*y) == first))
      return percent_name(*x) + " and " + percent_name(*y) + " are to be kept apart";
  }
  NodeMap<const Node*> next(*graph_);  // towards `second`; a node of it leads to itself
  std::deque<const Node*> queue;
  std::vector<bool> entered(partitions_.size());
  for (const Node* node : b.nodes) {
    next[*node] = node;
    queue.push_back(node);
  }
  const Node* found = nullptr;
  const auto visit = [&](const Node& node, const Node& from) {
    if (found || next[node] || node.is(Op::placeholder) || node.is(Op::get_attr)) return;
    const std::optional<std::size_t> part = of(node);
    if (part == first) {
      if (of(from) == second) return;  // straight into it is no way around
      next[node] = &from;
      found = &node;
      return;
    }
    next[node] = &from;
    queue.push_back(&node);
    if (!part || entered[*part]) return;
    entered[*part] = true;
    for (const Node* other : partitions_[*part].nodes) {
      if (next[*other]) continue;
      next[*other] = &node;
      queue.push_back(other);
    }
  };
  while (!queue.empty() && !found) {
    const Node& at = *queue.front();
    queue.pop_front();
    at.for_each_input([&](const Node& input) { visit(input, at); });
    if (!options_.order) continue;
    for (const Node* before : options_.order->before(at)) visit(*before, at);
  }
  if (!found) return {};
  std::string text = percent_name(*found);
  for (const Node* at = found; next[*at] != at;) {
    const Node* to = next[*at];
    text += (at == found ? " comes before " : ", which comes before ") + percent_name(*to);
    if (const std::optional<std::size_t> part = of(*to)) {
      if (part != second) text += " (partition " + std::to_string(*part) + ")";
    } else if (const std::string why = why_not(*to); !why.empty()) {
      text += " (" + why + ")";
    }
    at = to;
  }
  return text;
}

std::string Partitioning::report() const {
  std::string text;
  std::map<std::int64_t, std::size_t> last;  // of each colour
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    const Partition& part = partitions_[i];
    text += "partition " + std::to_string(i) + ": " + std::to_string(part.nodes.size()) +
            (part.nodes.size() == 1 ? " node, " : " nodes, ") + names(part.nodes) + "\n";
    if (const auto before = last.find(part.colour); before != last.end()) {
      const std::string why = why_apart(before->second, i);
      if (!why.empty()) text += "  apart from partition " + std::to_string(before->second) + ": " + why + "\n";
    }
    last[part.colour] = i;
  }
  std::vector<std::vector<Node*>> outside(reasons_.size());
  for (const Node& node : graph_->nodes()) {
    if (const std::uint32_t reason = reason_of_[node]) outside[reason - 1].push_back(const_cast<Node*>(&node));
  }
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    if (!outside[i].empty()) text += "outside: " + names(outside[i]) + ": " + reasons_[i] + "\n";
  }
  return text;
}

}  // namespace fx
