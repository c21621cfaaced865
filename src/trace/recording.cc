// How one operator call becomes a node: constants, shapes, arguments, node, results, in that order, so that a call that
// cannot be recorded throws before the graph changes.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>

#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/run/value.h>
#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

using c10::IValue;
using torch::jit::Stack;

template <typename Visit>
void for_each_tensor(const IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

// torch::tensor({1, 2}) makes its result with `empty` below autograd, but above ADInplaceOrView; no other code does.
bool inside_tensor_literal() {
  const c10::DispatchKeySet excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  return excluded.has(c10::DispatchKey::AutogradFunctionality) && !excluded.has(c10::DispatchKey::ADInplaceOrView) &&
         !c10::InferenceMode::is_enabled();
}

std::string call_name(Symbol target) {
  std::string_view name = packet_of(target.view());
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  return std::string(name) + "()";
}

// The same meta tensor with a shape of its own: `unsqueeze_` is not to change what earlier nodes looked like.
IValue own_shape(const IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  return at::Tensor(value.toTensor().unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
}

}  // namespace

/// One operator call on its way into the graph.
class Session::Call {
 public:
  Call(Session& session, const c10::OperatorHandle& op, Stack& stack)
      : session_(session),
        op_(op),
        record_(session.oracle_->operators().find(op)),
        stack_(stack),
        arguments_(stack.data() + (stack.size() - record_.arguments.size())) {}

  void record();

 private:
  bool on_constants();
  void run_on_constants();
  bool compute();
  IValue shape_of(const IValue& value, bool& known);
  std::optional<bool> equality() const;
  void answer_without_node();
  void find_device();
  const Node* first_node() const;
  void own_written_constants();
  Node& make_node();
  Argument argument(std::size_t i);
  Argument tensor_list(const IValue& list);
  IValue result(std::size_t i, Node& node);
  IValue tensor_result(Node& node, const IValue* value);
  IValue list_result(Node& node, const IValue* value);
  void finish(std::vector<IValue> results);

  Session& session_;
  const c10::OperatorHandle& op_;
  OpRecord& record_;
  Stack& stack_;
  IValue* arguments_;
  Stack values_;  // results on the meta device
  bool known_ = false;
  std::optional<c10::Device> device_;
};

void Session::record(const c10::OperatorHandle& op, Stack& stack) {
  if (!is_open())
    throw trace_error(nullptr, "used here", "was made by a trace that has ended; return it from that trace");
  Call(*this, op, stack).record();
}

void Session::Call::record() {
  if (on_constants()) return run_on_constants();
  if (!record_.all_results_are_tensors && record_.results.size() == 1) return answer_without_node();
  known_ = compute();
  find_device();
  own_written_constants();
  Node& node = make_node();
  const bool compound = record_.results.size() != 1 || record_.results[0].kind == ValueKind::tensor_list;
  if (known_ && compound) session_.remember_parts(node, values_, *device_);
  std::vector<IValue> results;
  for (std::size_t i = 0; i < record_.results.size(); ++i) {
    const bool several = record_.results.size() > 1;
    const bool written = record_.results[i].written_argument >= 0;
    results.push_back(result(i, several && !written ? session_.getitem(node, static_cast<std::int64_t>(i)) : node));
  }
  finish(std::move(results));
}

void Session::Call::finish(std::vector<IValue> results) {
  torch::jit::drop(stack_, record_.arguments.size());
  for (IValue& value : results) stack_.push_back(std::move(value));
}

// ── Constants being built
// ──────────────────────────────────────────────────────────────────────────────────────────────

bool Session::Call::on_constants() {
  if (record_.builds_constants) return inside_tensor_literal();
  if (!record_.keeps_constants) return false;
  bool any = false;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    bool ordinary = false;
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      const ProxyImpl* proxy = proxy_impl(tensor);
      (proxy && proxy->is_constant() ? any : ordinary) = true;
    });
    if (ordinary) return false;
  }
  return any;
}

void Session::Call::run_on_constants() {
  Stack real;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    const ProxyImpl* proxy = arguments_[i].isTensor() ? proxy_impl(arguments_[i].toTensor()) : nullptr;
    real.push_back(proxy ? IValue(proxy->value()) : arguments_[i]);
  }
  const IValue self = real.front();
  op_.callBoxed(&real);
  const at::Tensor result = real.back().toTensor();
  if (self.isTensor() && self.toTensor().is_same(result)) return finish({arguments_[0]});
  finish({at::Tensor(c10::make_intrusive<ProxyImpl>(session_.shared_from_this(), result))});
}

