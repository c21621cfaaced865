// correct_bias: E[W x] - E[Wq x] by output channel, measured layer by layer on the inputs that the float program has.
#include <ATen/ATen.h>

#include <map>

#include <fxgraph/ir/target.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/observer.h>
#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/rewriter/quantize/record.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/support/error.h>

namespace fx {

using namespace quantize;

namespace {

constexpr const char* kCorrected = "bias_corrected";

/// A layer whose input is observed, and so will be quantized.
struct Layer {
  Node* node;
  const Row* row;
  at::Tensor error;  // the weight less its rounded form
  at::Tensor sum;    // of the errors it makes, by channel
  std::int64_t count = 0;
};

class ErrorCounter : public Interpreter {
 public:
  ErrorCounter(GraphModule& module, std::vector<Layer>& layers) : Interpreter(module) {
    for (Layer& layer : layers) layers_[layer.node->id()] = &layer;
  }

  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (const auto found = layers_.find(current_node()->id()); found != layers_.end())
      count(*found->second, target, args, kwargs);
    return Interpreter::call_function(target, args, kwargs);
  }

  // What the observers found stays.
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (std::dynamic_pointer_cast<Observer>(module().find_submodule(target.str()))) return args.at(0);
    return Interpreter::call_module(target, args, kwargs);
  }

 private:
  // The layer with its weight's error for a weight and no bias.
  void count(Layer& layer, const Target& target, const Args& args, const Kwargs& kwargs) {
    const OperatorSchema& schema = call_of(*layer.node).schema();
    const auto weight = static_cast<std::size_t>(schema.index_of("weight")),
               bias = static_cast<std::size_t>(schema.index_of("bias"));
    Args changed = args;
    Kwargs changed_kwargs = kwargs;
    const auto set = [&](std::size_t i, const char* name, const Value& value) {
      if (i < changed.size()) changed[i] = value;
      for (auto& [key, given] : changed_kwargs) {
        if (key == name) given = value;
      }
    };
    set(weight, "weight", layer.error);
    set(bias, "bias", Value());
    const at::Tensor made = Interpreter::call_function(target, changed, changed_kwargs).toTensor();
    // Channels come after the batch; a linear layer has them last.
    const std::int64_t axis = layer.row->packet == "aten::linear" ? made.dim() - 1 : 1;
    const at::Tensor by_channel = made.transpose(0, axis).flatten(1);
    const at::Tensor sum = by_channel.sum(1, /*keepdim=*/false, at::kDouble);
    layer.sum = layer.sum.defined() ? layer.sum + sum : sum;
    layer.count += by_channel.size(1);
  }

  std::map<std::uint32_t, Layer*> layers_;
};

std::vector<Layer> layers_of(GraphModule& prepared) {
  const QuantRecord& record = record_of(prepared);
  std::vector<Layer> layers;
  for (Node& node : prepared.graph().nodes()) {
    const Row* row = node.is(Op::call_function) ? row_of(node.target().view()) : nullptr;
    if (!row || row->role != Role::weighted) continue;
    const Call call = call_of(node);
    const Node* input = call.argument("input")->node_or_null();
    const Node* weight = call.argument("weight")->node_or_null();
    if (!input || !input->is(Op::call_module) || !weight || !weight->is(Op::get_attr)) continue;
    const Argument* bias = call.argument("bias");
    const Node* known = bias ? bias->node_or_null() : nullptr;
    if (known && split_path(known->target().str()).second.starts_with(kCorrected))
      throw Error(ErrorKind::invalid_argument, "the bias of " + node.name() + " was corrected already", node.name());
    if (!std::dynamic_pointer_cast<Observer>(prepared.find_submodule(input->target().str()))) continue;
    const QuantSettings& settings =
        record.config.settings_for(node.name(), row->packet, layer_type(node), layer_path(node));
    const at::Tensor values = prepared.attribute(weight->target().str()).detach();
    const at::Tensor rounded = quantized_weight(settings.weight, values, channel_axis(*row), node.name()).dequantize();
    layers.push_back({&node, row, values - rounded, {}, 0});
  }
  return layers;
}

}  // namespace

std::size_t correct_bias(GraphModule& prepared, const std::vector<std::vector<c10::IValue>>& samples) {
  if (samples.empty()) throw Error(ErrorKind::invalid_argument, "there are no samples to measure the mean error on");
  if (record_of(prepared).training)
    throw Error(ErrorKind::invalid_argument, "a program that trains corrects its biases itself: convert it as it is");
  const at::NoGradGuard no_grad;
  std::vector<Layer> layers = layers_of(prepared);
  {
    const StateKeeper keeper(prepared);
    ErrorCounter counter(prepared, layers);
    for (const auto& inputs : samples) counter.run(inputs);
  }
  std::size_t corrected = 0;
  for (const Layer& layer : layers) {
    if (!layer.count) continue;
    const at::Tensor mean = (layer.sum / static_cast<double>(layer.count)).to(at::kFloat);
    const Call call = call_of(*layer.node);
    const Argument* given = call.argument("bias");
    const Node* old = given ? given->node_or_null() : nullptr;
    const std::string owner = split_path(attribute_path(call.argument("weight"))).first;
    const std::string path = prepared.fresh_path(join_path(owner, kCorrected));
    prepared.set_parameter(path, old ? prepared.attribute(old->target().str()).detach() + mean : mean);
    const auto scope = prepared.graph().inserting_before(*layer.node);
    Node& bias = prepared.graph().get_attr(path);
    const auto index = static_cast<std::size_t>(call.schema().index_of("bias"));
    if (index < layer.node->args().size()) {
      layer.node->update_arg(index, bias);
    } else if (index == layer.node->args().size() && !layer.node->kwarg("bias")) {
      layer.node->insert_arg(index, bias);
    } else {
      layer.node->update_kwarg("bias", bias);
    }
    ++corrected;
  }
  return corrected;
}

}  // namespace fx
