#include <fxgraph/rewriter/partition/stage_units.h>

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <fxgraph/ops/call.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// Numbers for calls that may not be parted.
class StageUnits {
 public:
  StageUnits(const Effects& effects, const Shapes& shapes)
      : graph_(effects.graph()), effects_(effects), head_(graph_, nullptr) {
    for (Effects::Set set = 0; set < effects.num_sets(); ++set) {
      if (!effects.writers(set).empty()) join_set(set);
    }
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (!node.is_callable() || shapes[node].tensors.size() < 2) continue;
      for (Node& user : node.users()) {
        if (user.is_callable()) join(node, user);
      }
    }
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (node.is_callable() && looks_beyond(node)) join_storage_of(node);
    }
  }

  /// By call: 0 for one by itself, else the number of its unit.
  NodeMap<std::uint32_t> numbers() {
    NodeMap<std::uint32_t> numbers(graph_, 0);
    std::map<std::uint32_t, std::uint32_t> known;  // by id of the head
    for (Node& node : const_cast<Graph&>(graph_).nodes()) {
      if (!node.is_callable() || !head_[node]) continue;
      numbers[node] = known.emplace(find(node).id(), static_cast<std::uint32_t>(known.size() + 1)).first->second;
    }
    return numbers;
  }

 private:
  Node& find(Node& node) {
    Node* at = &node;
    while (head_[*at] && head_[*at] != at) at = head_[*at];
    return *at;
  }
  void join(Node& a, Node& b) {
    Node &x = find(a), &y = find(b);
    Node& first = x.is_before(y) ? x : y;
    head_[x] = head_[y] = &first;
    if (!head_[a]) head_[a] = &first;
    if (!head_[b]) head_[b] = &first;
  }

  /// Asks where in its storage a value lies, or for what lies beside it: a copy has another storage.
  static bool looks_beyond(const Node& node) {
    const Call call = call_of(node);
    return call ? call.schema().traits.reads_storage : node.target().view().find("storage") != std::string_view::npos;
  }
  void join_storage_of(Node& node) {
    node.for_each_input([&](const Node& input) {
      for (const Effects::Set set : effects_.sets(input)) {
        for (Node* member : effects_.members(set)) {
          if (member->is_callable()) join(*member, node);
        }
      }
    });
  }

  void join_set(Effects::Set set) {
    const auto writers = effects_.writers(set);
    const Node& last = *writers.back();
    bool named = false;
    std::vector<Node*> touching(writers.begin(), writers.end());
    for (Node* member : effects_.members(set)) {
      if (member->is(Op::placeholder)) {
        throw Error(ErrorKind::unsupported,
                    "split_pipeline: %" + writers.front()->name() + " writes to the input " + member->name() +
                        ", which the caller would not see: write to a clone of it instead",
                    writers.front()->name());
      }
      named |= member->is(Op::get_attr);
      if (member->is_callable()) touching.push_back(member);
      for (Node& user : member->users()) {
        if (user.is_callable()) touching.push_back(&user);
      }
    }
    const bool kept = named || effects_.is_external(set);
    const auto holders = effects_.state_readers(set);
    touching.insert(touching.end(), holders.begin(), holders.end());
    for (Node* node : touching) {
      if (kept || !last.is_before(*node)) join(*touching.front(), *node);
    }
  }

  const Graph& graph_;
  const Effects& effects_;
  NodeMap<Node*> head_;
};

}  // namespace

NodeMap<std::uint32_t> stage_units(const Effects& effects, const Shapes& shapes) {
  return StageUnits(effects, shapes).numbers();
}

}  // namespace fx
