#include <fxgraph/run/unsafe_kernels.h>

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace fx {

namespace {

// Gates of each, and whether it has a cell beside its state.
struct Network {
  std::string_view name;
  std::int64_t gates;
  bool has_cell;
};
constexpr std::array<Network, 4> kNetworks = {
    {{"aten::lstm", 4, true}, {"aten::gru", 3, false}, {"aten::rnn_tanh", 1, false}, {"aten::rnn_relu", 1, false}}};

void check_states(const std::vector<at::Tensor>& states, const at::Tensor& input, std::int64_t networks,
                  std::int64_t batch, bool has_cell) {
  for (const at::Tensor& state : states) {
    // Without a cell LibTorch broadcasts one sequence, or one state.
    const bool is_broadcast = !has_cell && state.dim() == 3 && (batch == 1 || state.size(1) == 1);
    TORCH_CHECK(
        state.dim() == 3 && state.size(0) == networks && (input.dim() != 3 || state.size(1) == batch || is_broadcast),
        "a recurrent network of ", networks, " layers and directions for ", batch,
        " sequences takes no state of sizes ", state.sizes());
  }
}

// (input, states, weights, biases, layers, dropout, training, both ways, batch first)
void check_network(const Network& network, const c10::IValue* arguments) {
  if (!arguments[2].isTensorList()) return;
  const at::Tensor input = arguments[0].toTensor();
  const std::vector<at::Tensor> weights = arguments[2].toTensorVector();
  const std::vector<at::Tensor> states =
      arguments[1].isTensor() ? std::vector{arguments[1].toTensor()} : arguments[1].toTensorVector();
  const std::int64_t ways = arguments[7].toBool() ? 2 : 1, networks = ways * arguments[4].toInt();
  const std::size_t plain = arguments[3].toBool() ? 4 : 2,
                    count = static_cast<std::size_t>(std::max<std::int64_t>(networks, 0));
  const bool projects = weights.size() == count * (plain + 1);  // one weight more
  const auto defined = [](const at::Tensor& tensor) { return tensor.defined(); };
  if (!input.defined() || states.size() != (network.has_cell ? 2u : 1u) || !std::ranges::all_of(states, defined))
    return;
  const std::int64_t batch = input.dim() == 3 ? input.size(arguments[8].toBool() ? 0 : 1) : 0;
  check_states(states, input, networks, batch, network.has_cell);
  // What is left it checks.
  if (input.dim() != 3 || (weights.size() != count * plain && !projects) || !std::ranges::all_of(weights, defined))
    return;
  const std::int64_t width = states.front().size(2), rows = network.gates * states.back().size(2);
  const std::size_t each = plain + (projects ? 1 : 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t features = i < static_cast<std::size_t>(ways) * each ? input.size(2) : ways * width;
    const std::array<std::vector<std::int64_t>, 4> kinds = {{{rows, features}, {rows, width}, {rows}, {rows}}};
    const std::size_t kind = i % each;
    const std::vector<std::int64_t> wanted = kind < plain ? kinds[kind] : std::vector{width, states.back().size(2)};
    TORCH_CHECK(weights[i].sizes() == wanted, "a recurrent network takes a weight of sizes ", at::IntArrayRef(wanted),
                ", not ", weights[i].sizes());
  }
}

bool is_expanded(const at::Tensor& tensor) {
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) return true;
  }
  return false;
}

}  // namespace

void make_safe(const c10::FunctionSchema& schema, c10::IValue* arguments) {
  const std::string& name = schema.name();
  if (name == "aten::median" || name == "aten::nanmedian") {
    if (arguments[0].isTensor() && is_expanded(arguments[0].toTensor()))
      arguments[0] = arguments[0].toTensor().contiguous();
    return;
  }
  const auto* network = std::ranges::find(kNetworks, name, &Network::name);
  if (network != kNetworks.end() && schema.overload_name() == "input") check_network(*network, arguments);
}

}  // namespace fx
