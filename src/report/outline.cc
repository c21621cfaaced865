#include <fxgraph/report/outline.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fxgraph/analysis/cost.h>

namespace fx {

namespace {

std::string_view parent_path(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

/// The module that both paths lie in.
std::string_view common_path(std::string_view a, std::string_view b) {
  while (a.size() != b.size() || a != b) (a.size() < b.size() ? b : a) = parent_path(a.size() < b.size() ? b : a);
  return a;
}

/// The module a node came from, if the node says so.
std::optional<std::string> stated_path(const Node& node) {
  if (node.is(Op::placeholder) || node.is(Op::output)) return std::string();
  if (node.is(Op::call_module) || node.is(Op::get_attr)) return std::string(parent_path(node.target().view()));
  std::string path = module_path(node);
  if (path.empty()) return std::nullopt;
  return path;
}

NodeMap<std::string> paths(const Graph& graph) {
  NodeMap<std::string> path(graph);
  std::vector<const Node*> unknown;
  std::optional<std::string> before;
  for (const Node& node : graph.nodes()) {
    std::optional<std::string> stated = stated_path(node);
    if (!stated) {
      unknown.push_back(&node);
      continue;
    }
    for (const Node* between : unknown) path[*between] = common_path(before.value_or(""), *stated);
    unknown.clear();
    path[node] = *stated;
    // An attribute may be fetched far from where it is used.
    if (!node.is(Op::get_attr)) before = std::move(stated);
  }
  return path;
}

/// Where stages begin: near every `size` items, where the fewest values pass.
std::vector<std::size_t> stage_starts(const std::vector<std::int32_t>& passing, std::size_t items, std::size_t size) {
  std::vector<std::size_t> starts{0};
  while (items - starts.back() > size + size / 2) {
    const auto from = passing.begin() + static_cast<std::ptrdiff_t>(starts.back() + size / 2);
    starts.push_back(
        static_cast<std::size_t>(std::min_element(from, from + static_cast<std::ptrdiff_t>(size)) - passing.begin()));
  }
  return starts;
}

bool is_source(const Node& node) {
  bool source = !node.is(Op::output);
  node.for_each_input([&](Node&) { source = false; });
  return source;
}

}  // namespace

/// Builds the tree with lists of what each group holds, then numbers it.
class OutlineMaker {
 public:
  OutlineMaker(const Graph& graph, std::size_t max_members) : graph_(graph), place_(graph, 0), item_of_(graph, -1) {
    std::int32_t next = 0;
    for (const Node& node : graph.nodes()) place_[node] = next++;
    add_modules();
    drop_small();
    for (std::uint32_t i = 0, modules = static_cast<std::uint32_t>(parts_.size()); i < modules; ++i) {
      if (parts_[i].nodes.size() + parts_[i].parts.size() > max_members) cut(i);
    }
  }

  void number(std::vector<Outline::Group>& groups, NodeMap<std::uint32_t>& group_of) const {
    for (std::vector<std::pair<std::uint32_t, std::int32_t>> todo{{0, -1}}; !todo.empty();) {
      const auto [at, parent] = todo.back();
      todo.pop_back();
      const auto group = static_cast<std::uint32_t>(groups.size());
      groups.push_back({parts_[at].label, parent, parts_[at].is_stage});
      for (const Node* node : parts_[at].nodes) group_of[*node] = group;
      for (auto part = parts_[at].parts.rbegin(); part != parts_[at].parts.rend(); ++part)
        todo.emplace_back(*part, static_cast<std::int32_t>(group));
    }
  }

 private:
  struct Part {
    std::string label;
    std::uint32_t parent = 0;
    bool is_stage = false;
    std::vector<const Node*> nodes{};    // held directly
    std::vector<std::uint32_t> parts{};  // smaller groups
  };
  /// One of the things that a group holds.
  struct Item {
    std::int32_t first;  // its first place in the graph
    const Node* node;    // null for a part
    std::uint32_t part;
  };

  void add_modules() {
    parts_.push_back({"", 0});
    const NodeMap<std::string> path = paths(graph_);
    std::map<std::string, std::uint32_t, std::less<>> known{{"", 0}};
    for (const Node& node : graph_.nodes()) {
      std::uint32_t part = 0;
      const std::string& whole = path[node];
      for (std::size_t end = 0; end != whole.npos && !whole.empty();) {
        end = whole.find('.', end + 1);
        const auto [found, is_new] = known.emplace(whole.substr(0, end), static_cast<std::uint32_t>(parts_.size()));
        if (is_new) {
          parts_[part].parts.push_back(found->second);
          parts_.push_back({found->first, part});
        }
        part = found->second;
      }
      parts_[part].nodes.push_back(&node);
    }
  }

