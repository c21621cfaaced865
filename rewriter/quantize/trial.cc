#include <fxgraph/rewriter/quantize/trial.h>

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <exception>
#include <unordered_set>
#include <vector>

#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/input_limits.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/rewriter/quantize/qnnpack_limits.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

/// An operand whose value is known only while the program runs.
struct NotKnown {};

constexpr double kStepsOff = 2;         // rounding twice
constexpr double kShareAllowed = 0.01;  // of elements that are further off

c10::IValue evaluate(const Node& call, const std::function<c10::IValue(Node&)>& operands) {
  CallValues values;
  for (const Argument& each : call.args()) values.args.push_back(to_ivalue(each, nullptr, operands));
  for (const auto& [name, value] : call.kwargs()) values.kwargs.emplace_back(name, to_ivalue(value, nullptr, operands));
  return call_function_target(call.target(), values);
}

bool runs(const Node& call, const std::function<c10::IValue(Node&)>& operands) {
  try {
    evaluate(call, operands);
    return true;
  } catch (const std::exception&) {
    return false;
  } catch (const NotKnown&) {
    return false;
  }
}

const std::string* value_name(const Node& node) {
  const Meta* meta = node.find_meta();
  return meta ? meta->get<std::string>(meta_key::kValue) : nullptr;
}

std::string difference(const at::Tensor& found, const at::Tensor& floats) {
  if (found.sizes() != floats.sizes()) return "its result has other sizes";
  const at::Tensor expected =
      at::quantize_per_tensor(floats, found.q_scale(), found.q_zero_point(), found.scalar_type());
  const at::Tensor steps = (found.int_repr().to(at::kFloat) - expected.int_repr().to(at::kFloat)).abs();
  const double off = steps.gt(kStepsOff).to(at::kFloat).mean().item<double>();
  return off > kShareAllowed ? "it does not compute what the operator on floats does" : "";
}

// Channels last by its strides, which kernels keep.
bool is_of_convolution(const Node& value) {
  std::vector<const Node*> left = {&value};
  std::unordered_set<const Node*> seen;
  while (!left.empty()) {
    const Node& node = *left.back();
    left.pop_back();
    const std::string_view name = node.is(Op::call_function) ? node.target().view() : "";
    if (name.starts_with("quantized::conv") || !seen.insert(&node).second) continue;
    if (!name.starts_with("quantized::") && !value_name(node)) return false;
    bool made_of_images = false;
    for (const Node* input : node.all_input_nodes()) {
      if (input->is(Op::get_attr) || !value_name(*input)) continue;
      made_of_images = true;
      left.push_back(input);
    }
    if (!made_of_images) return false;
  }
  return true;
}

}  // namespace

const TensorInfo* float_tensor_of(const Node& quantized, const Trial::Values& values) {
  const std::string* name = value_name(quantized);
  const auto known = name ? values.find(*name) : values.end();
  return known == values.end() ? nullptr : known->second.tensor();
}

std::optional<Grid> grid_of(const Node& quantized) {
  for (const Node* node = &quantized; node && node->is(Op::call_function);) {
    const Meta* meta = node->find_meta();
    if (const Grid* noted = meta ? meta->get<Grid>(meta_key::kGrid) : nullptr) return *noted;
    const Call call = call_of(*node);
    if (!call) return std::nullopt;
    const auto number = [&](const char* prefixed, const char* plain) {
      const Argument* value = call.argument(prefixed);
      return literal_number(value ? value : call.argument(plain));
    };
    const auto scale = number("output_scale", "scale"), zero_point = number("output_zero_point", "zero_point");
    if (scale && zero_point) {
      const Argument* dtype = call.argument("dtype");
      return Grid{*scale, static_cast<std::int64_t>(*zero_point),
                  dtype && dtype->kind() == ArgumentKind::dtype ? dtype->as_dtype() : DType::quint8};
    }
    if (call.schema().target.view().starts_with("quantized::")) return std::nullopt;
    node = call.args().empty() ? nullptr : call.args()[0].node_or_null();  // it has its input's
  }
  return std::nullopt;
}

