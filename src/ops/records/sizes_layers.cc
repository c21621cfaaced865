// Normalisation, embeddings, recurrent networks, losses.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace layer_rows {
namespace {

/// A vector of `size` elements, or not given.
void require_vector(SizeCall& c, std::string_view name, const SizeExpr& size, DType dtype) {
  if (!c.given(name)) return;
  const TensorType& vector = c.tensor(name);
  SizeCall::require_type(vector, dtype);
  c.require(vector.sizes.size() == 1, "a vector");
  c.require_equal(vector.sizes[0], size);
}

// (input, weight, bias, running_mean, running_var, training, …)
void batch_norm(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  const DType dtype = SizeCall::float_type(input);
  c.require(input.sizes.size() >= 2, "channels");
  const bool training = c.flag("training");
  for (const std::string_view name : {"weight", "bias", "running_mean", "running_var"})
    require_vector(c, name, input.sizes[1], dtype);
  if (c.given("running_mean") != c.given("running_var") || (!training && !c.given("running_mean")))
    SizeCall::give_up("without its statistics");
  for (std::size_t i = training ? 0 : 1; i < input.sizes.size(); ++i) {
    if (c.answer({SizeRelation::at_least, input.sizes[i], 1}) != Answer::yes && input.sizes[i].is_integer())
      SizeCall::give_up("an input without elements");
  }
  c.require_at_least(input.sizes[1], 1);
  c.give(input.sizes, dtype);
  if (c.schema().returns.size() != 3) return;
  const SizeExpr statistics = training ? input.sizes[1] : SizeExpr(0);
  c.give({statistics}, dtype);
  c.give({statistics}, dtype);
}

// (input, normalized_shape, weight, bias, …)
void layer_norm(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  const DType dtype = SizeCall::float_type(input);
  const Sizes shape = c.numbers("normalized_shape");
  c.require(!shape.empty() && shape.size() <= input.sizes.size(), "a shape of no more dimensions than the input's");
  const std::size_t outer = input.sizes.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) c.require_equal(input.sizes[outer + i], shape[i]);
  for (const std::string_view name : {"weight", "bias"}) {
    if (!c.given(name)) continue;
    SizeCall::require_type(c.tensor(name), dtype);
    c.require(c.tensor(name).sizes.size() == shape.size(), "parameters of the shape");
    for (std::size_t i = 0; i < shape.size(); ++i) c.require_equal(c.tensor(name).sizes[i], shape[i]);
  }
  c.give(input.sizes, dtype);
  if (c.schema().returns.size() != 3) return;
  Sizes statistics(input.sizes);
  for (std::size_t i = outer; i < statistics.size(); ++i) statistics[i] = 1;
  c.give(statistics, dtype);
  c.give(statistics, dtype);
}

// (input, num_groups, weight, bias, …)
void group_norm(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  const DType dtype = SizeCall::float_type(input);
  const SizeExpr groups = c.number("num_groups");
  c.require(input.sizes.size() >= 2, "channels");
  c.require_at_least(groups, 1);
  c.require({SizeRelation::multiple, input.sizes[1], groups});
  for (const std::string_view name : {"weight", "bias"}) require_vector(c, name, input.sizes[1], dtype);
  if (input.numel() == SizeExpr(0)) SizeCall::give_up("an input without elements");
  c.give(input.sizes, dtype);
}

// (input, weight, bias, N, C, HxW, group, eps)
void native_group_norm(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  const DType dtype = SizeCall::float_type(input);
  const SizeExpr n = c.number("N"), channels = c.number("C"), groups = c.number("group");
  c.require_at_least(groups, 1);
  c.require({SizeRelation::multiple, channels, groups});
  c.require_equal(input.numel(), n * channels * c.number("HxW"));
  for (const std::string_view name : {"weight", "bias"}) require_vector(c, name, channels, dtype);
  if (input.numel() == SizeExpr(0) || (input.strides && !input.is_contiguous()))
    SizeCall::give_up("an input without elements, or not in order");
  c.give(input.sizes, dtype);
  for (int statistics = 0; statistics < 2; ++statistics) c.give({n, groups}, dtype);
}

