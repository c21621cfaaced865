#include "rewriter/rules/fusion/fuse_conv_bn.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "ir/node_map.h"
#include "ops/effects.h"
#include "rewriter/rules/operation_site.h"

namespace fx::rules {

namespace {

constexpr std::array kConvolutions = std::to_array<std::string_view>(
    {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d",
     "aten::conv_transpose3d", "aten::convolution", "aten::_convolution", "aten::_convolution_mode"});

bool is_convolution(std::string_view packet) { return std::ranges::find(kConvolutions, packet) != kConvolutions.end(); }
bool is_batch_norm(std::string_view packet) { return packet == "aten::batch_norm"; }

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

Folded fold(const OperationSite& conv, const OperationSite& bn) {
  if (bn.literal_bool("training") != false) return refuse("it normalises by the batch's statistics (training mode)");
  const at::Tensor mean = bn.tensor("running_mean"), variance = bn.tensor("running_var");
  if (!mean.defined() || !variance.defined()) return refuse("it has no running statistics");
  const Argument* eps = bn.argument("eps");
  if (!eps || !eps->is_number()) return refuse("its eps is not a literal");
  const at::Tensor gamma = bn.tensor("weight"), beta = bn.tensor("bias");
  if (!gamma.defined() && !bn.is_none("weight")) return refuse("its weight is computed, not an attribute");
  if (!beta.defined() && !bn.is_none("bias")) return refuse("its bias is computed, not an attribute");

  const at::Tensor weight = conv.tensor("weight"), bias = conv.tensor("bias");
  if (!weight.defined()) return refuse("the convolution's weight is computed, not an attribute");
  if (!bias.defined() && !conv.is_none("bias")) return refuse("the convolution's bias is computed, not an attribute");
  if (!weight.is_floating_point() || weight.is_quantized())
    return refuse("the convolution's weight is not of a floating-point type");
  const Argument* groups_argument = conv.argument("groups");
  if (groups_argument && !groups_argument->is_int()) return refuse("the convolution's groups are not a literal");
  const std::int64_t groups = groups_argument ? groups_argument->as_int() : 1;
  const bool transposed = is_transposed(conv);
  if (weight.dim() < 3) return refuse("the convolution's weight has fewer than three dimensions");
  const std::int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
  if (mean.numel() != channels) {
    return refuse("it normalises " + std::to_string(mean.numel()) + " channels, the convolution makes " +
                  std::to_string(channels));
  }

  const auto wide = [&](const at::Tensor& tensor) { return tensor.detach().to(weight.device(), at::kDouble); };
  at::Tensor scale = at::rsqrt(wide(variance) + eps->as_float());
  if (gamma.defined()) scale = scale * wide(gamma);
  at::Tensor shift = -wide(mean);
  if (bias.defined()) shift = shift + wide(bias);
  shift = shift * scale;
  if (beta.defined()) shift = shift + wide(beta);
  const auto narrow = [&](const at::Tensor& tensor) {
    return tensor.to(weight.scalar_type()).contiguous(weight.suggest_memory_format());
  };
  return {narrow(scaled_weight(wide(weight), scale, transposed, groups)), shift.to(weight.scalar_type()), {}};
}

// Sets argument `name` of a call, wherever it stands in it.
void set_argument(const OperatorSchema& schema, Node& call, std::string_view name, const Argument& value) {
  const auto index = static_cast<std::size_t>(schema.index_of(name));
  if (index < call.args().size()) {
    call.update_arg(index, value);
  } else if (index == call.args().size() && !call.kwarg(name) && !schema.arguments[index].keyword_only) {
    call.insert_arg(index, value);
  } else {
    call.update_kwarg(name, value);
  }
}

// A copy of the convolution's leaf with other tensors; one without a bias gets one.
std::shared_ptr<LeafModule> folded_leaf(const OperationSite& conv, const Folded& folded) {
  NodeMap<Node*> copies;
  Graph body = conv.leaf()->body()->clone(&copies);
  Node& call = *copies[conv.call()];
  std::vector<NamedTensor> tensors = conv.leaf()->tensors();
  const auto path_in_leaf = [&](std::string_view name) {
    const Node* node = conv.argument(name) ? conv.argument(name)->node_or_null() : nullptr;
    return node ? node->target().str() : std::string();
  };
  const std::string weight_path = path_in_leaf("weight");
  std::string bias_path = path_in_leaf("bias");
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return tensor.path == bias_path || tensor.path == "bias"; });
  for (NamedTensor& tensor : tensors) {
    if (tensor.path == weight_path) tensor.tensor = folded.weight;
  }
  if (bias_path.empty()) {
    bias_path = "bias";
    const auto scope = body.inserting_before(call);
    set_argument(conv.schema(), call, "bias", body.get_attr(bias_path));
  }
  tensors.push_back({bias_path, folded.bias, true});
  return make_leaf(conv.leaf()->qualified_name(), tensors, std::move(body));
}

class ConvBnFusion {
 public:
  explicit ConvBnFusion(GraphModule& module) : module_(module), graph_(module.graph()) { find_written_attributes(); }

