#include <fxgraph/rewriter/quantize/equalize.h>

#include <ATen/ATen.h>

#include <cmath>
#include <unordered_map>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::quantize {

namespace {

constexpr int kRounds = 20;
constexpr double kSettled = 1e-3;

/// A layer whose tensors nobody else reads.
struct Layer {
  std::string weight, bias;
  bool depthwise = false;
};

class Equalization {
 public:
  explicit Equalization(GraphModule& flat) : flat_(flat), written_(flat) {}

  std::size_t run() {
    std::vector<std::pair<Layer, Layer>> pairs;
    for (Node& node : flat_.graph().nodes()) {
      const auto first = layer(node);
      if (!first) continue;
      if (const auto second = layer_after(node)) pairs.emplace_back(*first, *second);
    }
    own_tensors(pairs);
    for (int round = 0; round < kRounds; ++round) {
      double largest = 0;
      for (const auto& [first, second] : pairs) largest = std::max(largest, balance(first, second));
      if (largest < kSettled) break;
    }
    return pairs.size();
  }

 private:
  std::string sole_attribute(const Argument* value) const {
    const Node* attribute = value ? value->node_or_null() : nullptr;
    if (!attribute || !attribute->is(Op::get_attr) || written_.is_written(*attribute)) return {};
    const bool sole = attribute->num_users() == 1 && flat_.graph().count(Op::get_attr, attribute->target()) == 1;
    return sole ? attribute->target().str() : "";
  }

  // Convolutions without groups, depthwise ones, and linear layers.
  std::optional<Layer> layer(Node& node) const {
    const Row* row = node.is(Op::call_function) ? row_of(node.target().view()) : nullptr;
    if (!row || row->role != Role::weighted || row->packet.starts_with("aten::conv_transpose")) return std::nullopt;
    const Call call = call_of(node);
    const Argument *bias = call.argument("bias"), *groups = call.argument("groups");
    Layer found{sole_attribute(call.argument("weight")), sole_attribute(bias)};
    if (found.weight.empty() || (found.bias.empty() && bias && !bias->is_none())) return std::nullopt;
    const at::Tensor weight = flat_.attribute(found.weight);
    const std::int64_t number = groups && groups->is_int() ? groups->as_int() : 1;
    found.depthwise = number > 1;
    if (number > 1 && (number != weight.size(0) || weight.size(1) != 1)) return std::nullopt;
    return found;
  }

  std::optional<Layer> layer_after(Node& first) const {
    Node* at = &first;
    for (;;) {
      if (at->num_users() != 1) return std::nullopt;
      Node& user = *at->users().begin();
      if (!user.is(Op::call_function)) return std::nullopt;
      if (packet_of(user.target().view()) == "aten::relu") {
        at = &user;
        continue;
      }
      const Call call = call_of(user);
      const Argument* input = call.argument("input");
      if (!input || input->node_or_null() != at) return std::nullopt;
      const auto found = layer(user);
      // A linear layer after a convolution works on another dimension.
      const bool same = found && (packet_of(user.target().view()) == "aten::linear") ==
                                     (packet_of(first.target().view()) == "aten::linear");
      return same ? found : std::nullopt;
    }
  }

  // The flat program shares nothing with the original, but its parameters may be views of one another.
  void own_tensors(const std::vector<std::pair<Layer, Layer>>& pairs) {
    for (const auto& [first, second] : pairs) {
      for (const std::string& path : {first.weight, first.bias, second.weight})
        if (!path.empty()) flat_.set_attribute(path, flat_.attribute(path).detach().clone());
    }
  }

  static at::Tensor largest(const at::Tensor& weight, std::int64_t axis) {
    return weight.abs().transpose(0, axis).flatten(1).amax(1);
  }
  static std::vector<std::int64_t> along(const at::Tensor& weight, std::int64_t axis) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
    shape[static_cast<std::size_t>(axis)] = -1;
    return shape;
  }

  // Returns how far the largest scale is from 1.
  double balance(const Layer& first, const Layer& second) const {
    at::Tensor from = flat_.attribute(first.weight), to = flat_.attribute(second.weight);
    const std::int64_t axis = second.depthwise ? 0 : 1;
    const at::Tensor a = largest(from, 0), b = largest(to, axis);
    at::Tensor scale = at::sqrt(a / b);
    scale = at::where(scale.isfinite().logical_and(scale > 0), scale, at::ones_like(scale));
    from.div_(scale.view(along(from, 0)));
    if (!first.bias.empty()) flat_.attribute(first.bias).div_(scale);
    to.mul_(scale.view(along(to, axis)));
    return (scale.log().abs().max()).item<float>();
  }

  GraphModule& flat_;
  rules::ProgramEffects written_;
};

}  // namespace

std::size_t equalize(GraphModule& flat) {
  const at::NoGradGuard no_grad;
  return Equalization(flat).run();
}

}  // namespace fx::quantize
