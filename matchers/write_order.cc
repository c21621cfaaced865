#include <fxgraph/matchers/write_order.h>

#include <algorithm>
#include <vector>

#include <fxgraph/ir/graph_order.h>

namespace fx::internal {

namespace {

/// What stands there: of forms the calls that they stand for.
std::vector<const Node*> standing(std::span<Node* const> calls, const Reading* reading) {
  std::vector<const Node*> nodes(calls.begin(), calls.end());
  for (std::size_t i = 0; reading && i < nodes.size(); ++i) {
    const Form* form = reading->forms().form(*nodes[i]);
    if (!form) continue;
    for (const Node* covered : form->covers) {
      if (std::ranges::find(nodes, covered) == nodes.end()) nodes.push_back(covered);
    }
  }
  std::erase_if(nodes, [&](const Node* node) { return reading && reading->forms().is_of_form(*node); });
  std::ranges::sort(nodes, GraphOrder{});
  return nodes;
}

}  // namespace

const Node* WriteOrder::write_between(std::span<Node* const> calls) {
  if (!effects_) effects_.emplace(searched_.graph, searched_.options.modules, /*told=*/false);
  if (!effects_->any_writes()) return nullptr;
  const std::vector<const Node*> nodes = standing(calls, searched_.reading.get());
  if (nodes.size() < 2) return nullptr;
  const auto reads = [&](const Node& node, Cell cell) {
    bool is_read = false;
    effects_->for_each_read_cell(node, [&](Cell read) { is_read = is_read || read == cell; });
    return is_read;
  };
  const auto touches = [&](const Node& node, Cell cell) {
    bool is_made = false;
    effects_->for_each_cell(node, [&](Cell made) { is_made = is_made || made == cell; });
    return node.is_callable() && (is_made || reads(node, cell));
  };
  for (const Node* writer : effects_->between(*nodes.front(), *nodes.back())) {
    const bool is_part = std::ranges::find(nodes, writer) != nodes.end();
    if (is_part || effects_->of(*writer).unknown) continue;  // nobody says that it writes
    bool is_split = false;
    effects_->for_each_written_cell(*writer, [&](Cell cell) {
      const auto sees_before = [&](const Node* node) { return node->is_before(*writer) && touches(*node, cell); };
      const auto sees_after = [&](const Node* node) { return writer->is_before(*node) && reads(*node, cell); };
      is_split = is_split || (std::ranges::any_of(nodes, sees_before) && std::ranges::any_of(nodes, sees_after));
    });
    if (is_split) return writer;
  }
  return nullptr;
}

}  // namespace fx::internal
