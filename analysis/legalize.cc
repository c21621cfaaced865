// Kahn's algorithm with a heap: of the nodes that may come next, the one that stood first. Effects are known of a legal
// order alone, so the new one is looked at: whoever touches a storage must stand on the same side of its writers.
#include <fxgraph/analysis/legalize.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <vector>

#include <fxgraph/analysis/schedule.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

class Legalizer {
 public:
  Legalizer(Graph& graph, const EffectsOptions& options) : graph_(graph), options_(options), place_(graph, 0) {
    for (Node& node : graph.nodes()) {
      place_[node] = old_.size();
      old_.push_back(&node);
    }
  }

  std::size_t run() {
    if (is_legal()) return 0;
    find_edges();
    sort();
    if (order_.size() != old_.size()) refuse_cycle();
    apply_order(graph_, order_);
    try {
      check_effects();
    } catch (...) {
      apply_order(graph_, old_);
      throw;
    }
    std::size_t moved = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) moved += order_[i] != old_[i];
    return moved;
  }

 private:
  static int rank(const Node& node) { return node.is(Op::placeholder) ? 0 : node.is(Op::output) ? 2 : 1; }

  bool is_legal() const {
    int last = 0;
    for (const Node* node : old_) {
      if (rank(*node) < last) return false;
      last = rank(*node);
      bool legal = true;
      node->for_each_input([&](const Node& input) { legal &= place_[input] < place_[*node]; });
      if (!legal) return false;
    }
    return true;
  }

  void find_edges() {
    after_.resize(old_.size());
    waits_.assign(old_.size(), 0);
    const auto add = [&](std::size_t before, std::size_t after) {
      after_[before].push_back(after);
      ++waits_[after];
    };
    std::size_t last = kNone;
    for (std::size_t i = 0; i < old_.size(); ++i) {
      for (Node* input : old_[i]->all_input_nodes()) add(place_[*input], i);
      if (!effects_of(*old_[i], options_.modules).impure()) continue;
      if (last != kNone) add(last, i);
      last = i;
    }
  }

  void sort() {
    using Entry = std::pair<int, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::vector<std::size_t> waits = waits_;
    for (std::size_t i = 0; i < old_.size(); ++i) {
      if (waits[i] == 0) ready.emplace(rank(*old_[i]), i);
    }
    while (!ready.empty()) {
      const std::size_t at = ready.top().second;
      ready.pop();
      order_.push_back(old_[at]);
      for (const std::size_t next : after_[at]) {
        if (--waits[next] == 0) ready.emplace(rank(*old_[next]), next);
      }
    }
    waits_ = std::move(waits);
  }

  // Every node that is left waits for another that is left: going from one to the next ends in a cycle.
  [[noreturn]] void refuse_cycle() const {
    std::vector<std::size_t> before(old_.size(), kNone);
    for (std::size_t i = 0; i < old_.size(); ++i) {
      if (waits_[i] == 0) continue;
      for (const std::size_t next : after_[i]) {
        if (waits_[next] != 0) before[next] = i;
      }
    }
    std::size_t at = 0;
    while (waits_[at] == 0) ++at;
    std::vector<bool> seen(old_.size(), false);
    for (; !seen[at]; at = before[at]) seen[at] = true;
    std::string text = "%" + old_[at]->name();
    std::size_t shown = 0;
    for (std::size_t i = before[at]; i != at && shown < 8; i = before[i], ++shown)
      text += ", which needs %" + old_[i]->name();
    throw Error(ErrorKind::invalid_argument,
                "legalize_graph: no order will do: " + text + ", which needs " + (shown == 8 ? "… " : "") + "%" +
                    old_[at]->name(),
                old_[at]->name());
  }

  // Who touches a set, in the new order.
  std::vector<Node*> touching(const Effects& effects, Effects::Set set) const {
    std::vector<Node*> nodes;
    for (Node* member : effects.members(set)) {
      nodes.push_back(member);
      for (Node& user : member->users()) nodes.push_back(&user);
    }
    for (Node* writer : effects.writers(set)) nodes.push_back(writer);
    std::ranges::sort(nodes, [](const Node* a, const Node* b) { return a->is_before(*b); });
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::erase_if(nodes, [](const Node* node) { return rank(*node) != 1; });
    return nodes;
  }

  void check_effects() const {
    const Effects effects(graph_, options_);
    NodeMap<bool> writes(graph_, false);
    for (Effects::Set set = 0; set < effects.num_sets(); ++set) {
      if (effects.writers(set).empty()) continue;
      for (const Node* writer : effects.writers(set)) writes[*writer] = true;
      const std::vector<Node*> nodes = touching(effects, set);
      std::vector<Node*> first_behind(nodes.size() + 1, nullptr);  // of those from here on, the one that stood first
      for (std::size_t i = nodes.size(); i-- > 0;) {
        Node* later = first_behind[i + 1];
        first_behind[i] = !later || place_[*nodes[i]] < place_[*later] ? nodes[i] : later;
      }
      const Node* last = nullptr;  // of those so far, the one that stood last
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (writes[*nodes[i]]) {
          if (last && place_[*last] > place_[*nodes[i]]) refuse(*last, *nodes[i]);
          if (const Node* later = first_behind[i + 1]; later && place_[*later] < place_[*nodes[i]])
            refuse(*later, *nodes[i]);
        }
        if (!last || place_[*last] < place_[*nodes[i]]) last = nodes[i];
      }
      for (const Node* writer : effects.writers(set)) writes[*writer] = false;
    }
  }

  [[noreturn]] static void refuse(const Node& node, const Node& writer) {
    throw Error(ErrorKind::unsupported,
                "legalize_graph: %" + node.name() + " would pass %" + writer.name() +
                    ", which writes what it reads: put them into order by hand",
                node.name());
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  Graph& graph_;
  const EffectsOptions& options_;
  NodeMap<std::size_t> place_;
  std::vector<Node*> old_, order_;
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::size_t> waits_;
};

}  // namespace

std::size_t legalize_graph(Graph& graph, const EffectsOptions& options) { return Legalizer(graph, options).run(); }

}  // namespace fx
