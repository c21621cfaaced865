// The nodes are taken from the end of the graph, each as soon as all that waits for it has been taken: first all that
// can be taken and is not supported, then all that can be taken and is, in turns. What one turn takes of the supported
// is one partition. It waited for something unsupported that came after the turn before: so there is a way from each
// node of a partition through the unsupported into the next, no two can be one, and no choice needs fewer turns.
//
// With colours or pairs kept apart a turn may end early, and partitions that could be one are joined afterwards
// (partition_groups.h).
#include <fxgraph/rewriter/partition/partitioner.h>

#include <algorithm>
#include <map>
#include <optional>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/rewriter/partition/partition_groups.h>
#include <fxgraph/rewriter/partition/tied_calls.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// What makes the tuple or list that `node` takes an element of; null when it does something else.
Node* maker_of(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  if (!taken || !taken->of->is_callable()) return nullptr;
  const Call call = call_of(*taken->of);
  if (!call) return nullptr;
  const std::vector<SchemaReturn>& returns = call.schema().returns;
  const bool several = returns.size() > 1 || (returns.size() == 1 && returns[0].type.list);
  return several ? taken->of : nullptr;
}

bool computes_by_schema(const Node& node) {
  if (maker_of(node)) return false;
  const Call call = call_of(node);
  return !call || !call.schema().traits.view;
}

}  // namespace

class Partitioner {
 public:
  using WhyNot = std::function<std::optional<std::string>(const Node&)>;

  Partitioner(const Graph& graph, const PartitionOptions& options)
      : graph_(graph), options_(options), groups_(graph, options.order) {
    result_.graph_ = &graph;
    result_.options_ = options;
    result_.part_of_ = NodeMap<std::uint32_t>(graph);
    result_.reason_of_ = NodeMap<std::uint32_t>(graph);
  }

  Partitioning run(const WhyNot& why_not) {
    colour(why_not);
    groups_.connect();
    drain();
    if (colours_.size() > 1 || !options_.keep_apart.empty()) groups_.join_where_possible(rivals_);
    collect();
    if (options_.trim) trim();
    drop_small();
    number();
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t kOutside = 0;

  void reject(const Node& node, const std::string& why) {
    const auto [at, is_new] = reason_index_.emplace(why, static_cast<std::uint32_t>(result_.reasons_.size()));
    if (is_new) result_.reasons_.push_back(why);
    result_.reason_of_[node] = at->second + 1;
  }

  // Gives every call a group and every group its colour; elements of tuples join what makes the tuple.
  void colour(const WhyNot& why_not) {
    for (const auto& [a, b] : options_.keep_apart) check(*a), check(*b);
    NodeMap<std::uint32_t> colours(graph_, kOutside);
    NodeMap<Node*> element_of(graph_);
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (!node.is_callable()) continue;
      if (Node* maker = maker_of(node); maker && !ordered(node)) {
        element_of[node] = maker;
        colours[node] = colours[*maker];
        if (colours[node] == kOutside) reject(node, "it is an element of what is not supported");
        continue;
      }
      const std::optional<std::string> why = why_not(node);
      if (why) reject(node, *why);
      colours[node] = why ? kOutside : colour_of(node);
    }
    std::optional<TiedCalls> tied;
    if (options_.crosses) {
      tied.emplace(graph_, options_, colours, element_of);
      for (const auto& [node, why] : tied->refused()) {
        colours[*node] = kOutside;
        reject(*node, why);
      }
    }
    make_groups(colours, element_of, tied ? &*tied : nullptr);
    for (const auto& [a, b] : options_.keep_apart) add_rivals(*a, *b);
  }

