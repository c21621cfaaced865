#include <fxgraph/analysis/schedule.h>

#include <algorithm>
#include <queue>

#include <fxgraph/ir/node_map.h>

namespace fx {

namespace {

/// Inputs and attributes are there all the time, in any order: only what the graph makes matters to the choice.
bool matters(const Storage& storage) { return storage.kind == Storage::Kind::activation; }

/// A storage is there from the first to the last of the nodes that touch it, whichever way time runs.
class ListScheduler {
 public:
  ListScheduler(const Liveness& live, const OrderEdges& order, bool backward)
      : live_(live),
        order_(order),
        backward_(backward),
        waiting_(live.graph().id_bound(), 0),
        done_(live.graph().id_bound(), false),
        storages_(live.storages().size()) {}

  std::vector<Node*> run() {
    count();
    for (const Node& node : live_.graph().nodes()) {
      if (waiting_[node.id()] == 0) push(const_cast<Node&>(node));
    }
    std::vector<Node*> result;
    while (!ready_.empty()) {
      const Entry entry = ready_.top();
      ready_.pop();
      Node& node = live_.node_at(entry.place);
      if (done_[node.id()]) continue;  // pushed again since, with fewer bytes
      done_[node.id()] = true;
      result.push_back(&node);
      run_node(node);
    }
    if (backward_) std::reverse(result.begin(), result.end());
    return result;
  }

 private:
  struct Entry {
    int rank;  // inputs first, the output last
    std::int64_t added;
    std::uint32_t turn;
    std::uint32_t place;
    auto operator<=>(const Entry& other) const = default;
  };
  struct State {
    std::uint32_t touchers = 0;  // nodes yet to come
    std::uint32_t sum = 0;       // of their ids: when one is left, this is it
    bool there = false;
  };

  void count() {
    for (const Node& node : live_.graph().nodes()) {
      for_each_before(node, [&](Node& before) { ++waiting_[backward_ ? before.id() : node.id()]; });
      for (const std::uint32_t s : live_.touched_storages(node)) {
        ++storages_[s].touchers;
        storages_[s].sum += node.id();
      }
    }
  }

  template <typename Visit>
  void for_each_before(const Node& node, Visit&& visit) {
    node.for_each_input(visit);
    for (Node* before : order_.before(node)) visit(*before);
  }
  template <typename Visit>
  void for_each_after(const Node& node, Visit&& visit) {
    for (const Use use : node.uses()) visit(use.user());
    for (Node* after : order_.after(node)) visit(*after);
  }

  std::int64_t added_bytes(const Node& node) const {
    std::int64_t added = 0;
    for (const std::uint32_t s : live_.touched_storages(node)) {
      const Storage& storage = live_.storages()[s];
      if (!matters(storage)) continue;
      if (!storages_[s].there) added += storage.bytes;
      if (storages_[s].touchers == 1) added -= storage.bytes;
    }
    return added;
  }

  void push(Node& node) {
    const std::uint32_t place = live_.place(node);
    const int end = node.is(Op::placeholder) ? -1 : node.is(Op::output) ? 1 : 0;
    const std::uint32_t turn = backward_ ? live_.num_places() - place : place;
    ready_.push({backward_ ? -end : end, added_bytes(node), turn, place});
  }

  void run_node(Node& node) {
    for (const std::uint32_t s : live_.touched_storages(node)) {
      State& state = storages_[s];
      const bool first = !state.there;
      state.there = true;
      --state.touchers;
      state.sum -= node.id();
      if (state.touchers == 1) {
        // What is left may free it.
        Node& last = *live_.graph().node_by_id(state.sum);
        if (waiting_[last.id()] == 0) push(last);
      } else if (first && matters(live_.storages()[s])) {
        pushed_by_first(s);
      }
    }
    const auto one_less = [&](Node& next) {
      if (--waiting_[next.id()] == 0) push(next);
    };
    if (backward_) {
      for_each_before(node, one_less);
    } else {
      for_each_after(node, one_less);
    }
  }

  /// A storage that is there now costs its other touchers nothing: backward, several uses of a value may be ready.
  void pushed_by_first(std::uint32_t s) {
    if (!backward_) return;
    Node& base = *live_.storages()[s].base;
    for (Node& user : base.users()) {
      if (waiting_[user.id()] == 0 && !done_[user.id()]) push(user);
    }
  }

  const Liveness& live_;
  const OrderEdges& order_;
  const bool backward_;
  std::vector<std::uint32_t> waiting_;  // by id: uses and order edges not yet met
  std::vector<bool> done_;
  std::vector<State> storages_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;  // the least comes first
};

/// The most bytes that matter at once when the nodes run in this order.
std::int64_t peak_of(const Liveness& live, const std::vector<Node*>& order) {
  std::vector<std::uint32_t> touchers(live.storages().size(), 0);
  std::vector<bool> there(live.storages().size(), false);
  for (const Node* node : order) {
    for (const std::uint32_t s : live.touched_storages(*node)) ++touchers[s];
  }
  std::int64_t now = 0, peak = 0;
  for (const Node* node : order) {
    for (const std::uint32_t s : live.touched_storages(*node)) {
      if (!there[s] && matters(live.storages()[s])) now += live.storages()[s].bytes;
      there[s] = true;
    }
    peak = std::max(peak, now + live.inside(*node));
    for (const std::uint32_t s : live.touched_storages(*node)) {
      if (--touchers[s] == 0 && matters(live.storages()[s])) now -= live.storages()[s].bytes;
    }
  }
  return peak;
}

}  // namespace

Schedule lower_peak(const Liveness& live, const Effects& effects) {
  Schedule schedule;
  for (const Node& node : live.graph().nodes()) schedule.order.push_back(const_cast<Node*>(&node));
  schedule.peak_before = schedule.peak_after = live.peak().bytes;
  const OrderEdges edges = effects.order_edges();
  std::int64_t best = peak_of(live, schedule.order);
  const std::int64_t before = best;
  for (const bool backward : {false, true}) {
    std::vector<Node*> order = ListScheduler(live, edges, backward).run();
    const std::int64_t peak = peak_of(live, order);
    if (peak >= best) continue;
    best = peak;
    schedule.order = std::move(order);
  }
  schedule.peak_after -= before - best;
  return schedule;
}

void apply_order(Graph& graph, const std::vector<Node*>& order) {
  if (order.size() != graph.size()) {
    throw Error(ErrorKind::invalid_argument, "the order has " + std::to_string(order.size()) + " nodes, the graph " +
                                                 std::to_string(graph.size()) + "; give every node once");
  }
  for (std::size_t i = 1; i < order.size(); ++i) order[i - 1]->append(*order[i]);
}

}  // namespace fx