  void drop_small() {
    std::vector<bool> dropped(parts_.size(), false);
    for (std::size_t i = parts_.size(); i-- > 0;) {
      Part &part = parts_[i], &parent = parts_[part.parent];
      std::erase_if(part.parts, [&](std::uint32_t inner) { return dropped[inner]; });
      if (i == 0 || part.nodes.size() > 1 || !part.parts.empty()) continue;
      parent.nodes.insert(parent.nodes.end(), part.nodes.begin(), part.nodes.end());
      dropped[i] = true;
    }
  }

  template <typename Visit>
  void for_each_node(const Item& item, Visit&& visit) const {
    if (item.node) return visit(*item.node);
    for (std::vector<std::uint32_t> todo{item.part}; !todo.empty();) {
      const Part& part = parts_[todo.back()];
      todo.pop_back();
      for (const Node* node : part.nodes) visit(*node);
      todo.insert(todo.end(), part.parts.begin(), part.parts.end());
    }
  }

  std::vector<Item> items_of(const Part& part) const {
    std::vector<Item> items;
    for (const Node* node : part.nodes) items.push_back({place_[*node], node, 0});
    for (const std::uint32_t inner : part.parts) {
      Item item{std::numeric_limits<std::int32_t>::max(), nullptr, inner};
      for_each_node(item, [&](const Node& node) { item.first = std::min(item.first, place_[node]); });
      items.push_back(item);
    }
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.first < b.first; });
    return items;
  }

  /// For each place between items[i - 1] and items[i], how many values pass it. Values without inputs (parameters) pass
  /// everywhere and tell nothing.
  std::vector<std::int32_t> values_passing(const std::vector<Item>& items) const {
    std::vector<std::int32_t> change(items.size() + 1, 0);
    for (std::size_t i = 0; i < items.size(); ++i) {
      for_each_node(items[i], [&](const Node& node) {
        if (is_source(node)) return;
        auto last = static_cast<std::int32_t>(i);
        for (const Node& user : node.users()) last = std::max(last, item_of_[user]);
        ++change[i + 1];
        if (static_cast<std::size_t>(last) + 1 < change.size()) --change[static_cast<std::size_t>(last) + 1];
      });
    }
    for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
    return change;
  }

  void cut(std::uint32_t group) {
    const std::vector<Item> items = items_of(parts_[group]);
    for (std::size_t i = 0; i < items.size(); ++i)
      for_each_node(items[i], [&](const Node& node) { item_of_[node] = static_cast<std::int32_t>(i); });
    const auto size = static_cast<std::size_t>(std::sqrt(static_cast<double>(items.size()))) + 10;
    const std::vector<std::size_t> starts = stage_starts(values_passing(items), items.size(), size);
    const auto first = static_cast<std::uint32_t>(parts_.size());
    parts_[group].nodes.clear();
    parts_[group].parts.clear();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t last = (i + 1 < starts.size() ? starts[i + 1] : items.size()) - 1;
      parts_[group].parts.push_back(static_cast<std::uint32_t>(parts_.size()));
      parts_.push_back({label(items[starts[i]]) + " … " + label(items[last]), group, true});
    }
    for (std::size_t i = 0; i < items.size(); ++i) put(items[i], i, group, first, starts);
    for (const Item& item : items) for_each_node(item, [&](const Node& node) { item_of_[node] = -1; });
  }

  /// Puts an item into its stage: a parameter beside its first user; the output stays in sight.
  void put(const Item& item, std::size_t i, std::uint32_t group, std::uint32_t first,
           const std::vector<std::size_t>& starts) {
    if (item.node && item.node->is(Op::output)) return parts_[group].nodes.push_back(item.node);
    if (item.node && is_source(*item.node)) {
      std::int32_t user_item = std::numeric_limits<std::int32_t>::max();
      for (const Node& user : item.node->users()) {
        if (item_of_[user] >= 0) user_item = std::min(user_item, item_of_[user]);
      }
      if (user_item != std::numeric_limits<std::int32_t>::max()) i = static_cast<std::size_t>(user_item);
    }
    const auto stage = std::upper_bound(starts.begin(), starts.end(), i) - starts.begin() - 1;
    Part& part = parts_[first + static_cast<std::uint32_t>(stage)];
    item.node ? part.nodes.push_back(item.node) : part.parts.push_back(item.part);
  }

  std::string label(const Item& item) const { return item.node ? item.node->name() : parts_[item.part].label; }

  const Graph& graph_;
  NodeMap<std::int32_t> place_;
  NodeMap<std::int32_t> item_of_;  // of the group that is being cut; -1 outside
  std::vector<Part> parts_;        // the whole first
};

Outline::Outline(const Graph& graph, std::size_t max_members) : group_of_(graph, 0) {
  OutlineMaker(graph, max_members).number(groups_, group_of_);
}

}  // namespace fx
