#include <fxgraph/analysis/storage_table.h>

#include <algorithm>

namespace fx {

void StorageTable::build() {
  starts_.reserve(live_.num_places() + 1);
  for (const Node& node : live_.graph().nodes()) {
    starts_.push_back(static_cast<std::uint32_t>(held_.size()));
    if (!node.is(Op::output)) add_value(node);
  }
  starts_.push_back(static_cast<std::uint32_t>(held_.size()));
  collect_touched();
  round_up();
}

void StorageTable::add_value(const Node& node) {
  const ValueInfo& value = shapes_[node];
  if (value.tensors.empty()) {
    // A value of unknown size still holds on to what it may alias.
    if (effects_.of(node).may_alias) add_by_sets(node, value);
    return;
  }
  const bool exact = std::all_of(value.tensors.begin(), value.tensors.end(),
                                 [](const TensorInfo& tensor) { return tensor.storage >= 0; });
  if (!exact) return add_by_sets(node, value);
  for (const TensorInfo& tensor : value.tensors) add_exact(node, tensor);
}

void StorageTable::add_exact(const Node& node, const TensorInfo& tensor) {
  std::uint32_t& storage = of_identity_[static_cast<std::uint64_t>(tensor.storage)];
  if (!storage) storage = 1 + new_storage(node);
  Storage& s = live_.storages_[storage - 1];
  s.bytes = std::max(s.bytes, tensor.held_bytes());
  hold(storage - 1, node);
}

bool StorageTable::makes_storage(const Node& node) const {
  if (node.is(Op::placeholder)) return true;
  if (node.is(Op::get_attr)) return effects_.members(effects_.sets(node)[0])[0] == &node;
  return !effects_.of(node).may_alias || effects_.of(node).unknown;
}

// With several sets and as many tensors or more, the value is a tuple and the sets are those of its elements; tensors
// beyond are elements that nobody took out.
void StorageTable::add_by_sets(const Node& node, const ValueInfo& value) {
  const bool makes = makes_storage(node) && !value.tensors.empty();
  const auto sets = effects_.sets(node);
  const bool tuple = makes && sets.size() > 1;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::uint32_t& storage = of_set_[sets[i]];
    if (storage == kNone) {
      if (!makes) continue;  // the storage's maker has no size
      storage = new_storage(node);
    }
    hold(storage, node);
    if (!makes) continue;
    std::int64_t& bytes = live_.storages_[storage].bytes;
    if (tuple) {
      if (i < value.tensors.size()) bytes += value.tensors[i].held_bytes();
    } else {
      for (const TensorInfo& tensor : value.tensors) bytes += tensor.held_bytes();
    }
  }
  for (std::size_t i = sets.size(); tuple && i < value.tensors.size(); ++i) {
    const std::uint32_t storage = new_storage(node);
    live_.storages_[storage].bytes = value.tensors[i].held_bytes();
    hold(storage, node);
  }
}

std::uint32_t StorageTable::new_storage(const Node& node) {
  Storage storage;
  storage.base = const_cast<Node*>(&node);
  storage.interval = live_.interval(node);
  if (node.is(Op::placeholder) || node.is(Op::get_attr)) {
    storage.kind = node.is(Op::placeholder) ? Storage::Kind::input : Storage::Kind::attribute;
    storage.counted = node.is(Op::placeholder) ? options_.count_inputs : options_.count_attributes;
    storage.interval = {0, live_.num_places() - 1};
  }
  live_.storages_.push_back(storage);
  return static_cast<std::uint32_t>(live_.storages_.size() - 1);
}

void StorageTable::hold(std::uint32_t storage, const Node& node) {
  Interval& interval = live_.storages_[storage].interval;
  interval.end = std::max(interval.end, live_.interval(node).end);
  if (std::find(held_.begin() + starts_.back(), held_.end(), storage) == held_.end()) held_.push_back(storage);
}

/// What a node touches: the storages of its value and of its inputs.
void StorageTable::collect_touched() {
  std::vector<std::uint32_t>& touched = live_.touched_;
  std::vector<std::uint32_t> last_toucher(live_.storages_.size(), kNone);
  std::vector<std::uint32_t> starts(live_.graph().id_bound() + 1, 0);
  // Two rounds: count, then fill, so that the table is by id whatever the order of the nodes.
  for (const bool fill : {false, true}) {
    std::fill(last_toucher.begin(), last_toucher.end(), kNone);
    for (const Node& node : live_.graph().nodes()) {
      std::uint32_t count = 0;
      const auto touch = [&](const Node& value) {
        const std::uint32_t place = live_.place(value);
        for (std::uint32_t i = starts_[place]; i < starts_[place + 1]; ++i) {
          if (std::exchange(last_toucher[held_[i]], node.id()) == node.id()) continue;
          if (fill) touched[starts[node.id()] + count] = held_[i];
          ++count;
        }
      };
      touch(node);
      node.for_each_input(touch);
      if (!fill) starts[node.id() + 1] = count;
    }
    if (fill) break;
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    touched.resize(starts.back());
  }
  live_.touched_starts_ = std::move(starts);
}

void StorageTable::round_up() {
  const std::int64_t unit = std::max<std::int64_t>(options_.alignment, 1);
  for (Storage& storage : live_.storages_) storage.bytes = (storage.bytes + unit - 1) / unit * unit;
}

}  // namespace fx
