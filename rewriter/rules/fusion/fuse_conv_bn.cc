// Folds batch normalisation into the convolution or linear layer before it, or the linear layer after it, for
// inference.
//
//   after:    W' = W · gamma / sqrt(var + eps)   (along the output channels)
//             b' = (b - mean) · gamma / sqrt(var + eps) + beta
//   before:   W' = W · scale (along the inputs), b' = W shift + b, where the norm computes x · scale + shift
//
// A missing gamma is 1, a missing beta 0, a missing bias 0. Computed in float64 and rounded to the type of the weight.
//
// conv1d, conv2d, conv3d and their transposes, with groups, and linear, as modules (call_module of a leaf) or as
// operators on attributes, in any mixture. Weights that something else uses too are left alone: the folded operation
// gets its own.
//
// Source: the standard identity; preconditions after what quantisation front ends and ONNX optimisers check.
#include <fxgraph/rewriter/rules/rules.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules::fusion_fuse_conv_bn {

namespace {

constexpr std::array kConvolutions = std::to_array<std::string_view>(
    {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d",
     "aten::conv_transpose3d", "aten::convolution", "aten::_convolution", "aten::_convolution_mode"});

bool is_convolution(std::string_view packet) { return std::ranges::find(kConvolutions, packet) != kConvolutions.end(); }

/// The folded tensors, or why there are none.
struct Folded {
  at::Tensor weight, bias;
  std::string refusal;
};

Folded refuse(std::string reason) { return {{}, {}, std::move(reason)}; }

bool is_transposed(const OperationSite& conv) {
  return conv.packet().starts_with("aten::conv_transpose") || conv.literal_bool("transposed").value_or(false);
}

// `scale` per output channel, shaped to multiply `weight`: (out, in/groups, …), or when transposed (in, out/groups, …),
// where the input channels of group g meet the output channels of group g only.
at::Tensor scaled_weight(const at::Tensor& weight, const at::Tensor& scale, bool transposed, std::int64_t groups) {
  if (!transposed) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
    shape[0] = -1;
    return weight * scale.reshape(shape);
  }
  std::vector<std::int64_t> grouped = weight.sizes().vec();
  grouped[0] /= groups;
  grouped.insert(grouped.begin(), groups);
  std::vector<std::int64_t> shape(grouped.size(), 1);
  shape[0] = groups;
  shape[2] = -1;
  return (weight.reshape(grouped) * scale.reshape(shape)).reshape(weight.sizes());
}

at::Tensor wide(const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); }

/// Weight and bias of a convolution or linear layer as tensors, or why not.
Folded weights_of(const OperationSite& layer, const char* what) {
  const at::Tensor weight = layer.tensor("weight"), bias = layer.tensor("bias");
  if (!weight.defined()) return refuse(std::string("the ") + what + "'s weight is computed, not an attribute");
  if (!bias.defined() && !layer.is_none("bias"))
    return refuse(std::string("the ") + what + "'s bias is computed, not an attribute");
  if (!weight.is_floating_point() || weight.is_quantized())
    return refuse(std::string("the ") + what + "'s weight is not of a floating-point type");
  return {weight, bias, {}};
}

// Where a weight is so large, or a deviation so small, that their product is no number, the layers do not commute.
Folded narrowed(const at::Tensor& like, const at::Tensor& weight, const at::Tensor& bias) {
  for (const at::Tensor& tensor : {weight, bias}) {
    if (!at::isfinite(tensor.to(like.scalar_type())).all().item<bool>())
      return refuse("the folded weights are not finite");
  }
  return {weight.to(like.scalar_type()).contiguous(like.suggest_memory_format()), bias.to(like.scalar_type()), {}};
}

// ── The norm after the layer ─────────────────────────────────────────────────────────────────────────────────────────

Folded fold_after(const OperationSite& layer, const OperationSite& bn, const char* what) {
  const ChannelAffine affine = affine_of_batch_norm(bn);
  if (!affine.refusal.empty()) return refuse(affine.refusal);
  const Folded old = weights_of(layer, what);
  if (!old.refusal.empty()) return old;
  const Argument* groups_argument = layer.argument("groups");
  if (groups_argument && !groups_argument->is_int()) return refuse("the convolution's groups are not a literal");
  const std::int64_t groups = groups_argument ? groups_argument->as_int() : 1;
  const bool transposed = is_transposed(layer);
  if (old.weight.dim() < (is_linear(layer.packet()) ? 2 : 3))
    return refuse(std::string("the ") + what + "'s weight has too few dimensions");
  const std::int64_t channels = transposed ? old.weight.size(1) * groups : old.weight.size(0);
  if (affine.scale.numel() != channels) {
    return refuse("it normalises " + std::to_string(affine.scale.numel()) + " channels, the " + what + " makes " +
                  std::to_string(channels));
  }
  const at::Tensor scale = affine.scale.to(old.weight.device());
  at::Tensor shift = affine.shift.to(old.weight.device());
  if (old.bias.defined()) shift = shift + wide(old.bias) * scale;
  return narrowed(old.weight, scaled_weight(wide(old.weight), scale, transposed, groups), shift);
}