at::Tensor Trial::fake_input(const Node& value, Layout layout) const {
  const std::string* quantized = value_name(value);
  const auto known = values_.find(quantized ? *quantized : value.name());
  const TensorInfo* info = known == values_.end() ? nullptr : known->second.tensor();
  if (!info || (!quantized && info->dtype != DType::float32)) throw NotKnown();
  std::vector<std::int64_t> sizes = info->sizes;
  const bool is_image = sizes.size() == 4 || sizes.size() == 5;
  if (is_point(layout) && is_image) std::fill(sizes.begin() + 2, sizes.end(), 1);
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0) throw NotKnown();
    count *= size;
  }
  // All whole numbers, in no order that sizes would fall in with.
  const at::Tensor order = at::arange(count, at::kLong);
  at::Tensor numbers = (order * 97 + order.div(251, "floor") * 31).remainder(256).to(at::kByte).view(sizes);
  if (layout == Layout::point_of_convolution && is_image) {
    std::vector<std::int64_t> strides(sizes.size(), sizes[1]);
    strides[1] = 1;
    numbers = at::empty_strided(sizes, strides, numbers.options()).copy_(numbers);
  }
  if (layout == Layout::channels_last && is_image)
    numbers =
        numbers.contiguous(numbers.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d);
  if (!quantized) return numbers.to(at::kFloat) / 256;
  const Grid grid = grid_of(value).value_or(Grid{0.05, 128});
  if (grid.dtype == DType::qint8) numbers = numbers.to(at::kShort).sub(128).to(at::kChar);
  return at::_make_per_tensor_quantized_tensor(numbers, grid.scale, grid.zero_point);
}

c10::IValue Trial::operand(const Node& node, Layout layout) const {
  if (node.is(Op::get_attr)) {
    const std::string path = node.target().str();
    if (const c10::IValue* object = find_object(module_, path)) return *object;
    return module_.attribute(path).detach();
  }
  if (node.is_call("aten::dequantize.self")) return operand(node.arg(0).node(), layout).toTensor().dequantize();
  return fake_input(node, layout);
}

std::string Trial::fault_in(Layout layout, const Node& kernel, const Node& op, bool relu, bool compare) const {
  if (at::globalContext().qEngine() == at::QEngine::QNNPACK) {
    if (std::string why = qnnpack_fault(kernel); !why.empty()) return why;
  }
  const Operands operands = [&](Node& node) { return operand(node, layout); };
  if (is_point(layout) && !runs(op, operands)) return {};
  try {
    const at::Tensor found = evaluate(kernel, operands).toTensor();
    if (!compare || !found.numel()) return {};
    at::Tensor floats = evaluate(op, operands).toTensor();
    if (relu) floats = floats.relu();
    return difference(found, floats);
  } catch (const NotKnown&) {
    return {};
  } catch (const Error& error) {
    return error.message();
  } catch (const std::exception& error) {
    return first_line(error);
  }
}

std::string Trial::fault(const Node& kernel, const Node& op, bool relu, bool compare) const {
  const std::string why = fault_now(kernel, op, relu, compare);
  const EngineScope engine(backend_);
  return why.empty() && engine.differs() ? fault_now(kernel, op, relu, compare) : why;
}

std::string Trial::fault_now(const Node& kernel, const Node& op, bool relu, bool compare) const {
  std::string why = fault_in(Layout::contiguous, kernel, op, relu, compare);
  std::int64_t channels = 0;  // of images
  for (const Node* input : kernel.all_input_nodes()) {
    const TensorInfo* info = float_tensor_of(*input, values_);
    if (info && (info->sizes.size() == 4 || info->sizes.size() == 5)) channels = info->sizes[1];
  }
  if (!why.empty() || !channels || !compare) return why;
  why = fault_in(Layout::channels_last, kernel, op, relu, compare);  // as layers of images make them
  if (!why.empty()) return why;
  const auto groups = groups_of_norm(kernel);
  if (groups && (*groups < 0 || *groups == channels)) return {};  // of one number each: assert_input_limits()
  const bool by_layers =
      std::ranges::all_of(kernel.all_input_nodes(), [](const Node* input) { return is_of_convolution(*input); });
  why = fault_in(by_layers ? Layout::point_of_convolution : Layout::point, kernel, op, relu, compare);
  return why.empty() ? why : "of images of one point, " + why;
}

}  // namespace fx::quantize
