// A part is a list of steps on numbered values: a packed layer with the bounds of the activation behind it.
#include <fxgraph/rewriter/partition/xnnpack.h>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using Bound = std::optional<double>;
struct Bounds {
  Bound least, most;
};

std::optional<double> number(const Argument* argument) {
  if (!argument || argument->is_none()) return std::nullopt;
  if (argument->is_int()) return static_cast<double>(argument->as_int());
  if (argument->is_float()) return argument->as_float();
  return std::nullopt;
}

/// What an activation keeps its values between; nothing when it is none, or not by numbers.
std::optional<Bounds> bounds_of(const Node& node) {
  const Call call = call_of(node);
  if (!call) return std::nullopt;
  const Symbol name = operator_name(call.schema());
  const std::string_view op = packet_of(name.view());
  if (op == "aten::relu") return Bounds{0.0, {}};
  if (op == "aten::relu6") return Bounds{0.0, 6.0};
  if (name == "aten::clamp.Tensor") return std::nullopt;
  if (op != "aten::hardtanh" && op != "aten::clamp" && op != "aten::clamp_min") return std::nullopt;
  const Argument* low = call.argument(op == "aten::hardtanh" ? "min_val" : "min");
  const Argument* high = call.argument(op == "aten::hardtanh" ? "max_val" : "max");
  if ((low && low->node_or_null()) || (high && high->node_or_null())) return std::nullopt;
  const Bounds bounds{number(low), number(high)};
  if (bounds.least && bounds.most && !(*bounds.least < *bounds.most)) return std::nullopt;
  return bounds.least || bounds.most ? std::optional<Bounds>(bounds) : std::nullopt;
}

bool is_convolution(const Call& call) { return packet_of(call.schema().target.view()) == "aten::conv2d"; }
bool is_layer(const Call& call) {
  return is_convolution(call) || packet_of(call.schema().target.view()) == "aten::linear";
}

/// The one operator of a call: its own, or that of the body of the module called. Null when there are several.
const Node* single_call(const Graph& body) {
  const Node* found = nullptr;
  for (const Node& node : body.nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    if (found) return nullptr;
    found = &node;
  }
  return found;
}

c10::OperatorHandle prepacked(const char* name) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!op) {
    throw Error(ErrorKind::unsupported,
                std::string("LibTorch was built without XNNPACK: there is no operator ") + name);
  }
  return *op;
}

c10::IValue result_of(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  op.callBoxed(stack);
  return std::move(stack.at(0));
}

class XnnpackPart : public CompiledPart {
 public:
  explicit XnnpackPart(const GraphModule& part) : CompiledPart("XnnpackPart") {
    const Graph flat = inline_modules(part);
    NodeMap<std::size_t> place(flat);
    for (const Node* input : flat.placeholders()) place[*input] = inputs_++;
    std::size_t next = inputs_;
    for (const Node& node : flat.nodes()) {
      const Call call = call_of(node);
      if (!call) continue;
      if (is_layer(call)) {
        steps_.push_back(layer(part, node, call, place));
        place[node] = next++;
      } else {
        place[node] = place[*node.all_input_nodes().at(0)];  // its layer takes it in
      }
    }
    for (const Node* result : flat.output_node()->all_input_nodes()) results_.push_back(place[*result]);
    tuple_ = !flat.output_node()->arg(0).is_node();
  }

  c10::IValue run(std::vector<c10::IValue> inputs) override {
    torch::NoGradGuard inference;
    std::vector<c10::IValue>& values = inputs;
    for (const Step& step : steps_) {
      check(step, values[step.input].toTensor());
      values.push_back(result_of(step.run, {values[step.input], step.context}));
    }
    if (!tuple_) return values[results_.at(0)];
    std::vector<c10::IValue> elements;
    for (const std::size_t at : results_) elements.push_back(values[at]);
    return c10::ivalue::Tuple::create(std::move(elements));
  }