// (input, weight, bias, running_mean, running_var, use_input_stats, …)
void instance_norm(SizeCall& c) {
  const TensorType& input = c.tensor("input");
  const DType dtype = SizeCall::float_type(input);
  const bool own = c.flag("use_input_stats");
  c.require(input.sizes.size() >= 3, "channels of images");
  for (const std::string_view name : {"weight", "bias", "running_mean", "running_var"})
    require_vector(c, name, input.sizes[1], dtype);
  if (c.given("running_mean") != c.given("running_var") || input.numel() == SizeExpr(0))
    SizeCall::give_up("half of its statistics, or an input without elements");
  c.require(own || c.given("running_mean"), "statistics");
  c.require_at_least(input.sizes[1], 1);
  c.give(input.sizes, dtype);
}

// (weight, indices, …)
void embedding(SizeCall& c) {
  const TensorType &weight = c.tensor("weight"), &indices = c.tensor("indices");
  c.require(weight.sizes.size() == 2, "a matrix of weights");
  if (indices.dtype != DType::int64 && indices.dtype != DType::int32)
    SizeCall::refuse_types(DType::int64, indices.dtype);
  c.require_places(weight.sizes[0], indices.numel());
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  c.give(std::move(sizes), SizeCall::float_type(weight));
}

/// A network whose weights hold `gates` times the state; for each layer and direction `each` of `weights`, the products
/// with input and state first, then what is added.
struct Recurrent {
  std::int64_t gates;
  std::vector<const TensorType*> states;
  std::vector<const TensorType*> weights;
  std::size_t each;

  void give(SizeCall& c) const {
    const TensorType& input = c.tensor("input");
    const DType dtype = SizeCall::float_type(input);
    const std::int64_t layers = c.literal("num_layers"), ways = c.flag("bidirectional") ? 2 : 1;
    const bool batch_first = c.flag("batch_first");
    if (input.sizes.size() != 3 || layers < 1 || states[0]->sizes.size() != 3 ||
        weights.size() != static_cast<std::size_t>(layers * ways) * each)
      SizeCall::give_up("another form");
    const SizeExpr &steps = input.sizes[batch_first ? 1 : 0], &batch = input.sizes[batch_first ? 0 : 1];
    const SizeExpr& width = states[0]->sizes[2];
    const auto require_sizes = [&](const TensorType& tensor, const Sizes& sizes) {
      SizeCall::require_type(tensor, dtype);
      if (tensor.sizes.size() != sizes.size()) SizeCall::give_up("another form");
      for (std::size_t i = 0; i < sizes.size(); ++i) c.require_equal(tensor.sizes[i], sizes[i]);
    };
    // Without a cell one sequence, or one state, is broadcast.
    const SizeExpr& of_state = states[0]->sizes[1];
    if (states.size() == 1 && batch != of_state && (batch == SizeExpr(1) || of_state == SizeExpr(1)))
      SizeCall::give_up("another form");
    for (const TensorType* state : states) require_sizes(*state, {layers * ways, batch, width});
    for (std::size_t i = 0; i < weights.size(); i += each) {
      const bool is_first = i < static_cast<std::size_t>(ways) * each;
      require_sizes(*weights[i], {width * gates, is_first ? input.sizes[2] : width * ways});
      require_sizes(*weights[i + 1], {width * gates, width});
      for (std::size_t bias = 2; bias < each; ++bias) require_sizes(*weights[i + bias], {width * gates});
    }
    c.require_at_least(steps, 1);
    if (batch == SizeExpr(0) || width == SizeExpr(0)) SizeCall::give_up("a batch or a state of none");
    Sizes sizes = {steps, batch, width * ways};
    Sizes strides = contiguous_strides(sizes);
    if (batch_first) {
      std::swap(sizes[0], sizes[1]);
      std::swap(strides[0], strides[1]);
    }
    c.give(TensorType{dtype, std::move(sizes), std::move(strides)});
    for (std::size_t i = 0; i < states.size(); ++i) c.give({layers * ways, batch, width}, dtype);
  }
};

std::vector<const TensorType*> states_of(const SizeCall& c, std::size_t count) {
  if (count == 1) return {&c.tensor("hx")};
  std::vector<const TensorType*> states = c.tensors("hx");
  if (states.size() != count) SizeCall::give_up("another form");
  return states;
}

