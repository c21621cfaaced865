#include <fxgraph/rewriter/quantize/training.h>

#include <ATen/ATen.h>

#include <mutex>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/number_list.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/flat_program.h>

namespace fx::quantize {

// ── BatchNorm ────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {
constexpr const char* kTensorNames[] = {"weight", "bias", "running_mean", "running_var"};
}

void BatchNorm::set_tensors(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& variance) {
  const at::Tensor given[] = {weight, bias, mean, variance};
  for (std::size_t i = 0; i < 4; ++i) {
    if (!given[i].defined()) continue;
    const at::Tensor own = given[i].detach().clone();
    tensors_[i] = i < 2 ? register_parameter(kTensorNames[i], own) : register_buffer(kTensorNames[i], own);
  }
}

torch::Tensor BatchNorm::forward(torch::Tensor x) {
  return at::batch_norm(x, tensors_[0], tensors_[1], tensors_[2], tensors_[3], is_training() && !frozen_, momentum_,
                        eps_, /*cudnn_enabled=*/false);
}

std::shared_ptr<torch::nn::Module> BatchNorm::clone(const TorchDeviceOption& device) const {
  auto copy = std::make_shared<BatchNorm>(momentum_, eps_);
  copy->set_tensors(tensors_[0], tensors_[1], tensors_[2], tensors_[3]);
  if (device) copy->to(*device);
  copy->frozen_ = frozen_;
  copy->train(is_training());
  return copy;
}

// ── To be trained ────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

QuantRecord::Layer tensors_of(const Node& layer) {
  const Call call = call_of(layer);
  return {attribute_path(call.argument("weight")), attribute_path(call.argument("bias")), /*norm=*/"", /*result=*/""};
}

/// The batch norm that alone reads `layer`, if it was folded: `folded` has no such node any more.
const Node* folded_norm(const GraphModule& unfolded, const Node& layer, const Graph& folded) {
  const Node* original = unfolded.graph().find(layer.name());
  if (!original || original->num_users() != 1) return nullptr;
  const Node& user = *original->users().begin();
  if (packet_of(user.target().view()) != "aten::batch_norm" || folded.find(user.name())) return nullptr;
  const Call norm = call_of(user);
  const Argument *momentum = norm.argument("momentum"), *eps = norm.argument("eps");
  return momentum->is_number() && eps->is_number() ? &user : nullptr;
}

class LayerTraining {
 public:
  LayerTraining(GraphModule& folded, const GraphModule& unfolded, QuantRecord& record)
      : folded_(folded), graph_(folded.graph()), unfolded_(unfolded), record_(record) {}

  void train(Node& layer, const Mark& mark) {
    const auto scope = graph_.inserting_before(layer);
    const auto axis = channel_axis(*mark.row);
    const Node* norm = axis ? folded_norm(unfolded_, layer, graph_) : nullptr;
    QuantRecord::Layer made;
    Node* scale = nullptr;
    if (norm) {
      made = restore(layer, *norm);
      scale = &scale_of(layer, made);
    } else {
      made = tensors_of(layer);
      make_parameter(made.weight);
      if (!made.bias.empty()) make_parameter(made.bias);
    }
    Node* weight = &layer.arg(1).node();
    std::vector<std::int64_t> by_channel(static_cast<std::size_t>(folded_.attribute(made.weight).dim()), 1);
    if (scale) {
      by_channel[static_cast<std::size_t>(axis.value_or(0))] = -1;
      Node& shaped = graph_.call_function("aten::view", {scale, list_of(by_channel)});
      weight = &graph_.call_function("aten::mul.Tensor", {weight, shaped});
    }
    Quantizer quantizer = mark.settings->weight;
    quantizer.per_channel &= axis.has_value();
    const std::string path = folded_.fresh_path(join_path(split_path(made.weight).first, "weight_fake_quant"));
    folded_.add_submodule(path, FakeQuantize::of_weight(quantizer, layer.name(), quantizer.per_channel ? *axis : -1));
    Node& fake = graph_.call_module(path, {weight});
    layer.update_arg(1, fake);
    if (norm) normalise(layer, *scale, made);
    record_.layers.emplace(layer.name(), made);
  }

 private:
  void make_parameter(const std::string& path) {
    folded_.set_parameter(path, folded_.attribute(path).detach().clone().set_requires_grad(true));
  }

  /// Puts the tensors from before the folding back.
  QuantRecord::Layer restore(Node& layer, const Node& norm) {
    QuantRecord::Layer made = tensors_of(*unfolded_.graph().find(layer.name()));
    for (const std::string& path : {made.weight, made.bias}) {
      if (!path.empty())
        folded_.set_parameter(path, unfolded_.attribute(path).detach().clone().set_requires_grad(true));
    }
    const Call call = call_of(norm);
    const auto path = [&](const char* name) { return attribute_path(call.argument(name)); };
    const auto tensor = [&](const char* name) { return unfolded_.find_attribute(path(name)); };
    auto module = std::make_shared<BatchNorm>(call.argument("momentum")->as_float(), call.argument("eps")->as_float());
    module->set_tensors(tensor("weight"), tensor("bias"), tensor("running_mean"), tensor("running_var"));
    made.norm = split_path(path("running_mean")).first;
    if (made.norm.empty() || folded_.find_submodule(made.norm)) made.norm = folded_.fresh_path(norm.name());
    folded_.add_submodule(made.norm, module);
    layer.update_arg(1, graph_.get_attr(made.weight));
    layer.update_arg(2, Argument());
    return made;
  }

