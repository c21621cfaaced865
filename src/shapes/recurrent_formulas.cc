// LibTorch runs recurrent networks step by step, also for their shapes: a thousand steps for a thousand words.
#include <fxgraph/shapes/formula_rows.h>

namespace fx::internal {
namespace {

using c10::IValue;

bool has_sizes(const at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType type) {
  return is_plain(tensor) && tensor.sizes() == sizes && tensor.scalar_type() == type;
}

// (input, states, weights, biases, layers, dropout, training, both ways, batch first): results of a network whose
// weights hold `gates` times the state, with `num_states` states. Nothing for projections.
template <std::int64_t gates, std::size_t num_states>
std::vector<at::Tensor> recurrent(const IValue* arguments) {
  if (!is_plain_real(arguments[0]) || !arguments[2].isTensorList()) return {};
  if (num_states == 1 ? !arguments[1].isTensor() : !arguments[1].isTensorList()) return {};
  const at::Tensor input = arguments[0].toTensor();
  const std::vector<at::Tensor> weights = arguments[2].toTensorVector();
  const std::vector<at::Tensor> states =
      num_states == 1 ? std::vector<at::Tensor>{arguments[1].toTensor()} : arguments[1].toTensorVector();
  const bool has_biases = arguments[3].toBool(), batch_first = arguments[8].toBool();
  const std::int64_t layers = arguments[4].toInt(), ways = arguments[7].toBool() ? 2 : 1;
  const std::size_t each = has_biases ? 4 : 2;
  if (input.dim() != 3 || input.numel() == 0 || layers < 1 || states.size() != num_states || !states[0].defined() ||
      states[0].dim() != 3 || weights.size() != static_cast<std::size_t>(layers * ways) * each)
    return {};
  const std::int64_t steps = input.size(batch_first ? 1 : 0), batch = input.size(batch_first ? 0 : 1);
  const std::int64_t width = states[0].size(2);
  const at::ScalarType type = input.scalar_type();
  if (width < 1) return {};
  for (const at::Tensor& state : states) {
    if (!has_sizes(state, {layers * ways, batch, width}, type)) return {};
  }
  for (std::size_t i = 0; i < weights.size(); i += each) {
    const bool is_first = i < static_cast<std::size_t>(ways) * each;
    if (!has_sizes(weights[i], {gates * width, is_first ? input.size(2) : ways * width}, type) ||
        !has_sizes(weights[i + 1], {gates * width, width}, type))
      return {};
    for (std::size_t bias = 2; bias < each; ++bias) {
      if (!has_sizes(weights[i + bias], {gates * width}, type)) return {};
    }
  }
  std::vector<at::Tensor> results = {contiguous_like(input, {steps, batch, ways * width})};
  if (batch_first) results[0] = results[0].transpose(0, 1);
  for (std::size_t i = 0; i < num_states; ++i) results.push_back(contiguous_like(input, {layers * ways, batch, width}));
  return results;
}

// fxgraph::packed_lstm and packed_gru: (input, states, weights, packed, layers, both ways, batch first), `each`
// tensors for each layer and direction.
template <std::int64_t gates, std::size_t num_states, std::size_t each>
std::vector<at::Tensor> packed(const IValue* arguments) {
  if (!arguments[2].isTensorList()) return {};
  std::vector<at::Tensor> weights;
  const std::vector<at::Tensor> packed = arguments[2].toTensorVector();
  if (packed.size() % each != 0) return {};
  for (std::size_t i = 0; i < packed.size(); i += each) {
    if (packed[i].dim() != 2 || packed[i + 1].dim() != 1 || packed[i + 2].dim() != 2 ||
        packed[i + 2].size(0) != packed[i + 1].size(0))
      return {};
    weights.push_back(packed[i].t());
    weights.push_back(packed[i + 2]);
  }
  const IValue as_usual[] = {arguments[0], arguments[1], weights,      false,       arguments[4],
                             0.0,          false,        arguments[5], arguments[6]};
  return recurrent<gates, num_states>(as_usual);
}

constexpr FormulaRow kRecurrentRows[] = {
    {"aten::lstm.input", 9, nullptr, recurrent<4, 2>},     {"fxgraph::packed_lstm", 7, nullptr, packed<4, 2, 3>},
    {"fxgraph::packed_gru", 7, nullptr, packed<3, 1, 4>},  {"aten::gru.input", 9, nullptr, recurrent<3, 1>},
    {"aten::rnn_tanh.input", 9, nullptr, recurrent<1, 1>}, {"aten::rnn_relu.input", 9, nullptr, recurrent<1, 1>},
};

}  // namespace

std::span<const FormulaRow> recurrent_formulas() { return kRecurrentRows; }

}  // namespace fx::internal