// (input, states, weights, biases, layers, dropout, training, both ways, batch first)
template <std::int64_t gates, std::size_t num_states>
void recurrent(SizeCall& c) {
  Recurrent{gates, states_of(c, num_states), c.tensors("params"), c.flag("has_biases") ? std::size_t{4} : 2}.give(c);
}

// (input, states, weights, packed, layers, both ways, batch first): for each layer and direction `each` weights, the
// product with the input transposed, what is added, the product with the state
template <std::int64_t gates, std::size_t num_states, std::size_t each>
void packed_recurrent(SizeCall& c) {
  const std::vector<const TensorType*> packed = c.tensors("weights");
  if (packed.size() % each != 0) SizeCall::give_up("another form");
  std::vector<TensorType> of_inputs(packed.size() / each);
  std::vector<const TensorType*> weights;
  for (std::size_t i = 0; i < of_inputs.size(); ++i) {
    of_inputs[i] = *packed[i * each];
    std::ranges::reverse(of_inputs[i].sizes);
    weights.push_back(&of_inputs[i]);
    weights.push_back(packed[i * each + 2]);
  }
  Recurrent{gates, states_of(c, num_states), std::move(weights), 2}.give(c);
}

// (input, states, w_ih, w_hh, b_ih, b_hh)
template <std::int64_t gates, std::size_t num_states>
void recurrent_cell(SizeCall& c) {
  const TensorType &input = c.tensor("input"), &w_ih = c.tensor("w_ih"), &w_hh = c.tensor("w_hh");
  const std::vector<const TensorType*> states = states_of(c, num_states);
  const DType dtype = SizeCall::float_type(input);
  if (input.sizes.size() != 2 || w_ih.sizes.size() != 2 || w_hh.sizes.size() != 2 || w_ih.dtype != dtype)
    SizeCall::give_up("another form");
  c.require_equal(input.sizes[1], w_ih.sizes[1]);
  for (const TensorType* state : states) {
    if (state->sizes.size() != 2 || state->dtype != dtype) SizeCall::give_up("another form");
    c.require_equal(state->sizes[0], input.sizes[0]);
    c.require_equal(state->sizes[1], w_hh.sizes[1]);
  }
  c.require_equal(w_ih.sizes[0], w_hh.sizes[0]);
  c.require_equal(w_hh.sizes[0], w_hh.sizes[1] * gates);
  SizeCall::require_type(w_hh, dtype);
  for (const std::string_view name : {"b_ih", "b_hh"}) {
    if (!c.given(name)) continue;
    SizeCall::require_type(c.tensor(name), dtype);
    c.require_expands(c.tensor(name).sizes, {input.sizes[0], w_ih.sizes[0]});
  }
  for (std::size_t i = 0; i < num_states; ++i) c.give(states[0]->sizes, dtype);
}

/// Of an element-wise loss, reduced or not.
void give_loss(SizeCall& c, const Sizes& sizes, DType dtype) {
  const std::int64_t reduction = c.literal("reduction");
  if (reduction < 0 || reduction > 2) SizeCall::give_up("a reduction without a name");
  c.give(reduction == 0 ? sizes : Sizes(), dtype);
}

// (self, target, …, reduction, …)
void loss(SizeCall& c) {
  const TensorType &self = c.self(), &target = c.tensor("target");
  if (self.dtype != target.dtype) SizeCall::give_up("types that its kernel may refuse");
  give_loss(c, c.broadcast(self.sizes, target.sizes), SizeCall::float_type(self));
}

// (self, target, weight, pos_weight, reduction): the target of exactly the input's sizes
void binary_loss(SizeCall& c) {
  const TensorType &self = c.self(), &target = c.tensor("target");
  if (self.dtype != target.dtype || c.given("pos_weight")) SizeCall::give_up("weights");
  if (self.sizes.size() != target.sizes.size()) SizeCall::give_up("sizes that broadcast");
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (!c.decide({SizeRelation::equal, self.sizes[i], target.sizes[i]})) SizeCall::give_up("sizes that broadcast");
  }
  if (c.given("weight")) {
    SizeCall::require_type(c.tensor("weight"), self.dtype);
    c.require_expands(c.tensor("weight").sizes, self.sizes);
  }
  give_loss(c, self.sizes, SizeCall::float_type(self));
}