  void make_groups(const NodeMap<std::uint32_t>& colours, const NodeMap<Node*>& element_of, const TiedCalls* tied) {
    std::map<std::uint32_t, Group> made;  // by number of the fusion group
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (!node.is_callable()) continue;
      const std::uint32_t together = tied ? tied->of(node) : 0;
      if (const auto known = made.find(together); together && known != made.end()) {
        groups_.add_to(known->second, node);
      } else if (element_of[node] && !together) {
        groups_.add_to(groups_.of(*element_of[node]), node);
      } else {
        groups_.add(node, colours[node]);
        if (together) made[together] = groups_.of(node);
      }
    }
  }

  bool ordered(const Node& node) const {
    return options_.order && (!options_.order->before(node).empty() || !options_.order->after(node).empty());
  }

  std::uint32_t colour_of(const Node& node) {
    const std::int64_t wanted = options_.colour ? options_.colour(node) : 0;
    const auto [at, is_new] = colour_index_.emplace(wanted, static_cast<std::uint32_t>(colours_.size() + 1));
    if (is_new) colours_.push_back(wanted);
    return at->second;
  }

  void check(const Node& node) const {
    if (&node.graph() == &graph_ && !node.is_erased()) return;
    throw Error(ErrorKind::invalid_argument,
                "propose_partitions: %" + node.name() + " is to be kept apart but is no node of this graph",
                node.name());
  }

  void add_rivals(const Node& a, const Node& b) {
    if (!a.is_callable() || !b.is_callable()) return;
    if (groups_.of(a) != groups_.of(b)) rivals_.add(groups_.of(a), groups_.of(b));
  }

  // Rounds of turns, the unsupported first; see the head of the file.
  void drain() {
    ready_.resize(colours_.size() + 1);
    turn_of_.assign(groups_.size(), 0);
    for (Group group = groups_.size(); group-- > 0;) {
      if (groups_.waiting(group) == 0) ready_[groups_.colour(group)].push_back(group);
    }
    while (true) {
      while (!ready_[kOutside].empty()) {
        const Group group = pop(kOutside);
        groups_.place({group});
        release(group);
      }
      const auto most = std::max_element(ready_.begin() + 1, ready_.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (most == ready_.end() || most->empty()) return;
      take_turn(static_cast<std::uint32_t>(most - ready_.begin()));
    }
  }

  Group pop(std::uint32_t colour) {
    const Group group = ready_[colour].back();
    ready_[colour].pop_back();
    return group;
  }

  void release(Group group) {
    for (const Group before : groups_.before(group)) {
      if (groups_.arrived(before)) ready_[groups_.colour(before)].push_back(before);
    }
  }

  void take_turn(std::uint32_t colour) {
    ++turns_;
    std::vector<Group> turn, put_off;
    while (!ready_[colour].empty()) {
      const Group group = pop(colour);
      const auto is_here = [&](Group rival) { return turn_of_[rival] == turns_; };
      if (std::ranges::any_of(rivals_.of(group), is_here)) {
        put_off.push_back(group);
        continue;
      }
      turn_of_[group] = turns_;
      turn.push_back(group);
      release(group);
    }
    groups_.place(std::move(turn));
    ready_[colour] = std::move(put_off);
  }

  void collect() {
    for (const std::vector<Group>& members : groups_.in_order_of_execution()) {
      if (groups_.colour(members.front()) == kOutside) continue;
      Partition part{colours_[groups_.colour(members.front()) - 1], {}};
      for (const Group group : members) {
        part.nodes.insert(part.nodes.end(), groups_.nodes(group).begin(), groups_.nodes(group).end());
      }
      std::ranges::sort(part.nodes, GraphOrder{});
      result_.partitions_.push_back(std::move(part));
    }
  }

  bool computes(const Node& node) const {
    return options_.computes ? options_.computes(node) : computes_by_schema(node);
  }

  // From both ends; what is between two that compute stays.
  void trim() {
    NodeMap<std::uint32_t> holds(graph_);
    for (std::size_t i = 0; i < result_.partitions_.size(); ++i) {
      std::vector<Node*>& nodes = result_.partitions_[i].nodes;
      for (const Node* node : nodes) holds[*node] = static_cast<std::uint32_t>(i + 1);
      const auto inside = [&](const Node& node) { return holds[node] == i + 1; };
      const auto take_off = [&](Node& node) {
        holds[node] = 0;
        reject(node, "it computes nothing and stands at the end of a partition");
      };
      for (Node* node : nodes) {
        bool fed = false;
        node->for_each_input([&](const Node& input) { fed |= inside(input); });
        if (!fed && !computes(*node)) take_off(*node);
      }
      for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        bool used = false;
        for (const Node& user : (*node)->users()) used |= inside(user);
        if (inside(**node) && !used && !computes(**node)) take_off(**node);
      }
      std::erase_if(nodes, [&](const Node* node) { return !inside(*node); });
    }
  }

  void drop_small() {
    std::erase_if(result_.partitions_, [&](const Partition& part) {
      const auto size = static_cast<std::size_t>(
          std::ranges::count_if(part.nodes, [&](const Node* node) { return computes(*node); }));
      if (!part.nodes.empty() && size >= options_.min_size) return false;
      for (const Node* node : part.nodes) {
        reject(*node, "its partition computes " + std::to_string(size) + " of at least " +
                          std::to_string(options_.min_size) + " nodes");
      }
      return true;
    });
  }

  void number() {
    for (std::size_t i = 0; i < result_.partitions_.size(); ++i) {
      for (const Node* node : result_.partitions_[i].nodes) {
        result_.part_of_[*node] = static_cast<std::uint32_t>(i + 1);
        result_.reason_of_[*node] = 0;
      }
    }
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  Partitioning result_;
  PartitionGroups groups_;
  Rivals rivals_;
  std::map<std::int64_t, std::uint32_t> colour_index_;
  std::vector<std::int64_t> colours_;
  std::map<std::string, std::uint32_t> reason_index_;
  std::vector<std::vector<Group>> ready_;  // by colour
  std::vector<std::uint32_t> turn_of_;     // by group: 1 + the turn that took it
  std::uint32_t turns_ = 0;
};

Partitioning propose_partitions(const Graph& graph,
                                const std::function<std::optional<std::string>(const Node&)>& why_not,
                                const PartitionOptions& options) {
  return Partitioner(graph, options).run(why_not);
}

}  // namespace fx