 private:
  struct Step {
    c10::OperatorHandle run;
    c10::IValue context;
    std::size_t input;
    std::int64_t channels;              ///< of a convolution's image, or the features of a linear layer's rows
    std::array<std::int64_t, 2> least;  ///< height and width; 0 where the layer is linear
  };

  /// XNNPACK reads past what it is given, and ends the process when an image is smaller than the kernel.
  static void check(const Step& step, const at::Tensor& x) {
    const bool conv = step.least[0] > 0;
    if (conv && x.dim() != 4)
      refuse("a convolution that is compiled for XNNPACK takes four dimensions, not " + std::to_string(x.dim()));
    if (x.dim() == 0 || x.size(conv ? 1 : -1) != step.channels) {
      refuse(std::string(conv ? "a convolution" : "a linear layer") + " that is compiled for XNNPACK takes " +
             std::to_string(step.channels) + (conv ? " channels, not " : " features, not ") +
             std::to_string(x.dim() == 0 ? 0 : x.size(conv ? 1 : -1)));
    }
    for (const int dim : {0, 1}) {
      if (conv && x.size(2 + dim) < step.least[static_cast<std::size_t>(dim)])
        refuse("an image of " + std::to_string(x.size(2)) + "x" + std::to_string(x.size(3)) +
               " is smaller than the kernel of a convolution that is compiled for XNNPACK");
    }
  }

  [[noreturn]] static void refuse(const std::string& why) { throw Error(ErrorKind::invalid_argument, why); }

  static Bounds activation(const Node& node) {
    if (node.num_users() == 1) {
      if (const auto bounds = bounds_of(*node.users().begin())) return *bounds;
    }
    return {};
  }

  static Step layer(const GraphModule& part, const Node& node, const Call& call, const NodeMap<std::size_t>& place) {
    const auto tensor = [&](const char* name) -> c10::IValue {
      const Argument* given = call.argument(name);
      if (!given || given->is_none()) return {};
      return part.attribute(given->node_or_null()->target().str()).detach().contiguous();
    };
    const auto scalar = [](const Bound& bound) { return bound ? c10::IValue(at::Scalar(*bound)) : c10::IValue(); };
    const Bounds bounds = activation(node);
    const bool conv = is_convolution(call);
    torch::jit::Stack stack = {tensor("weight"), tensor("bias")};
    const at::Tensor weight = stack[0].toTensor();
    std::int64_t channels = weight.size(1);
    std::array<std::int64_t, 2> least{};
    if (conv) {
      const auto pair = [&](const char* name) -> c10::IValue {
        c10::IValue value = to_ivalue(*call.argument(name));
        if (value.isInt()) return c10::List<std::int64_t>({value.toInt(), value.toInt()});
        std::vector<std::int64_t> numbers = value.toIntVector();
        if (numbers.size() == 1) numbers.push_back(numbers[0]);
        return c10::List<std::int64_t>(at::IntArrayRef(numbers));
      };
      stack.insert(stack.end(), {pair("stride"), pair("padding"), pair("dilation"), call.argument("groups")->as_int()});
      channels *= stack[5].toInt();
      for (std::size_t dim = 0; dim < least.size(); ++dim) {
        const std::int64_t reach = stack[4].toIntVector()[dim] * (weight.size(static_cast<std::int64_t>(2 + dim)) - 1);
        least[dim] = std::max<std::int64_t>(1, reach + 1 - 2 * stack[3].toIntVector()[dim]);
      }
    }
    stack.push_back(scalar(bounds.least));
    stack.push_back(scalar(bounds.most));
    const std::string name = conv ? "prepacked::conv2d_clamp_" : "prepacked::linear_clamp_";
    c10::IValue context = result_of(prepacked((name + "prepack").c_str()), std::move(stack));
    return {prepacked((name + "run").c_str()), std::move(context), place[*node.all_input_nodes().at(0)], channels,
            least};
  }

  std::size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<std::size_t> results_;
  bool tuple_ = false;
};

