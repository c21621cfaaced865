#include <fxgraph/rewriter/rules/free_sizes.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fxgraph/module/state_keeper.h>

namespace fx::rules {

void FreeSizes::mark(Shapes& shapes) {
  if (!sampled_) {
    find_samples(false);
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
  // XNNPACK ends the process when its kernel is larger than the image, and takes all other sizes of a batch.
  if (module_.graph().count(Op::call_function, "prepacked::conv2d_clamp_run") > 0) return vary(batch);
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
  if (places.empty()) return;
  const std::int64_t size = inputs_[places[0].first].sizes[places[0].second];
  const auto take_with = [&](std::int64_t other) {
    std::vector<TensorInfo> inputs = inputs_;
    for (const auto& [input, dim] : places) {
      inputs[input].sizes[dim] = other;
      inputs[input].strides.clear();
    }
    return other != size && take(inputs);
  };
  // The last row of none is none: a slice of one row is not one row always. Kernels are not asked for nothing.
  if (!by_running_) take_with(0);
  for (const std::int64_t other : {size + 1, 2 * size, 3 * size, std::int64_t{1}}) {
    if (other != 0 && take_with(other)) return;
  }
}

bool FreeSizes::take(const std::vector<TensorInfo>& inputs) {
  if (by_running_) {
    const bool runs = run(inputs).has_value();
    if (runs) sample_inputs_.push_back(inputs);
    return runs;
  }
  auto sample = std::make_unique<ShapeProp>(module_);
  try {
    sample->propagate(inputs);
  } catch (const std::exception&) {
    return false;  // the program does not take them
  }
  samples_.push_back(std::move(sample));
  sample_inputs_.push_back(inputs);
  return true;
}

void FreeSizes::find_samples(bool by_running) {
  if (sampled_ && (!by_running || !sample_inputs_.empty())) return;
  sampled_ = true;
  by_running_ = by_running;
  take_samples();
}

void FreeSizes::run_samples() {
  runs_.clear();
  for (const std::vector<TensorInfo>& inputs : sample_inputs_) {
    if (std::optional<Shapes> shapes = run(inputs)) runs_.push_back(std::move(*shapes));
  }
}

/// Nothing when the program does not take them.
std::optional<Shapes> FreeSizes::run(const std::vector<TensorInfo>& inputs) const {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module_);
  try {
    return propagate_shapes(module_, inputs);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool FreeSizes::always_same(const Node& a, const Node& b) const {
  return std::ranges::all_of(runs_, [&](const Shapes& shapes) {
    const TensorInfo *first = shapes[a].tensor(), *second = shapes[b].tensor();
    return first && second && first->sizes == second->sizes;
  });
}

}  // namespace fx::rules