  /// gamma / sqrt(running variance + eps)
  Node& scale_of(const Node&, const QuantRecord::Layer& made) {
    const auto norm = std::dynamic_pointer_cast<BatchNorm>(folded_.submodule(made.norm));
    Node& variance = graph_.get_attr(made.norm + ".running_var");
    Node& shifted = graph_.call_function("aten::add.Scalar", {variance, norm->eps()});
    Node& inverse = graph_.call_function("aten::rsqrt", {shifted});
    if (!norm->weight().defined()) return inverse;
    return graph_.call_function("aten::mul.Tensor", {inverse, graph_.get_attr(made.norm + ".weight")});
  }

  /// What the layer made, scaled back, with its bias, normalised.
  void normalise(Node& layer, Node& scale, QuantRecord::Layer& made) {
    const auto scope = graph_.inserting_after(layer);
    const std::vector<Node*> readers = layer.users().to_vector();
    const std::int64_t dims = folded_.attribute(made.weight).dim();
    std::vector<std::int64_t> by_channel(static_cast<std::size_t>(dims > 2 ? dims - 1 : 1), 1);
    by_channel[0] = -1;  // channels are before the sizes of an image; of a matrix they are last
    Node& shaped = graph_.call_function("aten::view", {scale, list_of(by_channel)});
    Node* value = &graph_.call_function("aten::div.Tensor", {layer, shaped});
    if (!made.bias.empty()) {
      Node& bias = graph_.get_attr(made.bias);
      Node& flat = graph_.call_function("aten::view", {bias, list_of(by_channel)});
      value = &graph_.call_function("aten::add.Tensor", {value, flat});
    }
    Node& normed = graph_.call_module(made.norm, {value}, {}, layer.name() + "_bn");
    made.result = normed.name();
    for (Node* reader : readers) reader->replace_input_with(layer, normed);
  }

  GraphModule& folded_;
  Graph& graph_;
  const GraphModule& unfolded_;
  QuantRecord& record_;
};

}  // namespace

void train_layers(GraphModule& folded, const GraphModule& unfolded, const Annotation& annotation, QuantRecord& record) {
  static std::once_flag once;
  std::call_once(once, [] { register_module_type<BatchNorm>("fxgraph.quantize.BatchNorm"); });
  // What folding left behind makes room for what trains.
  folded.delete_all_unused_attributes();
  folded.delete_all_unused_submodules();
  std::vector<Node*> layers;
  for (Node& node : folded.graph().nodes()) {
    const Mark& mark = annotation.of(node);
    if (mark.quantized && mark.row->role == Role::weighted) layers.push_back(&node);
  }
  LayerTraining training(folded, unfolded, record);
  for (Node* layer : layers) {
    layer->set_args_kwargs(all_arguments(call_of(*layer)), KwargSpan());  // weight and bias are set by position
    training.train(*layer, annotation.of(*layer));
  }
  eliminate_dead_code(folded);
  folded.delete_all_unused_attributes();
}

// ── After the training ───────────────────────────────────────────────────────────────────────────────────────────────

void fold_trained_layers(GraphModule& module, const QuantRecord& record) {
  const at::NoGradGuard no_grad;
  Graph& graph = module.graph();
  std::vector<Node*> layers;
  for (Node& node : graph.nodes()) {
    if (record.layers.contains(node.name())) layers.push_back(&node);
  }
  for (Node* layer : layers) {
    const QuantRecord::Layer& made = record.layers.at(layer->name());
    at::Tensor weight = module.attribute(made.weight).detach();
    at::Tensor bias = made.bias.empty() ? at::Tensor() : module.attribute(made.bias).detach();
    if (!made.norm.empty()) {
      const auto norm = std::dynamic_pointer_cast<BatchNorm>(module.submodule(made.norm));
      at::Tensor scale = at::rsqrt(norm->variance() + norm->eps());
      if (norm->weight().defined()) scale = scale * norm->weight();
      const Row& row = *row_of(layer->target().view());
      std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
      shape[static_cast<std::size_t>(channel_axis(row).value_or(0))] = -1;
      weight = weight * scale.view(shape);
      bias = (bias.defined() ? bias - norm->mean() : -norm->mean()) * scale;
      if (norm->bias().defined()) bias = bias + norm->bias();
    }
    const std::string weight_path = module.fresh_path(made.weight + "_trained");
    module.set_buffer(weight_path, weight.detach().clone());
    const auto scope = graph.inserting_before(*layer);
    layer->update_arg(1, graph.get_attr(weight_path));
    if (bias.defined()) {
      const std::string bias_path = module.fresh_path(join_path(split_path(made.weight).first, "bias_trained"));
      module.set_buffer(bias_path, bias.detach().clone());
      layer->update_arg(2, graph.get_attr(bias_path));
    }
    Node* result = made.result.empty() ? nullptr : graph.find(made.result);
    if (!result) continue;
    // The chain from the layer to the norm goes; the layer's value is the norm's.
    result->replace_all_uses_with(*layer);
  }
  // Norms that trained would write their statistics: there is no training any more.
  ModuleInfo modules = module_info(module);
  modules.effects = [&module, of_others = modules.effects](const Node& call) {
    const auto norm = std::dynamic_pointer_cast<BatchNorm>(module.find_submodule(call.target().str()));
    return norm ? NodeEffects() : of_others(call);
  };
  eliminate_dead_code(graph, modules);
}

}  // namespace fx::quantize