// A constant that the program writes to is made anew in each run.
void Session::Call::own_written_constants() {
  static const Symbol kClone("aten::clone");
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (!record_.arguments[i].written || !arguments_[i].isTensor()) continue;
    ProxyImpl* proxy = proxy_impl(arguments_[i].toTensor());
    if (!proxy) continue;
    if (proxy->is_constant()) session_.settle(*proxy);
    if (!proxy->was_constant()) continue;
    Node& copy = session_.create_node(Op::call_function, kClone, {Argument(proxy->node())});
    session_.rebind(arguments_[i].toTensor(), copy);
  }
}

// ── Shapes
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

IValue Session::Call::shape_of(const IValue& value, bool& known) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return value;
    if (ProxyImpl* proxy = proxy_impl(tensor); proxy && proxy->is_constant()) return to_meta(proxy->value());
    const at::Tensor& shape = session_.meta_value(tensor);
    if (!shape.defined()) known = false;
    return shape;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> shapes;
    for (const at::Tensor& tensor : value.toTensorVector()) shapes.push_back(shape_of(tensor, known).toTensor());
    return shapes;
  }
  if (!value.isList()) return value;
  const c10::TypePtr element_type = value.type()->castRaw<c10::ListType>()->getElementType();
  if (element_type->kind() != c10::TypeKind::OptionalType) return value;
  c10::impl::GenericList shapes(element_type);
  for (const IValue& element : value.toListRef()) shapes.push_back(shape_of(element, known));
  return shapes;
}

bool Session::Call::compute() {
  bool known = !record_.shape_depends_on_data;
  if (known && record_.takes_tensors) {
    // The usual trace without shapes is told by its first proxy, before anything is copied.
    for (std::size_t i = 0; i < record_.arguments.size() && known; ++i) {
      if (!arguments_[i].isTensor()) continue;
      const ProxyImpl* proxy = proxy_impl(arguments_[i].toTensor());
      if (proxy && !proxy->value().defined()) known = false;
    }
  }
  if (!known) return false;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    values_.push_back(shape_of(arguments_[i], known));
    if (known && record_.arguments[i].written) values_.back() = own_shape(values_.back());
    const bool mask_index = record_.target == "aten::index.Tensor" && i == 1;
    if (known && mask_index) {
      for_each_tensor(values_.back(), [&](const at::Tensor& index) {
        if (index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte)) known = false;
      });
    }
  }
  if (!known) return false;
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    session_.oracle_->run(op_, record_, values_);
  } catch (const c10::Error& error) {
    if (session_.follower_) session_.follower_->refused(error);
    const Node* node = first_node();
    if (!record_.all_results_are_tensors) throw no_data(node, call_name(record_.target));
    throw trace_error(node, call_name(record_.target), "cannot run on these shapes: " + first_line(error));
  }
  return true;
}

const Node* Session::Call::first_node() const {
  const Node* node = nullptr;
  for (std::size_t i = 0; i < record_.arguments.size() && !node; ++i) {
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      if (const ProxyImpl* proxy = proxy_impl(tensor); proxy && !node) node = proxy->open_node();
    });
  }
  return node;
}

// `equal` can be answered without data for one value and itself, and for those who would compute the same either way.
std::optional<bool> Session::Call::equality() const {
  static const Symbol kEqual("aten::equal");
  if (record_.target != kEqual) return std::nullopt;
  const ProxyImpl* a = proxy_impl(arguments_[0].toTensor());
  const ProxyImpl* b = proxy_impl(arguments_[1].toTensor());
  if (a && b && a->node() && a->node() == b->node()) return true;
  if (caller_takes_unequal()) return false;
  return std::nullopt;
}

// Questions that return numbers (`is_floating_point`, `size`) are answered from the shape and leave no node.
void Session::Call::answer_without_node() {
  if (const std::optional<bool> equal = equality()) return finish({*equal});
  if (compute()) return finish({values_.back()});
  const std::string call = call_name(record_.target);
  if (call == "item()" || call == "is_nonzero()" || call == "equal()" || call == "allclose()" ||
      call == "_local_scalar_dense()") {
    throw no_data(first_node(), call);
  }
  throw unknown_shape(first_node(), call);
}

// The device that the result would have: the one asked for, else that of the first tensor with dimensions, else of any.
void Session::Call::find_device() {
  if (!known_) return;
  std::optional<c10::Device> of_number;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (record_.arguments[i].kind == ValueKind::device && arguments_[i].isDevice()) {
      device_ = arguments_[i].toDevice();
      return;
    }
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      std::optional<c10::Device>& place = tensor.dim() > 0 ? device_ : of_number;
      if (!place) place = tensor.device();
    });
  }
  if (!device_) device_ = of_number ? *of_number : c10::Device(c10::kCPU);
}

