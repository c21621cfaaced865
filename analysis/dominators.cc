#include <fxgraph/analysis/dominators.h>

#include <fxgraph/ir/definition_order.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

DominatorTree::DominatorTree(const Graph& graph, bool post) : graph_(&graph), post_(post), root_(graph.id_bound()) {
  records_.resize(root_ + 1, {kUnset, kUnset, 0, 0, 0});
  records_[root_] = {root_, root_, 0, 0, 0};
  preorder_.reserve(graph.size());
  if (post) {
    find_post_dominators();
  } else {
    find_dominators();
  }
  number_subtrees();
}

// What has no jump yet comes later in this walk: only then is it asked who uses what before it is defined.
void DominatorTree::find_dominators() {
  for (const Node& node : graph_->nodes()) {
    std::uint32_t parent = kUnset;
    node.for_each_input([&](const Node& input) {
      if (records_[input.id()].jump == kUnset) [[unlikely]]
        require_definitions_before_uses(*graph_);
      parent = parent == kUnset ? input.id() : nearest_common(parent, input.id());
    });
    attach(node.id(), parent == kUnset ? root_ : parent);
  }
}

// Backwards, each node offers itself to its inputs, so that no use list is walked: until an input's turn comes, its
// `parent` holds the nearest common post-dominator of the users seen so far, and `begin` the last of them. A new user
// is joined with that last one, not with the ancestor of both: users of a value are near each other more often than
// near its post-dominator.
void DominatorTree::find_post_dominators() {
  for (const Node& node : graph_->nodes().reversed()) {
    const std::uint32_t id = node.id(), parent = records_[id].parent;
    attach(id, parent == kUnset ? root_ : parent);
    node.for_each_input([&](const Node& input) {
      Record& record = records_[input.id()];
      if (record.jump != kUnset) [[unlikely]]
        require_definitions_before_uses(*graph_);
      const std::uint32_t last = record.begin;
      record.begin = id;
      if (record.parent == kUnset) {
        record.parent = id;
      } else if (record.parent != root_) {
        const std::uint32_t common = nearest_common(last, id);
        if (records_[common].depth < records_[record.parent].depth) record.parent = common;
      }
    });
  }
}

void DominatorTree::attach(std::uint32_t id, std::uint32_t parent) {
  const Record& p = records_[parent];
  const Record& j = records_[p.jump];
  // Two jumps of equal length make one of their sum: the lengths are skew binary digits of the depth.
  const bool merge = p.depth - j.depth == j.depth - records_[j.jump].depth;
  records_[id] = {parent, merge ? j.jump : parent, p.depth + 1, 1, 0};
  preorder_.push_back(id);
}

std::uint32_t DominatorTree::nearest_common(std::uint32_t a, std::uint32_t b) const {
  const Record* const r = records_.data();
  if (r[a].depth < r[b].depth) std::swap(a, b);
  const std::uint32_t depth = r[b].depth;
  while (r[a].depth > depth) a = r[r[a].jump].depth >= depth ? r[a].jump : r[a].parent;
  // At equal depth the jumps are equally long.
  while (a != b) {
    const bool far = r[a].jump != r[b].jump;
    a = far ? r[a].jump : r[a].parent;
    b = far ? r[b].jump : r[b].parent;
  }
  return a;
}

// Preorder numbers without a stack. Children come after their parents in preorder_, so one pass back adds up subtree
// sizes (kept in `begin`) and one pass forward gives each child the next free piece of its parent's (`end` is where
// that begins).
void DominatorTree::number_subtrees() {
  for (std::size_t i = preorder_.size(); i-- > 0;) {
    const Record& record = records_[preorder_[i]];
    records_[record.parent].begin += record.begin;
  }
  std::vector<std::uint32_t> preorder(preorder_.size());
  for (const std::uint32_t id : preorder_) {
    Record& record = records_[id];
    std::uint32_t& next = records_[record.parent].end;
    const std::uint32_t size = record.begin;
    record.begin = next;
    record.end = next + 1;
    next += size;
    preorder[record.begin] = id;
  }
  preorder_ = std::move(preorder);
}

template <typename Visit>
void DominatorTree::for_each_successor(Node& node, Visit&& visit) const {
  if (post_) {
    node.for_each_input(visit);
  } else {
    for (Node& user : node.users()) visit(user);
  }
}

template <typename Visit>
void DominatorTree::for_each_predecessor(Node& node, Visit&& visit) const {
  if (post_) {
    for (Node& user : node.users()) visit(user);
  } else {
    node.for_each_input(visit);
  }
}

std::vector<Node*> DominatorTree::frontier(const Node& node) const {
  std::vector<Node*> members;
  NodeMap<bool> found(*graph_, false);
  for (Node& inside : dominated(node)) {
    for_each_successor(inside, [&](Node& next) {
      if (strictly_dominates(node, next) || found[next]) return;
      found[next] = true;
      members.push_back(&next);
    });
  }
  return members;
}

// K. D. Cooper, T. J. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm", 2001: a join is in the frontier of
// everything on the way from its predecessors up to its immediate dominator.
std::vector<std::pair<Node*, Node*>> DominatorTree::frontiers() const {
  std::vector<std::pair<Node*, Node*>> pairs;
  std::vector<std::uint32_t> last_join(root_ + 1, kUnset);
  for (const Node& const_join : graph_->nodes()) {
    Node& join = const_cast<Node&>(const_join);
    const std::uint32_t stop = record(join).parent;
    for_each_predecessor(join, [&](Node& from) {
      // What lies above a node that has this join already has it too.
      for (std::uint32_t up = from.id(); up != stop && last_join[up] != join.id(); up = records_[up].parent) {
        last_join[up] = join.id();
        pairs.emplace_back(at(up), &join);
      }
    });
  }
  return pairs;
}

}  // namespace fx