/// `op` is the layer, or what is in the module called; `constant` says where its weights come from: the program's
/// attributes, or those of the module.
std::optional<std::string> refuse_layer(const Node& op, const Call& layer, const CallFacts& call,
                                        const std::function<torch::Tensor(const Node&)>& constant) {
  const TensorInfo* input = call.input(0);
  if (!input) return "XNNPACK needs to know the shape of its input: give examples";
  if (input->dtype != DType::float32) return "XNNPACK takes float32, not " + std::string(to_string(input->dtype));
  if (input->device != Device{"cpu"} && !input->device.type.empty()) return "XNNPACK runs on the CPU";
  if (is_convolution(layer) && input->sizes.size() != 4) return "XNNPACK's convolution takes four dimensions";
  if (input->sizes.empty() || input->numel() == 0) return "XNNPACK takes no empty tensors";
  for (const char* name : {"weight", "bias"}) {
    const Argument* given = layer.argument(name);
    if (!given || given->is_none()) continue;
    const Node* value = given->node_or_null();
    const torch::Tensor tensor = value ? constant(*value) : torch::Tensor();
    if (!tensor.defined()) return std::string("its ") + name + " is computed, not a constant";
    if (tensor.scalar_type() != at::kFloat) return std::string("its ") + name + " is not float32";
  }
  const Argument *padding = layer.argument("padding"), *x = layer.argument("input");
  if (padding && padding->is_string()) return "its padding is given by name";
  if (!x || !x->is_node() || op.all_input_nodes().at(0) != &x->node()) return "its input is not its first argument";
  return std::nullopt;
}

/// True for a call of an activation, directly or through a module.
bool is_activation(const GraphModule& module, const Node& node) {
  if (!node.is(Op::call_module)) return bounds_of(node).has_value();
  const std::shared_ptr<const Graph> body = module_body(module.find_submodule(node.target().str()));
  const Node* op = body ? single_call(*body) : nullptr;
  return op && bounds_of(*op);
}

}  // namespace

bool XnnpackBackend::is_available() {
  return c10::Dispatcher::singleton().findSchema({"prepacked::linear_clamp_prepack", ""}).has_value();
}

std::optional<std::string> XnnpackBackend::why_not(const CallFacts& call) const {
  const Node& node = call.node();
  const GraphModule& module = call.module();
  std::shared_ptr<const Graph> body;
  const Node* op = &node;
  std::string path;
  if (node.is(Op::call_module)) {
    path = node.target().str() + ".";
    body = module_body(module.find_submodule(node.target().str()));
    op = body ? single_call(*body) : nullptr;
  }
  const Call called = op ? call_of(*op) : Call();
  if (!called) return "XNNPACK has no " + call.op();
  if (is_layer(called)) {
    return refuse_layer(*op, called, call, [&](const Node& value) {
      return value.is(Op::get_attr) ? module.find_attribute(path + value.target().str()) : torch::Tensor();
    });
  }
  if (!bounds_of(*op)) return "XNNPACK has no " + call.op();
  const Node& before = *call.inputs().at(0);
  if (before.num_users() != 1) return "what it bounds is read by others too";
  if (before.is(Op::placeholder) || before.is(Op::get_attr)) return "no layer stands before it to take it in";
  const CallFacts producer(module, before, call.shapes());
  if (is_activation(module, before) || why_not(producer)) return "no layer stands before it to take it in";
  return std::nullopt;
}

std::shared_ptr<torch::nn::Module> XnnpackBackend::compile(std::shared_ptr<GraphModule> part) const {
  // Kept apart from its layer by the caller, an activation is nobody's.
  for (const Node& node : part->graph().nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    const Node* input = node.all_input_nodes().empty() ? nullptr : node.all_input_nodes()[0];
    if (is_activation(*part, node) && (!input || input->is(Op::placeholder))) return nullptr;
  }
  auto compiled = std::make_shared<XnnpackPart>(*part);
  compiled->eval();
  return compiled;
}

}  // namespace fx