  Outcome run() {
    for (Node& node : graph_.nodes()) {
      const auto bn = OperationSite::find(module_, node, is_batch_norm);
      Node* producer = bn ? bn->input() : nullptr;
      if (!producer) continue;
      const auto conv = OperationSite::find(module_, *producer, is_convolution);
      if (!conv) continue;
      const std::string reason = try_fuse(*conv, *bn);
      if (reason.empty()) {
        ++outcome_.applied;
      } else {
        outcome_.refused.push_back({node.name(), reason});
      }
    }
    return std::move(outcome_);
  }

 private:
  // Attributes that the program itself writes are no constants.
  void find_written_attributes() {
    for (const Node& node : graph_.nodes()) {
      for_each_written(node, [&](const Argument& argument) {
        const Node* target = argument.node_or_null();
        if (target && target->is(Op::get_attr)) written_.insert(target->target().str());
      });
    }
  }

  std::string obstacle(const OperationSite& conv, const OperationSite& bn) const {
    if (conv.node().num_users() > 1) {
      std::string others;
      for (const Node& user : conv.node().users()) {
        if (&user != &bn.node()) others += (others.empty() ? "" : ", ") + user.name();
      }
      return "the value of " + conv.node().name() + " is also used by " + others;
    }
    for (const char* name : {"weight", "bias"}) {
      const Argument* tensor = conv.leaf() ? conv.argument(name) : nullptr;
      if (tensor && tensor->is_node() && tensor->node().num_users() > 1)
        return std::string("the module reads its ") + name + " elsewhere too";
    }
    for (const auto& [site, name] :
         {std::pair(&conv, "weight"), std::pair(&conv, "bias"), std::pair(&bn, "weight"), std::pair(&bn, "bias"),
          std::pair(&bn, "running_mean"), std::pair(&bn, "running_var")}) {
      const std::string path = site->tensor_path(name);
      if (!path.empty() && written_.count(path)) return "the program writes to " + path;
    }
    return {};
  }

  std::string try_fuse(const OperationSite& conv, const OperationSite& bn) {
    if (std::string reason = obstacle(conv, bn); !reason.empty()) return reason;
    const Folded folded = fold(conv, bn);
    if (!folded.refusal.empty()) return folded.refusal;
    if (conv.leaf()) {
      install_leaf(conv, folded);
    } else {
      install_attributes(conv, folded);
    }
    Node& conv_node = conv.node();
    Node& bn_node = bn.node();
    note_provenance(conv_node, bn_node);
    const std::vector<Node*> inputs = bn_node.all_input_nodes();
    bn_node.replace_all_uses_with(conv_node);
    graph_.erase_node(bn_node);
    erase_unread(inputs);
    return {};
  }

  // In place where this call is the only one; beside the old one where something else needs that too.
  void install_leaf(const OperationSite& conv, const Folded& folded) {
    const std::string path = conv.node().target().str();
    const bool only_call = graph_.count(Op::call_module, conv.node().target()) == 1;
    const std::string place = only_call && !reads_inside(path) ? path : module_.fresh_path(path + "_folded");
    module_.add_submodule(place, folded_leaf(conv, folded));
    conv.node().set_target(place);
  }

  bool reads_inside(const std::string& path) const {
    for (const Node& node : graph_.nodes()) {
      if (node.is(Op::get_attr) && node.target().view().starts_with(path + ".")) return true;
    }
    return false;
  }

  void install_attributes(const OperationSite& conv, const Folded& folded) {
    const std::string weight_path = module_.fresh_path(conv.tensor_path("weight") + "_folded");
    module_.set_parameter(weight_path, folded.weight);
    std::string bias_stem = conv.tensor_path("bias");
    if (bias_stem.empty()) {
      const std::string old = conv.tensor_path("weight");
      const std::size_t dot = old.rfind('.');
      bias_stem = (dot == std::string::npos ? "" : old.substr(0, dot + 1)) + "bias";
    }
    const std::string bias_path = module_.fresh_path(bias_stem + "_folded");
    module_.set_parameter(bias_path, folded.bias);

    Node& node = conv.node();
    const std::vector<Node*> inputs = node.all_input_nodes();
    const auto scope = graph_.inserting_before(node);
    set_argument(conv.schema(), node, "weight", graph_.get_attr(weight_path));
    set_argument(conv.schema(), node, "bias", graph_.get_attr(bias_path));
    erase_unread(inputs);
  }

  static void note_provenance(Node& conv, const Node& bn) {
    conv.meta().set(meta_key::kProvenance, std::string(kFuseConvBn.name) + ": " + conv.name() + ", " + bn.name());
  }

  void erase_unread(const std::vector<Node*>& nodes) {
    for (Node* node : nodes) {
      if (!node->is_erased() && node->is(Op::get_attr) && !node->has_users()) graph_.erase_node(*node);
    }
  }

  GraphModule& module_;
  Graph& graph_;
  std::unordered_set<std::string> written_;  // membership only
  Outcome outcome_;
};

Outcome apply(GraphModule& module) {
  const at::NoGradGuard no_grad;
  return ConvBnFusion(module).run();
}

}  // namespace

const ProgramRule kFuseConvBn = {
    "fuse-conv-bn",
    "Folds batch normalisation into the convolution (or transposed convolution) before it",
    "the convolution's value goes to the batch norm only; evaluation mode with running statistics; weights and "
    "statistics are "
    "attributes that nothing writes; as many channels normalised as made",
    Promise::reassociates,
    apply,
};

}  // namespace fx::rules