// (self, target, weight, reduction, …): classes along dimension 1
void class_loss(SizeCall& c) {
  const TensorType &self = c.self(), &target = c.tensor("target");
  if (target.dtype != DType::int64 || c.given("label_smoothing")) {
    const Argument* smoothing = c.argument("label_smoothing").literal();
    if (target.dtype != DType::int64 || !smoothing || !smoothing->is_float()) SizeCall::give_up("another form");
  }
  const std::size_t rank = self.sizes.size();
  if (rank < 2 || target.sizes.size() + 1 != rank) SizeCall::give_up("another form");
  for (std::size_t i = 0; i < target.sizes.size(); ++i)
    c.require_equal(self.sizes[i == 0 ? 0 : i + 1], target.sizes[i]);
  if (c.given("weight") && c.tensor("weight").sizes.empty()) SizeCall::give_up("another form");
  require_vector(c, "weight", self.sizes[1], self.dtype);
  give_loss(c, target.sizes, SizeCall::float_type(self));
}

// (self, weight)
void prelu(SizeCall& c) {
  const TensorType &self = c.self(), &weight = c.tensor("weight");
  if (weight.dtype != SizeCall::float_type(self) || weight.sizes.size() > 1) SizeCall::give_up("another form");
  const SizeExpr count = weight.numel();
  // One for all, or one for each channel.
  if (!c.is_certainly(count, 1)) {
    if (self.sizes.empty()) SizeCall::give_up("another form");
    const SizeExpr channels = self.sizes.size() > 1 ? self.sizes[1] : SizeExpr(1);
    c.require_any({{SizeRelation::equal, count, 1}, {SizeRelation::equal, count, channels}});
  }
  c.give(self.sizes, self.dtype);
}

// (self, dim)
void gated(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  c.require({SizeRelation::multiple, self.sizes[dim], 2});
  Sizes sizes = self.sizes;
  sizes[dim] = floor_div(sizes[dim], 2);
  c.give(std::move(sizes), SizeCall::float_type(self));
}

// (self, num_classes)
void one_hot(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(self.dtype == DType::int64, "an input of int64");
  const SizeExpr classes = c.number("num_classes");
  if (c.answer({SizeRelation::at_least, classes, 1}) != Answer::yes) SizeCall::give_up("as many classes as there are");
  Sizes sizes = self.sizes;
  sizes.push_back(classes);
  c.give(std::move(sizes), DType::int64);
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"batch_norm", batch_norm, keeps_channels_last, cost::each_output<2>},
    {"native_batch_norm", batch_norm, {}, cost::each_output<2>},
    {"layer_norm", layer_norm, gives_contiguous, cost::each_output<7>},
    {"native_layer_norm", layer_norm, {}, cost::each_output<7>},
    {"group_norm", group_norm, {}, cost::each_output<7>},
    {"native_group_norm", native_group_norm},
    {"instance_norm", instance_norm, {}, cost::each_output<7>},
    {"embedding", embedding, looks_up | gives_contiguous, cost::each_output<0>},
    {"lstm", recurrent<4, 2>, is_composite, cost::recurrent_layer},
    {"gru", recurrent<3, 1>, is_composite, cost::recurrent_layer},
    {"rnn_tanh rnn_relu", recurrent<1, 1>, is_composite, cost::recurrent_layer},
    {"fxgraph::packed_lstm", packed_recurrent<4, 2, 3>, is_composite, cost::recurrent_layer},
    {"fxgraph::packed_gru", packed_recurrent<3, 1, 4>, is_composite, cost::recurrent_layer},
    {"lstm_cell", recurrent_cell<4, 2>, is_composite, cost::cell<3>},
    {"gru_cell", recurrent_cell<3, 1>, is_composite, cost::cell<2>},
    {"rnn_tanh_cell rnn_relu_cell", recurrent_cell<1, 1>, is_composite, cost::cell<2>},
    {"mse_loss l1_loss kl_div smooth_l1_loss huber_loss", loss},
    {"binary_cross_entropy binary_cross_entropy_with_logits", binary_loss},
    {"cross_entropy_loss nll_loss_nd", class_loss},
    {"prelu", prelu},
    {"glu", gated},
    {"one_hot", one_hot, gives_contiguous | sizes_of_data, nullptr, nullptr, "num_classes"},
};

}  // namespace
}  // namespace layer_rows

std::span<const OperatorRecord> layer_operators() { return layer_rows::kRows; }

}  // namespace fx::internal
