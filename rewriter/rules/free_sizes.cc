#include <fxgraph/rewriter/rules/free_sizes.h>

#include <algorithm>
#include <map>
#include <utility>

namespace fx::rules {

void FreeSizes::mark(Shapes& shapes) {
  if (!std::exchange(sampled_, true)) {
    take_samples();
  } else {
    // What no longer runs with other sizes says nothing more; what it said before is lost, so all counts as free.
    for (const auto& sample : samples_) {
      try {
        sample->update();
      } catch (const std::exception&) {
        return mark_all(shapes);
      }
    }
  }
  for (const auto& sample : samples_) {
    for (const Node& node : module_.graph().nodes()) {
      TensorInfos& known = shapes[node].tensors;
      const TensorInfos& other = std::as_const(sample->shapes())[node].tensors;
      if (known.size() != other.size()) {
        known.clear();
        continue;
      }
      for (std::size_t i = 0; i < known.size(); ++i) {
        if (known[i].sizes.size() != other[i].sizes.size()) {
          known.clear();
          break;
        }
        for (std::size_t d = 0; d < known[i].sizes.size(); ++d) {
          if (known[i].sizes[d] == other[i].sizes[d]) continue;
          known[i].sizes[d] = kFree;
          known[i].strides.clear();
        }
      }
    }
  }
}

void FreeSizes::mark_all(Shapes& shapes) const {
  NodeMap<bool> varies(module_.graph(), false);
  for (const Node& node : module_.graph().nodes()) {
    bool from_input = node.is(Op::placeholder);
    node.for_each_input([&](const Node& input) { from_input |= varies[input]; });
    varies[node] = from_input;
    if (!from_input) continue;
    for (TensorInfo& tensor : shapes[node].tensors) {
      std::fill(tensor.sizes.begin(), tensor.sizes.end(), kFree);
      tensor.strides.clear();
    }
  }
}

// Dimensions of one size often are one dimension: a batch, a length that two inputs share.
void FreeSizes::take_samples() {
  std::map<std::int64_t, std::vector<std::pair<std::size_t, std::size_t>>> by_size;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t d = 0; d < inputs_[i].sizes.size(); ++d) by_size[inputs_[i].sizes[d]].emplace_back(i, d);
  }
  std::vector<std::pair<std::size_t, std::size_t>> batch;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<std::int64_t>& sizes = inputs_[i].sizes;
    if (sizes.empty()) continue;
    if (batch.empty() || sizes[0] == inputs_[batch[0].first].sizes[0]) batch.emplace_back(i, 0);
  }
  if (batch.size() > 1) vary(batch);
  for (const auto& [size, places] : by_size) {
    if (places.size() > 1) vary(places);
    for (const auto& place : places) vary({place});
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) rearrange(i);
}

// As many elements in another form: what a reshape to literal sizes takes.
void FreeSizes::rearrange(std::size_t input) {
  const std::vector<std::int64_t>& sizes = inputs_[input].sizes;
  if (sizes.size() < 2) return;
  std::vector<std::int64_t> reversed(sizes.rbegin(), sizes.rend()), first(sizes.size(), 1), last(sizes.size(), 1);
  first.front() = last.back() = inputs_[input].numel();
  for (const std::vector<std::int64_t>& other : {reversed, first, last}) {
    if (other == sizes) continue;
    std::vector<TensorInfo> inputs = inputs_;
    inputs[input].sizes = other;
    inputs[input].strides.clear();
    take(inputs);
  }
}

void FreeSizes::vary(const std::vector<std::pair<std::size_t, std::size_t>>& places) {
  const std::int64_t size = inputs_[places[0].first].sizes[places[0].second];
  for (const std::int64_t other : {size + 1, 2 * size, 3 * size, std::int64_t{1}}) {
    if (other == size || other == 0) continue;
    std::vector<TensorInfo> inputs = inputs_;
    for (const auto& [input, dim] : places) {
      inputs[input].sizes[dim] = other;
      inputs[input].strides.clear();
    }
    if (take(inputs)) return;
  }
}

bool FreeSizes::take(const std::vector<TensorInfo>& inputs) {
  auto sample = std::make_unique<ShapeProp>(module_);
  try {
    sample->propagate(inputs);
  } catch (const std::exception&) {
    return false;  // the program does not take them
  }
  samples_.push_back(std::move(sample));
  return true;
}

}  // namespace fx::rules
