#include <fxgraph/rewriter/quantize/recurrent.h>

#include <ATen/ATen.h>

#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::quantize {

namespace {

bool is_true(const Argument* value) { return value && value->is_bool() && value->as_bool(); }

std::vector<std::string> parameter_paths(const Call& call) {
  std::vector<std::string> paths;
  for (const Argument& each : call.argument("params")->elements()) {
    paths.push_back(attribute_path(&each));
    if (paths.back().empty()) return {};
  }
  return paths;
}

}  // namespace

std::string recurrent_obstacle(const GraphModule& flat, const Call& call) {
  if (!call || !call.schema().target.view().ends_with(".input"))
    return "packed sequences have no quantized kernel here";
  if (is_true(call.argument("train"))) return "it is in training mode";
  if (!is_true(call.argument("has_biases"))) return "the kernel wants biases";
  const std::vector<std::string> paths = parameter_paths(call);
  const Argument* layers = call.argument("num_layers");
  const std::size_t each = is_true(call.argument("bidirectional")) ? 8 : 4;
  if (!layers->is_int() || paths.empty() || paths.size() != each * static_cast<std::size_t>(layers->as_int()))
    return "its weights are not four attributes for each layer and direction";
  rules::ProgramEffects written(flat);
  for (const std::string& path : paths) {
    if (!written.not_constant(path).empty()) return "the program writes to " + path;
    if (flat.attribute(path).scalar_type() != at::kFloat) return path + " is not float32";
  }
  return {};
}

void quantize_recurrent(GraphModule& flat, Node& node, TargetEngine& target, const QuantSettings& settings) {
  Graph& graph = flat.graph();
  const QuantBackend backend = target.backend();
  const std::vector<std::string> paths = parameter_paths(call_of(node));
  Quantizer quantizer = settings.weight;
  quantizer.per_channel = false;  // the kernels' only way
  const auto quantized = [&](const std::string& path) {
    return quantized_weight(quantizer, flat.attribute(path).detach(), std::nullopt, node.name());
  };
  std::vector<Argument> parameters;
  for (std::size_t i = 0; i < paths.size(); i += 4) {
    if (backend == QuantBackend::reference) {
      for (std::size_t k = i; k < i + 2; ++k) {
        const std::string made = flat.fresh_path(paths[k] + "_quantized");
        flat.set_buffer(made, quantized(paths[k]));
        parameters.push_back(graph.call_function("aten::dequantize.self", {graph.get_attr(made)}));
      }
      for (std::size_t k = i + 2; k < i + 4; ++k) parameters.push_back(graph.get_attr(paths[k]));
      continue;
    }
    const at::Tensor weight_ih = quantized(paths[i]), weight_hh = quantized(paths[i + 1]);
    const at::Tensor bias_ih = flat.attribute(paths[i + 2]).detach(), bias_hh = flat.attribute(paths[i + 3]).detach();
    const std::int64_t largest = settings.activation.quant_max();
    const c10::IValue ih = target.pack_matrix(node.name(), weight_ih, bias_ih, largest);
    const c10::IValue hh = target.pack_matrix(node.name(), weight_hh, bias_hh, largest);
    const c10::IValue cell = call_operator("quantized::make_quantized_cell_params_dynamic",
                                           {ih, hh, bias_ih, bias_hh, settings.activation.reduce_range});
    parameters.push_back(graph.get_attr(install_object(flat, paths[i], "cell_params", cell)));
  }
  std::vector<Argument> args = all_arguments(call_of(node));
  args[2] = Argument::list(parameters);
  if (backend == QuantBackend::reference) return node.set_args_kwargs(args, KwargSpan());
  const bool lstm = packet_of(node.target().view()) == "aten::lstm";
  node.set_args_kwargs(args, KwargSpan());
  node.set_target(lstm ? "aten::quantized_lstm.input" : "aten::quantized_gru.input");
  if (lstm) node.set_kwargs({{Symbol("dtype"), DType::qint8}, {Symbol("use_dynamic"), true}});
}

// ── One step ─────────────────────────────────────────────────────────────────────────────────────────────────────────

std::string cell_obstacle(const GraphModule& flat, const Call& call) {
  rules::ProgramEffects written(flat);
  for (const char* name : {"w_ih", "w_hh", "b_ih", "b_hh"}) {
    const std::string path = attribute_path(call.argument(name));
    if (path.empty()) return std::string("the kernel wants ") + name + " as an attribute";
    if (std::string why = written.not_constant(path); !why.empty()) return why;
    if (flat.attribute(path).scalar_type() != at::kFloat) return path + " is not float32";
  }
  return {};
}

void quantize_cell(GraphModule& flat, Node& node, TargetEngine& target, const QuantSettings& settings) {
  Graph& graph = flat.graph();
  const QuantBackend backend = target.backend();
  Quantizer quantizer = settings.weight;
  quantizer.per_channel = false;  // as for whole sequences
  const Call call = call_of(node);
  std::vector<Argument> args = {*call.argument("input"), *call.argument("hx")};
  for (const char* name : {"w_ih", "w_hh"}) {
    const std::string path = attribute_path(call.argument(name));
    const at::Tensor weight = quantized_weight(quantizer, flat.attribute(path).detach(), std::nullopt, node.name());
    if (backend == QuantBackend::reference) {
      const std::string made = flat.fresh_path(path + "_quantized");
      flat.set_buffer(made, weight);
      args.push_back(graph.call_function("aten::dequantize.self", {graph.get_attr(made)}));
      continue;
    }
    const std::string bias = attribute_path(call.argument(name == std::string_view("w_ih") ? "b_ih" : "b_hh"));
    constexpr std::int64_t kLargest = 255;  // the kernel takes all eight bits of its inputs
    const c10::IValue packed = target.pack_matrix(node.name(), weight, flat.attribute(bias).detach(), kLargest);
    args.push_back(graph.get_attr(install_object(flat, path, "packed_params", packed)));
  }
  for (const char* name : {"b_ih", "b_hh"}) args.push_back(*call.argument(name));
  if (backend != QuantBackend::reference) {
    const bool lstm = packet_of(node.target().view()) == "aten::lstm_cell";
    node.set_target(lstm ? "quantized::quantized_lstm_cell_dynamic" : "quantized::quantized_gru_cell_dynamic");
  }
  node.set_args_kwargs(args, KwargSpan());
}

}  // namespace fx::quantize
