#include <fxgraph/rewriter/rules/free_sizes.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/run/operators.h>

namespace fx::rules {

namespace {

constexpr std::int64_t kFirstFree = -2;

/// Every size a free one of its own.
void set_free(TensorInfos& tensors, std::int64_t& next) {
  for (TensorInfo& tensor : tensors) {
    for (std::int64_t& size : tensor.sizes) size = next--;
    tensor.strides.clear();
  }
}

// What masks take out is told by samples.
const c10::OperatorName kMasks{"aten::index", "Tensor"};

/// `unique`: how many there are shows in no sample that LibTorch's kernels were asked for.
bool counts_by_numbers(const Node& node) {
  if (!node.is(Op::call_function) && !node.is(Op::call_method)) return false;
  const auto counts = [](const TorchOperator* called) {
    return called->handle && called->handle->hasTag(at::Tag::dynamic_output_shape) &&
           called->schema->operator_name() != kMasks;
  };
  return std::ranges::any_of(possible_packets(node),
                             [&](Symbol packet) { return std::ranges::any_of(torch_overloads(packet), counts); });
}

bool same_rank(const TensorInfo& a, const TensorInfo& b) { return a.sizes.size() == b.sizes.size(); }
bool same_sizes(const TensorInfo& a, const TensorInfo& b) { return a.sizes == b.sizes; }

}  // namespace

void forget_branches(const Graph& graph, Shapes& shapes) {
  const auto branches = [](const Node& node) {
    return node.is_call("higher_order::cond") || node.is_call("higher_order::while_loop");
  };
  if (std::ranges::none_of(graph.nodes(), branches)) return;
  NodeMap<bool> unknown(graph, false);
  for (const Node& node : graph.nodes()) {
    bool from_branch = branches(node);
    node.for_each_input([&](const Node& input) { from_branch |= unknown[input]; });
    unknown[node] = from_branch;
    if (from_branch) shapes[node].tensors.clear();
  }
}

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
  if (untold_) return mark_all(shapes);
  std::map<std::vector<std::int64_t>, std::int64_t> known;  // a size on the example and on all samples
  std::vector<std::int64_t> seen;
  NodeMap<bool> untold(module_.graph(), false);
  std::int64_t next = kFirstFree;
  for (const Node& node : module_.graph().nodes()) {
    TensorInfos& tensors = shapes[node].tensors;
    if (!agree(node, tensors, same_rank)) {
      tensors.clear();
      continue;
    }
    bool from_untold = counts_by_numbers(node) && agree(node, tensors, same_sizes);
    node.for_each_input([&](const Node& input) { from_untold |= untold[input]; });
    untold[node] = from_untold;
    if (from_untold) {
      set_free(tensors, next);
      continue;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t d = 0; d < tensors[i].sizes.size(); ++d) {
        seen.assign(1, tensors[i].sizes[d]);
        for (const auto& sample : samples_) seen.push_back(std::as_const(sample->shapes())[node].tensors[i].sizes[d]);
        if (std::ranges::all_of(seen, [&](std::int64_t size) { return size == seen[0]; })) continue;
        const auto [at, is_new] = known.emplace(seen, next);
        if (is_new) --next;
        tensors[i].sizes[d] = at->second;
        tensors[i].strides.clear();
      }
    }
  }
}

/// True when the value has as many tensors, each like the example's, on all samples.
bool FreeSizes::agree(const Node& node, const TensorInfos& tensors,
                      bool (*alike)(const TensorInfo&, const TensorInfo&)) const {
  return std::ranges::all_of(samples_, [&](const auto& sample) {
    return std::ranges::equal(tensors, std::as_const(sample->shapes())[node].tensors, alike);
  });
}

