#include <fxgraph/torchscript/examples.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {
namespace {

/// What is asked of a tensor without looking at its elements.
bool asks_for_form(Symbol target) {
  constexpr std::array<std::string_view, 22> kForms = {
      "aten::size",           "aten::dim",           "aten::element_size",
      "aten::numel",          "aten::len",           "aten::stride",
      "aten::storage_offset", "aten::__is__",        "aten::is_floating_point",
      "aten::is_complex",     "aten::is_contiguous", "aten::__isnot__",
      "prim::dtype",          "prim::device",        "prim::layout",
      "prim::is_cuda",        "aten::is_signed",     "prim::is_quantized",
      "prim::is_sparse",      "prim::is_meta",       "prim::requires_grad",
      "aten::is_same_size"};
  return std::ranges::find(kForms, packet_of(target.view())) != kForms.end();
}

/// What takes parts of lists, tuples and dicts, copies them, or asks for their keys.
bool looks_into_container(Symbol target) {
  constexpr std::array<std::string_view, 11> kLooks = {
      "aten::__getitem__", "aten::__contains__", "aten::keys", "aten::items", "aten::values",    "aten::get",
      "aten::copy",        "aten::dict",         "aten::list", "aten::slice", "prim::TupleIndex"};
  return target == python::kGetItem || std::ranges::find(kLooks, packet_of(target.view())) != kLooks.end();
}

/// What the caller of the program decides, run by run.
bool asks_for_grad_mode(Symbol target) { return target == "aten::is_grad_enabled" || target == "prim::requires_grad"; }

bool holds_tensor(const c10::IValue& value) {
  if (value.isTensor()) return true;
  if (value.isList()) return std::ranges::any_of(value.toListRef(), holds_tensor);
  if (value.isTuple()) return std::ranges::any_of(value.toTupleRef().elements(), holds_tensor);
  if (!value.isGenericDict()) return value.isObject();
  const c10::Dict<c10::IValue, c10::IValue> dict = value.toGenericDict();
  return std::any_of(dict.begin(), dict.end(), [](const auto& item) { return holds_tensor(item.value()); });
}

/// What a file warns of is for whoever runs it.
class Silence : c10::WarningHandler {
 public:
  void process(const c10::SourceLocation&, const std::string&, bool) override {}

 private:
  c10::Warning::WarningHandlerGuard guard_{this};  // of this thread
};

c10::IValue run_plainly(torch::jit::Module& model, const std::string& method, const std::vector<c10::IValue>& inputs) {
  const internal::KeepRandomState random;
  const Silence silence;
  const at::NoGradGuard no_grad;
  const torch::jit::GraphOptimizerEnabledGuard plain(false);  // else the run would specialise the file's functions
  torch::jit::Stack stack;
  for (const c10::IValue& input : inputs) stack.push_back(input.deepcopy());
  return model.get_method(method)(std::move(stack));
}

bool is_equal(const c10::IValue& a, const c10::IValue& b) {
  const auto all_equal = [](const auto& left, const auto& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), is_equal);
  };
  if (a.isTensor() && b.isTensor()) {
    const at::Tensor &left = a.toTensor(), &right = b.toTensor();
    if (!left.defined() || !right.defined()) return left.defined() == right.defined();
    return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() && left.equal(right);
  }
  if (a.isList() && b.isList()) return all_equal(a.toListRef(), b.toListRef());
  if (a.isTuple() && b.isTuple()) return all_equal(a.toTupleRef().elements(), b.toTupleRef().elements());
  if (a.isObject() && b.isObject())
    return a.toObjectRef().type() == b.toObjectRef().type() &&
           all_equal(a.toObjectRef().slots(), b.toObjectRef().slots());
  if (!a.isGenericDict() || !b.isGenericDict()) return a == b;
  const auto left = a.toGenericDict(), right = b.toGenericDict();
  return left.size() == right.size() && std::all_of(left.begin(), left.end(), [&](const auto& item) {
           const auto found = right.find(item.key());
           return found != right.end() && is_equal(item.value(), found->value());
         });
}

}  // namespace

bool is_number(const c10::IValue& value) { return value.isInt() || value.isBool() || value.isDouble(); }

