// A vertex for each call of the window, one before it for all that stays left and one behind for all that stays right.
// A value is an edge of its bytes from its maker to a vertex of its own, from which edges without limit go to its
// users: it is sent once, whoever uses it. An edge without limit from each user back to the maker keeps the maker from
// going right alone.
#include <fxgraph/rewriter/partition/minimum_cut.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <set>

#include <fxgraph/rewriter/partition/stage_memory.h>

// Boost's edge iterators are optional until they are used; the compiler cannot see that they are set then.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace fx {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct VertexData {
  boost::default_color_type colour = boost::white_color;
  Traits::edge_descriptor before;
  long distance = 0;
};
struct EdgeData {
  double capacity = 0, rest = 0;
  Traits::edge_descriptor reverse;
};
using Flow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexData, EdgeData>;
using Vertex = Traits::vertex_descriptor;

constexpr double kNoLimit = 1e18;

class Network {
 public:
  Network() : graph_(2) {}
  static constexpr Vertex kLeft = 0, kRight = 1;

  Vertex add() { return boost::add_vertex(graph_); }
  void connect(Vertex from, Vertex to, double capacity) {
    if (from == to) return;
    const auto edge = boost::add_edge(from, to, graph_).first, back = boost::add_edge(to, from, graph_).first;
    graph_[edge].capacity = capacity;
    graph_[edge].reverse = back;
    graph_[back].reverse = edge;
  }
  void solve() {
    boost::boykov_kolmogorov_max_flow(graph_, boost::get(&EdgeData::capacity, graph_),
                                      boost::get(&EdgeData::rest, graph_), boost::get(&EdgeData::reverse, graph_),
                                      boost::get(&VertexData::before, graph_), boost::get(&VertexData::colour, graph_),
                                      boost::get(&VertexData::distance, graph_),
                                      boost::get(boost::vertex_index, graph_), kLeft, kRight);
  }
  bool is_left(Vertex vertex) const { return graph_[vertex].colour == boost::black_color; }

 private:
  Flow graph_;
};

}  // namespace

void MinimumCuts::improve(NodeMap<std::uint32_t>& stage) const {
  for (std::uint32_t left = 0; left + 1 < problem_.stages; ++left) {
    const std::vector<Node*> calls = window(stage, left);
    if (calls.empty()) continue;
    const NodeMap<std::uint32_t> other = cut(stage, left, calls);
    if (within_limits(other) && sent(other) < sent(stage)) stage = other;
  }
}

