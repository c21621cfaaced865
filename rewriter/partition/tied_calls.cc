// Ties make classes (union-find). With each class as one vertex, ways that leave a class and come back are circles: the
// strongly connected components (Boost.Graph) are the groups.
#include <fxgraph/rewriter/partition/tied_calls.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <numeric>

namespace fx {

TiedCalls::TiedCalls(const Graph& graph, const PartitionOptions& options, const NodeMap<std::uint32_t>& colour,
                     const NodeMap<Node*>& element_of)
    : options_(options), element_of_(element_of), place_(graph, 0), group_(graph, 0) {
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    if (!node.is_callable()) continue;
    place_[node] = static_cast<Place>(calls_.size());
    calls_.push_back(&node);
    colours_.push_back(colour[node]);
  }
  parent_.resize(calls_.size());
  std::iota(parent_.begin(), parent_.end(), Place{0});
  fused_.assign(calls_.size(), false);
  refused_at_.assign(calls_.size(), false);
  inside_.assign(calls_.size(), nullptr);
  tie();
  refuse_broken();
  join_what_is_between();
}

TiedCalls::Place TiedCalls::find(Place place) {
  while (parent_[place] != place) place = parent_[place] = parent_[parent_[place]];
  return place;
}

void TiedCalls::unite(const Node& a, const Node& b) {
  const Place x = find(place_[a]), y = find(place_[b]);
  if (x == y) return;
  const Place head = std::min(x, y), other = std::max(x, y);
  parent_[other] = head;
  fused_[head] = fused_[head] || fused_[other];
  if (!inside_[head]) inside_[head] = inside_[other];
}

void TiedCalls::tie() {
  for (const Node* call : calls_) {
    if (element_of_[*call]) unite(*call, *element_of_[*call]);
  }
  for (const Node* call : calls_) {
    if (options_.crosses(*call)) continue;
    for (const Node& user : call->users()) {
      if (user.is_callable()) unite(*call, user);
      const Place head = find(place_[*call]);
      fused_[head] = true;
      inside_[head] = call;
    }
  }
  members_.resize(calls_.size());
  for (Place place = 0; place < calls_.size(); ++place) members_[find(place)].push_back(place);
}

// Its calls are by themselves again, but for elements of tuples, and in no partition.
void TiedCalls::refuse(Place head, const std::string& why) {
  fused_[head] = false;
  for (const Place place : members_[head]) {
    if (colour_of(place)) refused_.emplace_back(calls_[place], why);
    refused_at_[place] = true;
  }
}

void TiedCalls::refuse_broken() {
  for (const Node* call : calls_) {
    const Place head = find(place_[*call]);
    if (!fused_[head] || options_.crosses(*call)) continue;
    for (const Node& user : call->users()) {
      if (!user.is_callable()) refuse(head, "%" + call->name() + ", which stays inside of a partition, is returned");
      if (!fused_[head]) break;
    }
  }
  for (Place head = 0; head < calls_.size(); ++head) {
    if (!fused_[head]) continue;
    const std::string start = "it stays together with %" + inside_[head]->name() + ", as ";
    const std::uint32_t colour = colour_of(head);
    for (const Place place : members_[head]) {
      if (colour_of(place) == colour && colour) continue;
      const Node& odd = *calls_[colour_of(place) ? head : place];
      refuse(head, colour_of(place) && colour ? start + "%" + calls_[place]->name() + ", which has another colour, does"
                                              : start + "%" + odd.name() + " does, which is in no partition");
      break;
    }
  }
  for (const auto& [a, b] : options_.keep_apart) {
    if (!a->is_callable() || !b->is_callable() || find(place_[*a]) != find(place_[*b])) continue;
    const Place head = find(place_[*a]);
    if (fused_[head]) refuse(head, "%" + a->name() + " and %" + b->name() + " are to be kept apart and stay together");
  }
}

// By head of a class, the number of the circle that it is on.
std::vector<TiedCalls::Place> TiedCalls::circles() {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> ways(calls_.size());
  const auto vertex = [&](const Node& node) {
    // A class that was refused is calls again.
    const Place head = find(place_[node]);
    return fused_[head] ? head : place_[node];
  };
  for (const Node* call : calls_) {
    const auto add = [&](const Node& before) {
      if (before.is_callable() && vertex(before) != vertex(*call)) boost::add_edge(vertex(before), vertex(*call), ways);
    };
    call->for_each_input(add);
    if (!options_.order) continue;
    for (const Node* before : options_.order->before(*call)) add(*before);
  }
  std::vector<Place> circle(calls_.size());
  boost::strong_components(ways, boost::make_iterator_property_map(circle.begin(), get(boost::vertex_index, ways)));
  for (Place place = 0; place < calls_.size(); ++place) {
    if (fused_[find(place)]) circle[place] = circle[find(place)];
  }
  return circle;
}

void TiedCalls::join_what_is_between() {
  const std::vector<Place> circle = circles();
  std::vector<std::vector<Place>> on(calls_.size());
  for (Place place = 0; place < calls_.size(); ++place) on[circle[place]].push_back(place);
  std::uint32_t next = 1;
  for (const std::vector<Place>& all : on) {
    bool fused = false;
    const Node* odd = nullptr;
    for (const Place place : all) {
      fused |= fused_[find(place)];
      if (!colour_of(place) || colour_of(place) != colour_of(all.front())) odd = calls_[place];
    }
    if (!fused) continue;
    std::string why;
    if (odd)
      why = "%" + odd->name() + ", which is in no partition of that colour, comes between calls that stay together";
    for (const auto& [a, b] : options_.keep_apart) {
      if (!a->is_callable() || !b->is_callable() || circle[place_[*a]] != circle[place_[*b]]) continue;
      if (circle[place_[*a]] == circle[all.front()])
        why = "%" + a->name() + " and %" + b->name() + " are to be kept apart and stay together";
    }
    for (const Place place : all) {
      if (why.empty()) {
        group_[*calls_[place]] = next;
      } else if (fused_[find(place)]) {
        refuse(find(place), why);
      }
    }
    ++next;
  }
}

}  // namespace fx