void FreeSizes::mark_all(Shapes& shapes) const {
  std::int64_t next = kFirstFree;
  NodeMap<bool> varies(module_.graph(), false), unknown(module_.graph(), false);
  for (const Node& node : module_.graph().nodes()) {
    bool from_input = node.is(Op::placeholder), from_graph = runs_graphs(node);
    node.for_each_input([&](const Node& input) {
      from_input |= varies[input];
      from_graph |= unknown[input];
    });
    varies[node] = from_input;
    unknown[node] = from_graph;
    if (from_graph) {
      shapes[node].tensors.clear();
    } else if (from_input) {
      set_free(shapes[node].tensors, next);
    }
  }
}

// Dimensions of one size often are one dimension: a batch, a length that two inputs share.
void FreeSizes::take_samples() {
  std::map<std::int64_t, std::vector<Place>> by_size;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t d = 0; d < inputs_[i].sizes.size(); ++d) by_size[inputs_[i].sizes[d]].emplace_back(i, d);
  }
  std::vector<Place> batch;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<std::int64_t>& sizes = inputs_[i].sizes;
    if (sizes.empty()) continue;
    if (batch.empty() || sizes[0] == inputs_[batch[0].first].sizes[0]) batch.emplace_back(i, 0);
  }
  // XNNPACK ends the process when its kernel is larger than the image, reads beyond rows that are too short, and takes
  // all other sizes of a batch.
  if (std::ranges::any_of(module_.graph().nodes(), uses_xnnpack)) {
    vary(batch);
    return;
  }
  if (batch.size() > 1) vary(batch);
  std::vector<Place> bound;  // what goes neither alone nor with those of its size
  for (const auto& [size, places] : by_size) {
    const bool together = places.size() > 1 && vary(places);
    for (const Place& place : places) {
      if (!vary({place}) && !together) bound.push_back(place);
    }
  }
  vary_pairs(bound);
  spread_samples(batch);
  for (std::size_t i = 0; i < inputs_.size(); ++i) rearrange(i);
}

// As many elements in another form: what a reshape to literal sizes takes.
void FreeSizes::rearrange(std::size_t input) {
  const std::vector<std::int64_t>& sizes = inputs_[input].sizes;
  if (sizes.size() < 2) return;
  // With elements, what is broadcast to as many times as many of another input would take all memory.
  constexpr std::int64_t kMostOfZeros = 4096;
  if (by_running_ && inputs_[input].numel() > kMostOfZeros) return;
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

// What is one row of a reshape for one sample may be several samples: of [4, 6], [2, 3] is as many elements as a row
// has.
void FreeSizes::spread_samples(const std::vector<Place>& batch) {
  for (const Place& place : batch) {
    for (std::size_t d = 1; d < inputs_[place.first].sizes.size(); ++d) {
      const std::int64_t size = inputs_[place.first].sizes[d];
      std::int64_t samples = 2;
      while (samples < size && size % samples != 0) ++samples;
      if (size < 2) continue;
      std::vector<TensorInfo> inputs = inputs_;
      for (const auto& [input, dim] : batch) {
        inputs[input].sizes[dim] = samples;
        inputs[input].strides.clear();
      }
      inputs[place.first].sizes[d] = size / samples;
      take(inputs);
    }
  }
}

// One size may be another and one more, or twice another: `x + y[1:]`, images and their features.
void FreeSizes::vary_pairs(const std::vector<Place>& places) {
  constexpr std::size_t kMost = 8;
  const auto size_at = [&](const Place& place) { return inputs_[place.first].sizes[place.second]; };
  const std::size_t count = std::min(places.size(), kMost);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const std::int64_t a = size_at(places[i]), b = size_at(places[j]);
      if (a == b) continue;
      for (const auto& [other_a, other_b] :
           {std::pair(a + 1, b + 1), std::pair(2 * a, a + b), std::pair(2 * a, 2 * b)}) {
        std::vector<TensorInfo> inputs = inputs_;
        inputs[places[i].first].sizes[places[i].second] = other_a;
        inputs[places[j].first].sizes[places[j].second] = other_b;
        inputs[places[i].first].strides.clear();
        inputs[places[j].first].strides.clear();
        take(inputs);
      }
    }
  }
}