// ── The norm before the layer ────────────────────────────────────────────────────────────────────────────────────────

Folded fold_before(const OperationSite& bn, const OperationSite& linear) {
  const ChannelAffine affine = affine_of_batch_norm(bn);
  if (!affine.refusal.empty()) return refuse(affine.refusal);
  const Folded old = weights_of(linear, "linear layer");
  if (!old.refusal.empty()) return old;
  if (old.weight.dim() != 2 || affine.scale.numel() != old.weight.size(1)) {
    return refuse("it normalises " + std::to_string(affine.scale.numel()) + " channels, the linear layer takes " +
                  std::to_string(old.weight.dim() == 2 ? old.weight.size(1) : 0));
  }
  const at::Tensor weight = wide(old.weight);
  at::Tensor bias = at::mv(weight, affine.shift.to(weight.device()));
  if (old.bias.defined()) bias = bias + wide(old.bias);
  return narrowed(old.weight, weight * affine.scale.to(weight.device()), bias);
}

// ── The pass ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Two operations, one feeding the other, that may become one.
class BatchNormFolding {
 public:
  explicit BatchNormFolding(RuleContext& program)
      : program_(program), rule_(program.rule.name), graph_(program.module.graph()), weights_(program) {}

  PassResult convolutions() {
    return each_pair(is_convolution, is_batch_norm, [&](const OperationSite& conv, const OperationSite& bn) {
      if (std::string reason = obstacle(conv, bn, conv, bn); !reason.empty()) return reason;
      if (std::string reason = not_batched(conv, bn); !reason.empty()) return reason;
      return fold_into_first(conv, bn, "convolution");
    });
  }

  PassResult linears() {
    return each_pair(is_linear, is_batch_norm, [&](const OperationSite& linear, const OperationSite& bn) {
      if (std::string reason = not_a_matrix(linear.node()); !reason.empty()) return reason;
      return fold_into_first(linear, bn, "linear layer");
    });
  }

  PassResult norms_before_linears() {
    return each_pair(is_batch_norm, is_linear, [&](const OperationSite& bn, const OperationSite& linear) {
      if (std::string reason = not_a_matrix(bn.node()); !reason.empty()) return reason;
      return fold_into_second(bn, linear);
    });
  }

 private:
  using Packet = bool (*)(std::string_view);

  template <typename Fold>
  PassResult each_pair(Packet first, Packet second, Fold&& fold) {
    PassResult outcome;
    for (Node& node : graph_.nodes()) {
      const auto user = OperationSite::find(program_.module, node, second);
      Node* producer = user ? user->input() : nullptr;
      if (!producer) continue;
      const auto source = OperationSite::find(program_.module, *producer, first);
      if (!source) continue;
      asked_.clear();
      const std::string reason = fold(*source, *user);
      if (reason.empty()) {
        ++outcome.applied;
      } else {
        outcome.refused.push_back({std::string(rule_), node.name(), reason});
      }
    }
    return outcome;
  }

  /// batch_norm works on dimension 1, linear on the last: of a matrix they are the same.
  std::string not_a_matrix(const Node& between) {
    const TensorFacts info = program_.values.info(between, asked_);
    if (!info) return "the rank of " + between.name() + " is not known; give --input";
    return info.rank() == 2 ? "" : "it normalises dimension 1, the linear layer works on the last";
  }

  /// batch_norm works on dimension 1. That is the channels when there is a batch; a convolution does without one.
  std::string not_batched(const OperationSite& conv, const OperationSite& bn) {
    const TensorFacts info = program_.values.info(conv.node(), asked_);
    const std::size_t rank = info ? info.rank() : rank_taken_by(bn);
    const at::Tensor weight = conv.tensor("weight");
    if (rank == 0) return "whether " + conv.node().name() + " has a batch dimension is not known; give --input";
    if (weight.defined() && rank != static_cast<std::size_t>(weight.dim()))
      return "it normalises dimension 1, and there is no batch dimension";
    return {};
  }

