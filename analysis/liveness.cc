#include <fxgraph/analysis/liveness.h>

#include <algorithm>

#include <fxgraph/analysis/storage_table.h>
#include <fxgraph/contract/called_shapes.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>

namespace fx {

Liveness::Liveness(const Graph& graph) : graph_(&graph) {
  find_intervals();
  count_live();
  build_index();
}

Liveness::Liveness(const Graph& graph, const Shapes& shapes, const LivenessOptions& options) : Liveness(graph) {
  if (options.effects) {
    StorageTable(*this, shapes, *options.effects, options).build();
  } else {
    const Effects effects(graph, {.modules = {.effects = [](const Node&) { return NodeEffects(); }}});
    StorageTable(*this, shapes, effects, options).build();
  }
  add_inside(shapes, options);
  sum_bytes();
}

void Liveness::add_inside(const Shapes& shapes, const LivenessOptions& options) {
  inside_.assign(num_places(), 0);
  std::vector<std::int64_t> made(num_places(), 0);
  for (const Storage& storage : storages_) made[place(*storage.base)] += storage.counted ? storage.bytes : 0;
  for (const Node& node : graph_->nodes()) {
    if (node.is(Op::call_module)) {
      const auto called = options.modules ? shapes_in_call(node, shapes, *options.modules) : std::nullopt;
      if (called) {
        const Liveness live(*called->graph, called->shapes,
                            {.alignment = options.alignment, .modules = &called->modules});
        for (const std::string& name : live.unknown()) unknown_.push_back(node.name() + "/" + name);
        inside_[place(node)] = std::max<std::int64_t>(0, live.peak().bytes - made[place(node)]);
      } else {
        unknown_.push_back(node.name());
      }
    } else if (const Call call = call_of(node)) {
      const bool is_known = !call.schema().returns_tensors() || !shapes[node].tensors.empty();
      if (!is_known || has_flag(operator_name(call.schema()), OperatorFlag::is_composite))
        unknown_.push_back(node.name());
    }
  }
}

void Liveness::find_intervals() {
  const std::size_t size = graph_->size();
  ids_.resize(size);
  place_.resize(graph_->id_bound());
  last_.resize(1);
  std::vector<std::uint32_t>& last = last_[0];
  last.resize(size);
  std::uint32_t place = 0;
  for (const Node& node : graph_->nodes()) {
    ids_[place] = node.id();
    place_[node.id()] = place;
    last[place] = place;
    node.for_each_input([&](const Node& input) { last[place_[input.id()]] = place; });
    ++place;
  }
}

void Liveness::count_live() {
  const std::vector<std::uint32_t>& last = last_[0];
  const Node* output = graph_->output_node();
  const std::uint32_t no_value = output ? place_[output->id()] : num_places();
  std::vector<std::uint32_t> dying(num_places(), 0);
  for (const std::uint32_t place : last) ++dying[place];
  if (output) --dying[no_value];
  std::uint32_t live = 0;
  for (std::uint32_t place = 0; place < num_places(); ++place) {
    live += place != no_value;
    if (live > peak_live_) {
      peak_live_ = live;
      peak_live_place_ = place;
    }
    live -= dying[place];
  }
}

void Liveness::build_index() {
  while (last_.back().size() > kFanout) {
    const std::vector<std::uint32_t>& below = last_.back();
    std::vector<std::uint32_t> level((below.size() + kFanout - 1) / kFanout, 0);
    for (std::size_t i = 0; i < below.size(); ++i) level[i / kFanout] = std::max(level[i / kFanout], below[i]);
    last_.push_back(std::move(level));
  }
}

/// The first place from `from` up to `at` whose value is still needed at `at`; at + 1 when there is none.
std::uint32_t Liveness::next_live(std::uint32_t from, std::uint32_t at) const {
  const Node* output = graph_->output_node();
  std::size_t level = 0;
  std::uint32_t i = from;
  std::uint64_t width = 1;   // places that one entry of this level stands for
  while (i * width <= at) {  // which the end of no level is
    if (last_[level][i] >= at) {
      if (level == 0) return output && place_[output->id()] == i ? at + 1 : i;
      --level;
      width /= kFanout;
      i *= kFanout;
      continue;
    }
    ++i;
    while (i % kFanout == 0) {
      ++level;
      width *= kFanout;
      i /= kFanout;
    }
  }
  return at + 1;
}

void Liveness::sum_bytes() {
  bytes_.assign(num_places(), 0);
  for (const Storage& storage : storages_) {
    if (!storage.counted) continue;
    bytes_[storage.interval.begin] += storage.bytes;
    if (storage.interval.end + 1 < num_places()) bytes_[storage.interval.end + 1] -= storage.bytes;
  }
  std::int64_t now = 0;
  for (std::uint32_t place = 0; place < num_places(); ++place) {
    now += bytes_[place];
    bytes_[place] = now + inside_[place];
    if (!peak_.node || bytes_[place] > peak_.bytes) peak_ = {&node_at(place), bytes_[place]};
  }
}

std::span<const std::uint32_t> Liveness::touched_storages(const Node& node) const {
  if (touched_starts_.empty()) return {};
  return {touched_.data() + touched_starts_[node.id()], touched_.data() + touched_starts_[node.id() + 1]};
}

std::vector<const Storage*> Liveness::storages_at(const Node& node) const {
  std::vector<const Storage*> live;
  for (const Storage& storage : storages_) {
    if (storage.counted && storage.interval.contains(place(node))) live.push_back(&storage);
  }
  std::stable_sort(live.begin(), live.end(), [](const Storage* a, const Storage* b) { return a->bytes > b->bytes; });
  return live;
}

}  // namespace fx