// True when the program takes another size of these than one or none.
bool FreeSizes::vary(const std::vector<Place>& places) {
  if (places.empty()) return false;
  const std::int64_t size = inputs_[places[0].first].sizes[places[0].second];
  const auto take_with = [&](std::int64_t other) {
    std::vector<TensorInfo> inputs = inputs_;
    for (const auto& [input, dim] : places) {
      inputs[input].sizes[dim] = other;
      inputs[input].strides.clear();
    }
    return other != size && take(inputs);
  };
  // The last row of none is none: a slice of one row is not one row always, nor is every second of one but the last.
  // Kernels are not asked for nothing.
  const bool takes_one = !by_running_ && take_with(1);
  if (!by_running_) take_with(0);
  not_asked_ = false;
  for (const std::int64_t other : {size + 1, 2 * size, 3 * size}) {
    if (other != 0 && take_with(other)) return true;
  }
  if (!takes_one && !take_with(1)) untold_ |= not_asked_;
  return false;
}

bool FreeSizes::take(const std::vector<TensorInfo>& inputs, StandIns stand_ins) {
  if (by_running_) {
    const bool runs = run_on_zeros(inputs).has_value();
    if (runs) sample_inputs_.push_back(inputs);
    return runs;
  }
  // Kernels are not asked for nothing: some end the process.
  if (std::ranges::any_of(inputs, [](const TensorInfo& info) { return info.numel() == 0; })) stand_ins = StandIns::none;
  auto sample = std::make_unique<ShapeProp>(module_, stand_ins);
  try {
    sample->propagate(inputs);
  } catch (const std::exception&) {
    not_asked_ |= stand_ins == StandIns::none && sample->needed_stand_ins();
    return false;  // or the program does not take them
  }
  if (stand_ins == StandIns::ones && !sample->needed_stand_ins()) return false;  // nothing asked for numbers
  samples_.push_back(std::move(sample));
  sample_inputs_.push_back(inputs);
  return true;
}

void FreeSizes::find_samples(bool by_running) {
  if (sampled_ && (!by_running || !sample_inputs_.empty())) return;
  sampled_ = true;
  by_running_ = by_running;
  take_samples();
  if (!by_running_) take(inputs_, StandIns::ones);
}

void FreeSizes::run_samples() {
  runs_.clear();
  says_nothing_ = false;
  for (const std::vector<TensorInfo>& inputs : sample_inputs_) {
    std::optional<Shapes> shapes = run(inputs);
    says_nothing_ |= !shapes;  // the program took them when they were found
    if (shapes) runs_.push_back(std::move(*shapes));
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<TensorInfo> inputs = inputs_;
    inputs[i].dtype = inputs[i].dtype == DType::float64 ? DType::complex128 : DType::float64;
    if (std::optional<Shapes> shapes = run(inputs)) runs_.push_back(std::move(*shapes));
  }
}

/// On meta tensors, of which only packed calls and the like are given elements: what is broadcast can be any size.
std::optional<Shapes> FreeSizes::run(const std::vector<TensorInfo>& inputs) const {
  const at::NoGradGuard no_grad;
  try {
    return ShapeProp(module_).propagate(inputs);
  } catch (const std::exception&) {
    return by_running_ ? run_on_zeros(inputs) : std::nullopt;
  }
}

/// Nothing when the program does not take them.
std::optional<Shapes> FreeSizes::run_on_zeros(const std::vector<TensorInfo>& inputs) const {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module_);
  try {
    return propagate_shapes(module_, inputs);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool FreeSizes::always_same(const Node& a, const Node& b) const {
  return !says_nothing_ && std::ranges::all_of(runs_, [&](const Shapes& shapes) {
    const TensorInfo *first = shapes[a].tensor(), *second = shapes[b].tensor();
    return first && second && first->sizes == second->sizes && first->dtype == second->dtype;
  });
}

}  // namespace fx::rules