  /// The dimensions that a module insists on; 0 where it takes several: what a conv3d makes without a batch suits
  /// BatchNorm2d.
  static std::size_t rank_taken_by(const OperationSite& bn) {
    const ModuleType* type = bn.leaf() ? find_module_type(bn.leaf()->type_name()) : nullptr;
    return type ? type->input_rank : 0;
  }

  static std::string used_elsewhere(const Node& value, const Node& here) {
    if (value.num_users() == 1) return {};
    std::string others;
    for (const Node& user : value.users()) {
      if (&user != &here) others += (others.empty() ? "" : ", ") + user.name();
    }
    return "the value of " + value.name() + " is also used by " + others;
  }

  std::string obstacle(const OperationSite& first, const OperationSite& second, const OperationSite& layer,
                       const OperationSite& bn) {
    if (std::string reason = used_elsewhere(first.node(), second.node()); !reason.empty()) return reason;
    if (std::string reason = weights_.not_replaceable(layer); !reason.empty()) return reason;
    return weights_.not_constant(bn, {"weight", "bias", "running_mean", "running_var"});
  }

  std::string fold_into_first(const OperationSite& layer, const OperationSite& bn, const char* what) {
    if (std::string reason = obstacle(layer, bn, layer, bn); !reason.empty()) return reason;
    const Folded folded = fold_after(layer, bn, what);
    if (!folded.refusal.empty()) return folded.refusal;
    if (std::string reason = program_.values.require(rule_, asked_.facts()); !reason.empty()) return reason;
    weights_.replace(layer, folded.weight, folded.bias);
    note_provenance(layer.node(), bn.node());
    drop(bn.node(), layer.node());
    return {};
  }

  std::string fold_into_second(const OperationSite& bn, const OperationSite& linear) {
    if (std::string reason = obstacle(bn, linear, linear, bn); !reason.empty()) return reason;
    Node* input = bn.input();
    if (!input) return "what it normalises is computed inside its module";
    const TensorFacts info = program_.values.info(*input, asked_);
    if (info && !info.is_of(floating_types())) return "it makes whole numbers floating-point";
    const ProgramEffects& effects = weights_.effects();
    if (const Node* write = effects.write_between(*input, bn.node(), linear.node()))
      return write->name() + " writes to what it normalises before the linear layer runs";
    const Folded folded = fold_before(bn, linear);
    if (!folded.refusal.empty()) return folded.refusal;
    if (std::string reason = program_.values.require(rule_, asked_.facts()); !reason.empty()) return reason;
    weights_.replace(linear, folded.weight, folded.bias);
    note_provenance(linear.node(), bn.node());
    drop(bn.node(), *input);
    return {};
  }

  void drop(Node& bn, Node& stand_in) {
    const std::vector<Node*> inputs = bn.all_input_nodes();
    program_.rewriter.replace_all_uses_with(bn, stand_in);
    program_.rewriter.erase_node(bn);
    weights_.erase_unread(inputs);
  }

  void note_provenance(Node& layer, const Node& bn) const {
    layer.meta().set(meta_key::kProvenance, std::string(rule_) + ": " + layer.name() + ", " + bn.name());
  }

  RuleContext& program_;
  FactLog asked_;  // of the pair at hand
  std::string_view rule_;
  Graph& graph_;
  Weights weights_;
};

PassResult fuse_conv_bn(RuleContext& program) {
  const at::NoGradGuard no_grad;
  return BatchNormFolding(program).convolutions();
}
PassResult fuse_linear_bn(RuleContext& program) {
  const at::NoGradGuard no_grad;
  return BatchNormFolding(program).linears();
}
PassResult fuse_bn_linear(RuleContext& program) {
  const at::NoGradGuard no_grad;
  return BatchNormFolding(program).norms_before_linears();
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "fuse-conv-bn",
          .summary = "Folds batch normalisation into the convolution (or transposed convolution) before it",
          .preconditions =
              "the convolution's value goes to the batch norm only; evaluation mode with running statistics; weights "
              "and statistics are attributes that nothing writes; as many channels normalised as made",
          .order = 340,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::reassociates,
          .pass = fuse_conv_bn,
      },
      {
          .name = "fuse-linear-bn",
          .summary = "Folds batch normalisation into the linear layer before it",
          .preconditions = "as fuse-conv-bn; the value between is a matrix, as --input shows",
          .order = 350,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::reassociates,
          .pass = fuse_linear_bn,
      },
      {
          .name = "fuse-bn-linear",
          .summary = "Folds batch normalisation into the linear layer after it",
          .preconditions =
              "the normalised value goes to the linear layer only and is a matrix, as --input shows; else as "
              "fuse-conv-bn",
          .order = 360,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::reassociates,
          .pass = fuse_bn_linear,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::fusion_fuse_conv_bn
