#include "tests/quantize/programs.h"

#include <algorithm>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/observer.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/rewriter/quantize/record.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include "tests/support/short_graph.h"

namespace fx::testing {

std::shared_ptr<GraphModule> program_of(const std::string& body, const std::string& inputs,
                                        const std::vector<std::pair<std::string, torch::Tensor>>& tensors) {
  GraphModule::Attributes attributes;
  std::string reads;
  for (const auto& [path, tensor] : tensors) {
    attributes.emplace_back(path, tensor);
    reads += path + " = get_attr[target=" + path + "]()\n";
  }
  auto made = std::make_shared<GraphModule>(attributes, graph_of(reads + body, inputs));
  made->eval();
  return made;
}

std::shared_ptr<GraphModule> calibrated(const GraphModule& module, const Samples& samples, const QuantConfig& config) {
  auto prepared = prepare(module, config, samples.front());
  const torch::NoGradGuard no_grad;
  for (const auto& inputs : samples) prepared->run(inputs);
  return prepared;
}

namespace {

class Rounded : public Interpreter {
 public:
  using Interpreter::Interpreter;
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override {
    const auto observer = std::dynamic_pointer_cast<Observer>(module().find_submodule(target.str()));
    if (!observer) return Interpreter::call_module(target, args, kwargs);
    // The whole type is used, as quantize_per_tensor does.
    QuantParameters parameters = parameters_of(current_node()->arg(0).node());
    parameters.quant_min = parameters.dtype == DType::quint8 ? 0 : -128;
    parameters.quant_max = parameters.quant_min + 255;
    return parameters.fake_quantize(args[0].toTensor());
  }

 private:
  QuantParameters parameters_of(const Node& observed) {
    const quantize::Row* row = quantize::row_for(observed);
    if (row && row->role == quantize::Role::fixed) return fixed_parameters(row->scale, row->zero_point);
    const Node* input = observed.args().empty() ? nullptr : observed.arg(0).node_or_null();
    const bool input_observed = input && input->is(Op::call_module);
    if (row && row->role == quantize::Role::by_number && input_observed) {
      const QuantParameters from = parameters_of(input->arg(0).node());
      const at::Tensor value =
          at::quantize_per_tensor(at::zeros({1}), from.scale_value(), from.zero_point_value(), at::kQUInt8);
      const at::Tensor result =
          quantize::call_operator(row->kernel, {value, quantize::number_of(call_of(observed))}).toTensor();
      return fixed_parameters(result.q_scale(), result.q_zero_point());
    }
    if (row && row->role == quantize::Role::share && input_observed) return parameters_of(input->arg(0).node());
    for (const Node& user : observed.users()) {
      const auto observer = std::dynamic_pointer_cast<Observer>(module().find_submodule(user.target().str()));
      if (observer) return observer->parameters();
    }
    throw std::logic_error(observed.name() + " is not observed");
  }
};

}  // namespace

c10::IValue run_rounded(const GraphModule& prepared, const std::vector<c10::IValue>& inputs) {
  const torch::NoGradGuard no_grad;
  const auto copy = prepared.clone_graph_module();
  const auto& record = quantize::record_of(prepared);
  for (Node& node : copy->graph().nodes()) {
    const quantize::Row* row = node.is(Op::call_function) ? quantize::row_of(node.target().view()) : nullptr;
    if (!row || row->role != quantize::Role::weighted) continue;
    // Layers whose input is observed are the quantized ones.
    const Call call = call_of(node);
    const Node* input = call.argument("input")->node_or_null();
    if (!input || !input->is(Op::call_module)) continue;
    const std::string path = quantize::attribute_path(call.argument("weight"));
    const at::Tensor rounded = quantize::quantized_weight(record.config.global.weight, copy->attribute(path),
                                                          quantize::channel_axis(*row), node.name())
                                   .dequantize();
    copy->set_attribute(path, rounded);
  }
  return Rounded(*copy).run(inputs);
}

double largest_quantum(const GraphModule& converted) {
  double largest = 0;
  for (const Node& node : converted.graph().nodes()) {
    for (const Argument& each : node.args()) {
      const bool makes = node.target().view().starts_with("quantized::") || node.is_call("aten::quantize_per_tensor");
      if (makes && each.is_float()) largest = std::max(largest, each.as_float());
    }
  }
  return largest;
}

std::size_t count_prefix(const GraphModule& module, const std::string& prefix) {
  std::size_t found = 0;
  for (const Node& node : module.graph().nodes())
    found += node.is(Op::call_function) && node.target().view().starts_with(prefix);
  return found;
}

double largest_difference(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor()) {
    EXPECT_EQ(a.toTensor().sizes(), b.toTensor().sizes());
    if (a.toTensor().sizes() != b.toTensor().sizes()) return INFINITY;
    return a.toTensor().numel() ? (a.toTensor() - b.toTensor()).abs().max().item<double>() : 0;
  }
  double largest = 0;
  const auto x = a.isTuple() ? a.toTupleRef().elements().vec() : a.toListRef().vec();
  const auto y = b.isTuple() ? b.toTupleRef().elements().vec() : b.toListRef().vec();
  EXPECT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    largest = std::max(largest, largest_difference(x[i], y[i]));
  return largest;
}

}  // namespace fx::testing
