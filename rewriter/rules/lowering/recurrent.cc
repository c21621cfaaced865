// LSTMs and GRUs as fxgraph's own operators (src/run/own_operators.cc), where that is measured to be faster than
// LibTorch's; for several sequences with weights that XNNPACK packs.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>

namespace fx::rules::lowering_recurrent {

namespace {

std::string call_of(std::string_view target) {
  return std::string(target) +
         "(x: node, state, weights, has_biases: literal, num_layers: literal, dropout: literal, train: literal, "
         "bidirectional: literal, batch_first: literal)";
}

/// Tensors of one layer and direction: weights of the input and of the state, and their biases.
std::size_t count_per_layer(const Match& match) { return match.literal("has_biases") != 0 ? 4 : 2; }

bool all_are_float(const Match& match, const Argument& values) {
  bool all = true;
  for_each_node(values, [&](const Node& value) {
    const TensorFacts info = match.info(value);
    all = all && info && is_on_cpu(info, DType::float32);
  });
  return all;
}

Decision fits(const Match& match, std::size_t states) {
  const TensorFacts x = match.info("x");
  if (!x) return refuse("the shape of its input is not known; give --input");
  if (match.literal("train") != 0 && match.literal("dropout") != 0) return refuse("it draws in training");
  const auto layers = static_cast<std::size_t>(match.literal("num_layers"));
  const std::size_t ways = match.literal("bidirectional") != 0 ? 2 : 1;
  const Argument &weights = match.argument("weights"), &state = match.argument("state");
  if (!weights.is_container() || weights.elements().size() != layers * ways * count_per_layer(match))
    return refuse("it projects its state, or its weights are no list here");
  if (states == 1 ? !state.is_node() : !state.is_container() || state.elements().size() != states)
    return refuse("its state is no list here");
  if (x.rank() != 3 || x.example().numel() == 0) return refuse("its input is empty or not of three dimensions");
  if (!is_on_cpu(x, DType::float32) || !all_are_float(match, weights) || !all_are_float(match, state))
    return refuse("it is not float32 on the CPU");
  return true;
}

Node& transposed(Rewriter& r, Node& matrix) { return r.call_function("aten::t", {matrix}); }
Node& transposed_copy(Rewriter& r, Node& matrix) {
  return r.call_function("aten::contiguous", {transposed(r, matrix)});
}

Node& rows(Rewriter& r, Node& matrix, std::int64_t from, std::int64_t to) {
  return r.call_function("aten::slice.Tensor", {matrix, 0, from, to});
}

Node& joined(Rewriter& r, std::vector<Argument> parts) { return r.call_function("aten::cat", {Argument::list(parts)}); }

/// The gates, of `width` rows each, of LibTorch's order, input, forget, cell, output, with the cell's last.
Node& cell_last(Rewriter& r, Node& gates, std::int64_t width) {
  return joined(
      r, {rows(r, gates, 0, 2 * width), rows(r, gates, 3 * width, 4 * width), rows(r, gates, 2 * width, 3 * width)});
}

/// What LibTorch has for one layer and direction.
struct Layer {
  Node &of_input, &of_state;
  Node *input_bias = nullptr, *state_bias = nullptr;
  std::int64_t width;