// The calls of two stages that are near the cut: as many on each side as take the time that the stages may take more.
std::vector<Node*> MinimumCuts::window(const NodeMap<std::uint32_t>& stage, std::uint32_t left) const {
  std::vector<Node*> before, behind;
  double total[2] = {0, 0};
  for (Node* call : calls_) {
    if (stage[*call] == left) total[0] += problem_.seconds[*call];
    if (stage[*call] == left + 1) total[1] += problem_.seconds[*call];
  }
  double seconds = limit_ - total[1];
  for (auto call = calls_.rbegin(); call != calls_.rend() && before.size() < kWindow; ++call) {
    if (stage[**call] != left) continue;
    if ((seconds -= problem_.seconds[**call]) < 0) break;
    before.push_back(*call);
  }
  seconds = limit_ - total[0];
  for (Node* call : calls_) {
    if (stage[*call] != left + 1) continue;
    if ((seconds -= problem_.seconds[*call]) < 0 || behind.size() >= kWindow) break;
    behind.push_back(call);
  }
  std::ranges::reverse(before);
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

NodeMap<std::uint32_t> MinimumCuts::cut(const NodeMap<std::uint32_t>& stage, std::uint32_t left,
                                        const std::vector<Node*>& window) const {
  Network network;
  NodeMap<Vertex> vertex_of(*problem_.graph, Network::kLeft);
  for (const Node* call : calls_) {
    if (stage[*call] > left) vertex_of[*call] = Network::kRight;
  }
  NodeMap<bool> free(*problem_.graph, false);
  for (const Node* call : window) {
    free[*call] = true;
    vertex_of[*call] = network.add();
  }
  // One vertex for a unit; one that reaches out of the window stays where it is.
  std::vector<const Node*> unit_head;
  for (const Node* call : calls_) {
    const std::uint32_t unit = problem_.unit[*call];
    if (!unit) continue;
    if (unit >= unit_head.size()) unit_head.resize(unit + 1);
    if (!unit_head[unit]) {
      unit_head[unit] = call;
    } else if (free[*call] || free[*unit_head[unit]]) {
      network.connect(vertex_of[*call], vertex_of[*unit_head[unit]], kNoLimit);
      network.connect(vertex_of[*unit_head[unit]], vertex_of[*call], kNoLimit);
    }
  }
  const auto is_near = [&](const Node& value) {
    if (free[value]) return true;
    for (const Node& user : value.users()) {
      if (user.is_callable() && free[user]) return true;
    }
    return false;
  };
  for (const Node& value : problem_.graph->nodes()) {
    if (value.is(Op::get_attr) || value.is(Op::output) || !is_near(value)) continue;
    const Vertex made = vertex_of[value], sent = network.add();
    network.connect(made, sent, static_cast<double>(problem_.bytes[value]));
    for (const Node& user : value.users()) {
      const Vertex used = user.is_callable() ? vertex_of[user] : Network::kRight;
      network.connect(sent, used, kNoLimit);
      network.connect(used, made, kNoLimit);
    }
  }
  if (problem_.order) {
    for (const Node* call : window) {
      for (const Node* before : problem_.order->before(*call)) {
        if (before->is_callable()) network.connect(vertex_of[*call], vertex_of[*before], kNoLimit);
      }
      for (const Node* after : problem_.order->after(*call)) {
        if (after->is_callable()) network.connect(vertex_of[*after], vertex_of[*call], kNoLimit);
      }
    }
  }
  network.solve();
  NodeMap<std::uint32_t> result = stage;
  for (const Node* call : window) result[*call] = network.is_left(vertex_of[*call]) ? left : left + 1;
  return result;
}

bool MinimumCuts::within_limits(const NodeMap<std::uint32_t>& stage) const {
  std::vector<double> seconds(problem_.stages);
  std::set<std::pair<std::uint32_t, std::uint32_t>> held;  // stage and weight
  std::vector<std::int64_t> weights(problem_.stages);
  std::vector<std::size_t> calls(problem_.stages);
  for (const Node* call : calls_) {
    seconds[stage[*call]] += problem_.seconds[*call];
    const bool limited = problem_.max_weights || problem_.max_memory;
    for (const std::uint32_t weight : limited ? problem_.weights[*call] : std::vector<std::uint32_t>()) {
      if (held.emplace(stage[*call], weight).second) weights[stage[*call]] += problem_.weight_bytes[weight];
    }
    ++calls[stage[*call]];
  }
  const std::vector<std::int64_t> peaks =
      problem_.max_memory ? stage_peaks(problem_, calls_, stage) : std::vector<std::int64_t>(problem_.stages, 0);
  for (std::size_t i = 0; i < problem_.stages; ++i) {
    if (problem_.max_memory && weights[i] + peaks[i] > problem_.max_memory) return false;
    if (seconds[i] > limit_ * (1 + 1e-9) || calls[i] == 0) return false;
    if (problem_.max_weights && weights[i] > problem_.max_weights) return false;
  }
  return true;
}

// A value goes to each later stage that uses it, and to the last one when it is returned.
double MinimumCuts::sent(const NodeMap<std::uint32_t>& stage) const {
  double total = 0;
  for (const Node& value : problem_.graph->nodes()) {
    if (value.is(Op::get_attr) || value.is(Op::output)) continue;
    const std::uint32_t made = value.is_callable() ? stage[value] : 0;
    std::set<std::uint32_t> to;
    for (const Node& user : value.users()) {
      const std::uint32_t at = user.is_callable() ? stage[user] : static_cast<std::uint32_t>(problem_.stages - 1);
      if (at != made) to.insert(at);
    }
    total += static_cast<double>(problem_.bytes[value]) * static_cast<double>(to.size());
  }
  return total;
}

}  // namespace fx