template <typename Run>
void Examples::keep(const Node& node, Run&& run) {
  Known known;
  bool all = true, in_input = false, of_tensors = true, of_numbers = true, of_nothing = true;
  node.for_each_input([&](const Node& input) {
    const Known& operand = at(input);
    of_nothing = false;
    all = all && operand.value;
    known.of_data = known.of_data || operand.of_data;
    in_input = in_input || operand.in_input;
    known.of_inputs = known.of_inputs || operand.of_inputs;
    of_tensors = of_tensors && operand.value && operand.value->isTensor();
    of_numbers = of_numbers && operand.value && is_number(*operand.value);
  });
  const NodeEffects effects = effects_of(node);
  known.of_data = (known.of_data && !asks_for_form(node.target())) || effects.random;
  known.moment = of_numbers && !of_nothing ? 0 : of_tensors && asks_for_form(node.target()) ? reshapes_ : writes_;
  const bool acts = effects.side_effect && node.target() != python::kAssert;
  writes_ += effects.writes || effects.unknown || acts || node.is(Op::call_module);
  reshapes_ += effects.mutates_shapes();
  if (all) {
    const at::NoGradGuard no_grad;
    try {
      known.value = run();
    } catch (const std::exception& error) {
      if (failure_.empty()) failure_ = node.name() + ": " + first_line(error);
    }
  }
  const bool taken = in_input && looks_into_container(node.target()) && known.value;
  known.in_input = taken;
  if (taken) known.of_data = holds_tensor(*known.value);
  known_[node] = std::move(known);
}

void Examples::set_input(const Node& node, const c10::IValue& value) {
  const bool of_data = holds_tensor(value), container = value.isList() || value.isTuple() || value.isGenericDict();
  known_[node] = {.value = value.isObject() ? value.deepcopy() : value,
                  .of_data = of_data,
                  .of_inputs = true,
                  .in_input = container};
}

void Examples::set_attribute(const Node& node, const c10::IValue& value, bool is_parameter) {
  if (is_parameter) parameters_.insert(value.toTensor().storage().unsafeGetStorageImpl());
  const bool copied = value.isTensor() && !is_parameter;
  known_[node] = {.value = copied ? c10::IValue(value.toTensor().detach().clone()) : value, .of_data = true};
}

/// A tensor of the file, which the run must not change.
bool Examples::writes_parameters(const Node& node) const {
  bool found = false;
  const auto look = [&](const Argument& argument) {
    for_each_node(argument, [&](const Node& input) {
      const c10::IValue* known = value(input);
      const bool dense = known && known->isTensor() && known->toTensor().defined() && known->toTensor().has_storage();
      found = found || (dense && parameters_.contains(known->toTensor().storage().unsafeGetStorageImpl()));
    });
  };
  for_each_written(node, look, {});
  return found;
}

void Examples::run(const Node& node) {
  keep(node, [&]() -> std::optional<c10::IValue> {
    if (asks_for_grad_mode(node.target()) && wants_gradients_) return c10::IValue(true);
    if (asks_for_grad_mode(node.target()))
      throw std::runtime_error("whether gradients are wanted is the caller's to say");
    // Whoever runs the program is warned.
    const bool speaks = node.is_call("aten::warn") || node.is_call("prim::Print");
    if (speaks || node.target() == python::kAssert || writes_parameters(node)) return std::nullopt;
    const auto value_of = [&](Node& input) { return *at(input).value; };
    CallValues values;
    for (const Argument& arg : node.args()) values.args.push_back(to_ivalue(arg, nullptr, value_of));
    for (const auto& [name, value] : node.kwargs())
      values.kwargs.emplace_back(name, to_ivalue(value, nullptr, value_of));
    return call_function_target(node.target(), values);
  });
}

void Examples::run_leaf(const Node& node, const torch::jit::Module& leaf, const std::string& method) {
  keep(node, [&]() -> std::optional<c10::IValue> {
    const Silence silence;
    const torch::jit::GraphOptimizerEnabledGuard plain(false);  // else the run would specialise the file's functions
    torch::jit::Stack inputs;
    for (const Argument& arg : node.args())
      inputs.push_back(to_ivalue(arg, nullptr, [&](Node& input) { return *at(input).value; }));
    torch::jit::Module called = leaf.attr("training", false).toBool() ? leaf.deepcopy() : leaf;
    return called.get_method(method)(std::move(inputs));
  });
}

bool is_settled_by_one_call(const torch::jit::Module& model, const std::string& method,
                            const std::vector<c10::IValue>& inputs) {
  try {
    torch::jit::Module called = model.deepcopy();
    const c10::IValue first = run_plainly(called, method, inputs).deepcopy();
    const torch::jit::Module between = called.deepcopy();
    return is_equal(run_plainly(called, method, inputs), first) && is_equal(called._ivalue(), between._ivalue());
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace fx::torchscript