  Node& no_bias(Rewriter& r) const {
    return r.call_function("aten::zeros_like", {r.call_function("aten::select.int", {of_input, 1, 0})});
  }
};

enum class By : bool { rows, columns };  ///< how the weight of the state lies in memory

/// What the operator is to compute with.
struct Way {
  By by;
  bool for_xnnpack;
};
constexpr Way kWays[] = {{By::rows, false}, {By::columns, false}, {By::rows, true}, {By::columns, true}};

/// What the operator takes.
struct Packed {
  std::vector<Argument> tensors{};
  std::vector<Argument> objects{};  ///< of XNNPACK's
};

Node& laid_out(Rewriter& r, Node& matrix, By by) {
  return by == By::columns ? transposed(r, transposed_copy(r, matrix)) : matrix;
}

/// The weights of the input and the state for XNNPACK, or the first of them transposed for a product.
void add_weights(Rewriter& r, Node& of_input, Node& bias, Node& of_state, bool for_xnnpack, Packed& packed) {
  packed.tensors.emplace_back(for_xnnpack ? transposed(r, of_input) : transposed_copy(r, of_input));
  packed.tensors.emplace_back(bias);
  packed.tensors.emplace_back(of_state);
  if (!for_xnnpack) return;
  for (const auto& [weight, with] : {std::pair(&of_input, Argument(bias)), std::pair(&of_state, Argument())})
    packed.objects.emplace_back(xnnpack_linear_weights(r, *weight, with));
}

void pack_lstm(Rewriter& r, const Layer& layer, const Way& way, Packed& packed) {
  Node& bias =
      layer.input_bias ? r.call_function("aten::add.Tensor", {*layer.input_bias, *layer.state_bias}) : layer.no_bias(r);
  add_weights(r, cell_last(r, layer.of_input, layer.width), cell_last(r, bias, layer.width),
              laid_out(r, cell_last(r, layer.of_state, layer.width), way.by), way.for_xnnpack, packed);
}

void pack_gru(Rewriter& r, const Layer& layer, const Way& way, Packed& packed) {
  const std::int64_t two = 2 * layer.width, all = 3 * layer.width;
  Node *bias = layer.input_bias, *state_bias = layer.state_bias;
  if (bias) {
    Node& both = r.call_function("aten::add.Tensor", {*bias, *state_bias});
    bias = &joined(r, {rows(r, both, 0, two), rows(r, *bias, two, all)});
    Node& none = r.call_function("aten::zeros_like", {rows(r, *state_bias, 0, two)});
    state_bias = &joined(r, {none, rows(r, *state_bias, two, all)});
  } else {
    bias = &layer.no_bias(r);
    state_bias = &layer.no_bias(r);
  }
  add_weights(r, layer.of_input, *bias, laid_out(r, layer.of_state, way.by), way.for_xnnpack, packed);
  packed.tensors.emplace_back(*state_bias);
}

struct Network {
  const char *name, *plain, *own;
  std::int64_t gates;
  std::size_t states;
  void (*pack)(Rewriter&, const Layer&, const Way&, Packed&);
  const char* example;
};

constexpr Network kNetworks[] = {
    {"lstm", "aten::lstm.input", "fxgraph::packed_lstm", 4, 2, pack_lstm,
     "aten::lstm.input(x: f32[T, N, 5], [h: f32[1, N, 3], c: f32[1, N, 3]], [a: f32[12, 5], b: f32[12, 3]], False, 1, "
     "0.0, False, False, False)"},
    {"gru", "aten::gru.input", "fxgraph::packed_gru", 3, 1, pack_gru,
     "aten::gru.input(x: f32[T, N, 5], h: f32[1, N, 3], [a: f32[9, 5], b: f32[9, 3]], False, 1, 0.0, False, False, "
     "False)"},
};

Node& lower_network(const Network& network, const Match& m, Rewriter& r, const Way& way) {
  const std::size_t each = count_per_layer(m);
  const ArgumentSpan weights = m.argument("weights").elements();
  Packed packed;
  for (std::size_t i = 0; i < weights.size(); i += each) {
    const bool has_biases = each == 4;
    network.pack(r,
                 {weights[i].node(), weights[i + 1].node(), has_biases ? &weights[i + 2].node() : nullptr,
                  has_biases ? &weights[i + 3].node() : nullptr, m.info(weights[i].node()).sizes()[0] / network.gates},
                 way, packed);
  }
  return r.call_function(network.own,
                         {m["x"], m.argument("state"), Argument::list(packed.tensors), Argument::list(packed.objects),
                          m.argument("num_layers"), m.argument("bidirectional"), m.argument("batch_first")});
}

std::vector<Rewrite> recurrent() {
  std::vector<Rewrite> rewrites;
  for (const Network& network : kNetworks) {
    for (const Way& way : kWays) {
      rewrites.push_back({
          .name = std::string(way.for_xnnpack ? "xnnpack-" : "") + network.name +
                  (way.by == By::rows ? "-rows" : "-columns"),
          .pattern = call_of(network.plain),
          .when = [&network](const Match& m) { return fits(m, network.states); },
          .replacement = [&network, &way](const Match& m, Rewriter& r) -> Node& {
            return lower_network(network, m, r, way);
          },
          .needs = {.finite_inputs = true},
          .examples = {network.example},
      });
    }
  }
  return rewrites;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-recurrent",
          .summary =
              "LSTMs and GRUs call fxgraph::packed_lstm and packed_gru, whose steps allocate nothing, where that was "
              "measured to be faster",
          .preconditions =
              "shapes known (--input); float32 on the CPU; no projection; weights are attributes that nothing writes; "
              "inference: no gradients",
          .order = 535,
          .group = Group::lowering,
          .promise = Promise::reassociates,
          .rewrites = recurrent,
          .pass = apply_fastest,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_recurrent
