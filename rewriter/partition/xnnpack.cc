// A part is a list of steps on numbered values: a packed layer with the bounds of the activation behind it.
#include <fxgraph/rewriter/partition/xnnpack.h>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/ops/schema.h>
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
  const OperatorSchema* schema = schema_of(node);
  if (!schema) return std::nullopt;
  const std::string_view op = packet_of(schema->target.view());
  if (op == "aten::relu") return Bounds{0.0, {}};
  if (op == "aten::relu6") return Bounds{0.0, 6.0};
  if (schema->target.view() == "aten::clamp.Tensor") return std::nullopt;
  const char* least = op == "aten::hardtanh" ? "min_val" : "min";
  const char* most = op == "aten::hardtanh" ? "max_val" : "max";
  if (op != "aten::hardtanh" && op != "aten::clamp" && op != "aten::clamp_min") return std::nullopt;
  const auto literal = [&](const char* name) {
    const Argument* given = bound_argument(node, name);
    const int at = schema->index_of(Symbol(name));
    if (!given && at >= 0 && schema->arguments[static_cast<std::size_t>(at)].default_value)
      given = &*schema->arguments[static_cast<std::size_t>(at)].default_value;
    return given;
  };
  const Argument *low = literal(least), *high = literal(most);
  if ((low && low->node_or_null()) || (high && high->node_or_null())) return std::nullopt;
  const Bounds bounds{number(low), number(high)};
  if (bounds.least && bounds.most && !(*bounds.least < *bounds.most)) return std::nullopt;
  return bounds.least || bounds.most ? std::optional<Bounds>(bounds) : std::nullopt;
}

bool is_layer(std::string_view op) { return op == "aten::conv2d" || op == "aten::linear"; }

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

c10::IValue call(const c10::OperatorHandle& op, torch::jit::Stack stack) {
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
      const OperatorSchema* schema = node.is(Op::call_function) || node.is(Op::call_method) ? schema_of(node) : nullptr;
      if (!schema) continue;
      if (is_layer(packet_of(schema->target.view()))) {
        steps_.push_back(layer(part, node, place));
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
      values.push_back(call(step.run, {values[step.input], step.context}));
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

  static Step layer(const GraphModule& part, const Node& node, const NodeMap<std::size_t>& place) {
    const auto tensor = [&](const char* name) -> c10::IValue {
      const Argument* given = bound_argument(node, name);
      if (!given || given->is_none()) return {};
      return part.attribute(given->node_or_null()->target().str()).detach().contiguous();
    };
    const auto scalar = [](const Bound& bound) { return bound ? c10::IValue(at::Scalar(*bound)) : c10::IValue(); };
    const Bounds bounds = activation(node);
    const bool conv = packet_of(schema_of(node)->target.view()) == "aten::conv2d";
    torch::jit::Stack stack = {tensor("weight"), tensor("bias")};
    const at::Tensor weight = stack[0].toTensor();
    std::int64_t channels = weight.size(1);
    std::array<std::int64_t, 2> least{};
    if (conv) {
      const auto pair = [&](const char* name, std::int64_t usual) -> c10::IValue {
        const Argument* given = bound_argument(node, name);
        c10::IValue value = given ? to_ivalue(*given) : c10::IValue(usual);
        if (value.isInt()) return c10::List<std::int64_t>({value.toInt(), value.toInt()});
        std::vector<std::int64_t> numbers = value.toIntVector();
        if (numbers.size() == 1) numbers.push_back(numbers[0]);
        return c10::List<std::int64_t>(at::IntArrayRef(numbers));
      };
      const Argument* groups = bound_argument(node, "groups");
      stack.insert(stack.end(), {pair("stride", 1), pair("padding", 0), pair("dilation", 1),
                                 groups ? c10::IValue(groups->as_int()) : c10::IValue(1)});
      channels *= stack[5].toInt();
      for (std::size_t dim = 0; dim < least.size(); ++dim) {
        const std::int64_t reach = stack[4].toIntVector()[dim] * (weight.size(static_cast<std::int64_t>(2 + dim)) - 1);
        least[dim] = std::max<std::int64_t>(1, reach + 1 - 2 * stack[3].toIntVector()[dim]);
      }
    }
    stack.push_back(scalar(bounds.least));
    stack.push_back(scalar(bounds.most));
    const std::string name = conv ? "prepacked::conv2d_clamp_" : "prepacked::linear_clamp_";
    c10::IValue context = call(prepacked((name + "prepack").c_str()), std::move(stack));
    return {prepacked((name + "run").c_str()), std::move(context), place[*node.all_input_nodes().at(0)], channels,
            least};
  }

  std::size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<std::size_t> results_;
  bool tuple_ = false;
};

/// Where the weights of a layer come from: the program's attributes, or the module called.
std::optional<std::string> refuse_layer(const Node& layer, const CallFacts& call,
                                        const std::function<torch::Tensor(const Node&)>& constant) {
  const TensorInfo* input = call.input(0);
  if (!input) return "XNNPACK needs to know the shape of its input: give examples";
  if (input->dtype != DType::float32) return "XNNPACK takes float32, not " + std::string(to_string(input->dtype));
  if (input->device != Device{"cpu"} && !input->device.type.empty()) return "XNNPACK runs on the CPU";
  const bool conv = packet_of(schema_of(layer)->target.view()) == "aten::conv2d";
  if (conv && input->sizes.size() != 4) return "XNNPACK's convolution takes four dimensions";
  if (input->sizes.empty() || input->numel() == 0) return "XNNPACK takes no empty tensors";
  for (const char* name : {"weight", "bias"}) {
    const Argument* given = bound_argument(layer, name);
    if (!given || given->is_none()) continue;
    const Node* value = given->node_or_null();
    const torch::Tensor tensor = value ? constant(*value) : torch::Tensor();
    if (!tensor.defined()) return std::string("its ") + name + " is computed, not a constant";
    if (tensor.scalar_type() != at::kFloat) return std::string("its ") + name + " is not float32";
  }
  const Argument* padding = bound_argument(layer, "padding");
  if (padding && padding->is_string()) return "its padding is given by name";
  const Node* x = layer.arg(0).node_or_null();
  if (!x || layer.all_input_nodes().at(0) != x) return "its input is not its first argument";
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
  const OperatorSchema* schema = op ? schema_of(*op) : nullptr;
  if (!schema) return "XNNPACK has no " + call.op();
  if (is_layer(packet_of(schema->target.view()))) {
    return refuse_layer(*op, call, [&](const Node& value) {
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