// ── The node
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Argument Session::Call::tensor_list(const IValue& list) {
  std::vector<Argument> elements;
  for (const IValue& element : list.toListRef()) {
    elements.push_back(element.isNone() ? Argument() : session_.argument_for(element.toTensor()));
  }
  return Argument::list(elements);
}

Argument Session::Call::argument(std::size_t i) {
  const OpArgument& wanted = record_.arguments[i];
  const IValue& value = arguments_[i];
  if (value.isTensor()) return session_.argument_for(value.toTensor());
  if (value.isNone()) return {};
  if (wanted.kind == ValueKind::tensor_list) return tensor_list(value);
  if (wanted.kind == ValueKind::generator) {
    throw trace_error(first_node(), call_name(record_.target),
                      "is given a random generator, which a graph cannot hold; use torch::manual_seed instead");
  }
  std::optional<Argument> argument = to_argument(value, wanted.type);
  if (!argument) {
    throw Error(ErrorKind::unsupported, call_name(record_.target) + ": its argument `" + wanted.name.str() + "` is a " +
                                            value.tagKind() + ", which a graph cannot hold");
  }
  if (argument->kind() == ArgumentKind::dtype && value.toInt() == static_cast<int>(at::ScalarType::Undefined)) {
    throw trace_error(first_node(), call_name(record_.target),
                      "is given the dtype() of a traced tensor, which " + std::string(kOnlyExamplesTell));
  }
  if (value.isInt() && value.toInt() == kOpenEnd && wanted.name == "end")
    return std::numeric_limits<std::int64_t>::max();
  if (wanted.repeat > 1 && argument->is_list() && argument->elements().size() == 1) {
    return Argument::list(std::vector<Argument>(wanted.repeat, argument->elements()[0]));
  }
  return std::move(*argument);
}

// Positional arguments up to the last that is not the default; keyword-only arguments where they differ from it.
Node& Session::Call::make_node() {
  std::vector<Argument>& args = session_.args_;
  std::vector<NamedArgument>& kwargs = session_.kwargs_;
  args.clear();
  kwargs.clear();
  session_.all_.clear();
  std::size_t needed = 0;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    const OpArgument& wanted = record_.arguments[i];
    Argument value = argument(i);
    if (session_.follower_) session_.all_.push_back(value);
    const bool is_default = wanted.default_value && *wanted.default_value == value;
    if (!wanted.keyword_only) {
      args.push_back(std::move(value));
      if (!is_default) needed = args.size();
    } else if (!is_default) {
      kwargs.push_back({wanted.name, std::move(value)});
    }
  }
  args.resize(needed);
  if (!session_.follower_) return session_.create_node(Op::call_function, record_.target, args, kwargs);
  return session_.create_followed({Op::call_function, record_.target, &record_, session_.all_}, args, kwargs, {});
}

// ── Results
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

IValue Session::Call::tensor_result(Node& node, const IValue* value) {
  if (!value) return session_.make_proxy(node, {}, std::nullopt);
  if (!value->isTensor() || !value->toTensor().defined()) return at::Tensor();
  return session_.make_proxy(node, value->toTensor(), device_);
}

IValue Session::Call::list_result(Node& node, const IValue* value) {
  std::size_t length = 0;
  if (value) {
    length = value->toListRef().size();
  } else if (const auto count = result_list_length(record_, arguments_)) {
    length = *count;
  } else {
    throw unknown_shape(first_node(), call_name(record_.target));
  }
  c10::List<at::Tensor> list;
  for (std::size_t i = 0; i < length; ++i) {
    Node& element = session_.getitem(node, static_cast<std::int64_t>(i));
    const IValue shape = value ? value->toListRef()[i] : IValue();
    list.push_back(tensor_result(element, value ? &shape : nullptr).toTensor());
  }
  return list;
}

IValue Session::Call::result(std::size_t i, Node& node) {
  const OpResult& wanted = record_.results[i];
  if (wanted.written_argument >= 0) {
    IValue& written = arguments_[wanted.written_argument];
    if (!written.isTensor()) return written;
    if (known_) session_.reshape(written.toTensor(), values_[i].toTensor());
    session_.rebind(written.toTensor(), node);
    return written;
  }
  const IValue* value = known_ ? &values_[i] : nullptr;
  switch (wanted.kind) {
    case ValueKind::tensor: return tensor_result(node, value);
    case ValueKind::tensor_list: return list_result(node, value);
    default: return value ? *value : IValue(std::int64_t{0});
  }
}

}  // namespace fx::internal
