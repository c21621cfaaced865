#include <fxgraph/trace/session.h>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/trace/tensor_memory.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

std::uint64_t address(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl());
}

std::uint64_t storage_address(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) return FlatMap<std::uint32_t>::kEmptyKey;
  return reinterpret_cast<std::uintptr_t>(tensor.storage().unsafeGetStorageImpl());
}

bool same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

}  // namespace

Node& Session::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  if (!follower_) return maker_->create_node(op, target, args, kwargs, name);
  std::vector<Argument> all = args.to_vector();
  for (const Argument& argument : kwargs.values()) all.push_back(argument);
  return create_followed({op, target, nullptr, all}, args, kwargs, name);
}

Node& Session::create_followed(const TracedCall& call, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  follower_->making(call);
  Node& node = maker_->create_node(call.op, call.target, args, kwargs, name);
  follower_->made(node);
  return node;
}

void Session::add_attribute(const std::string& path, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  std::uint32_t& index = captured_index_[address(tensor)];
  if (index != 0) return;
  CapturedTensor captured;
  captured.tensor = tensor;
  captured.path = path;
  captured.of_root = true;
  captured.required_grad = tensor.requires_grad();
  captured_.push_back(std::move(captured));
  index = static_cast<std::uint32_t>(captured_.size());
  const std::uint64_t storage = storage_address(tensor);
  if (storage != FlatMap<std::uint32_t>::kEmptyKey) storage_index_[storage] = index;
}

const std::string* Session::attribute_path(const at::Tensor& tensor) const {
  if (!tensor.defined()) return nullptr;
  const std::uint32_t* index = captured_index_.find(address(tensor));
  return index && captured_[*index - 1].of_root ? &captured_[*index - 1].path : nullptr;
}

const CapturedTensor* Session::captured_by(const Node& node) const {
  for (const CapturedTensor& captured : captured_) {
    if (captured.attribute && captured.path == node.target().view()) return &captured;
  }
  return nullptr;
}

const std::string* Session::written_attribute(const Node& node) const {
  for (const CapturedTensor& captured : captured_) {
    if (captured.of_root && captured.node == &node && captured.node != captured.attribute) return &captured.path;
  }
  return nullptr;
}

CapturedTensor& Session::capture(const at::Tensor& tensor) {
  if (const std::uint32_t* index = captured_index_.find(address(tensor))) {
    CapturedTensor& known = captured_[*index - 1];
    // Memory on loan may have been written since, by means that nobody records.
    if (known.of_root || known.tensor.is_same(tensor) || (known.node && !known.node->is(Op::get_attr)) ||
        same_data(known.tensor, tensor)) {
      return known;
    }
  }
  // `weight.data()` is another tensor object on the same memory: still the parameter.
  const std::uint64_t storage = storage_address(tensor);
  if (storage != FlatMap<std::uint32_t>::kEmptyKey) {
    const std::uint32_t* index = storage_index_.find(storage);
    if (index && same_view(captured_[*index - 1].tensor, tensor)) return captured_[*index - 1];
  }
  CapturedTensor captured;
  captured.tensor = tensor;
  if (is_on_loan(tensor)) {
    captured.tensor = own_copy(tensor);
    on_loan_.push_back(tensor);
  }
  captured_.push_back(std::move(captured));
  captured_index_[address(tensor)] = static_cast<std::uint32_t>(captured_.size());
  return captured_.back();
}

Node& Session::attribute_node(CapturedTensor& captured) {
  const bool was_written = captured.node && !captured.node->is(Op::get_attr);
  if (captured.node && (maker_->one_get_attr_each() || was_written)) return *captured.node;
  if (captured.path.empty()) {
    if (CapturedTensor* parameter = viewed_parameter(captured)) return view_node(captured, *parameter);
    do {
      captured.path = "_tensor_constant" + std::to_string(next_constant_++);
    } while (!maker_->is_free_attribute(captured.path));
    maker_->captured(captured.path, captured.tensor);
  }
  Node& node = create_node(Op::get_attr, captured.path);
  captured.node = captured.attribute = &node;
  remember(node, meta_value(captured), captured.tensor.device());
  return node;
}

// The tensor of the root of which `captured` is a view through which gradients go: `wt = w.t()`, kept in a member.
CapturedTensor* Session::viewed_parameter(const CapturedTensor& captured) {
  const at::Tensor& tensor = captured.tensor;
  if (!tensor.requires_grad() || tensor.is_leaf() || !tensor.is_view() || tensor.is_conj() || tensor.is_neg())
    return nullptr;
  const std::uint32_t* index = captured_index_.find(address(at::Tensor(tensor._base())));
  CapturedTensor* parameter = index ? &captured_[*index - 1] : nullptr;
  return parameter && parameter->of_root && parameter->tensor.scalar_type() == tensor.scalar_type() ? parameter
                                                                                                    : nullptr;
}

Node& Session::view_node(CapturedTensor& view, CapturedTensor& parameter) {
  static const Symbol kAsStrided("aten::as_strided");
  const auto numbers = [](at::IntArrayRef values) {
    return Argument::list(std::vector<Argument>(values.begin(), values.end()));
  };
  const at::Tensor& tensor = view.tensor;
  const std::vector<Argument> arguments = {attribute_node(parameter), numbers(tensor.sizes()),
                                           numbers(tensor.strides()), tensor.storage_offset()};
  Node& node = create_node(Op::call_function, kAsStrided, arguments);
  view.node = &node;
  remember(node, meta_value(view), tensor.device());
  return node;
}

const at::Tensor& Session::meta_value(const at::Tensor& tensor) {
  if (const ProxyImpl* proxy = proxy_impl(tensor)) return proxy->value();
  return meta_value(capture(tensor));
}

const at::Tensor& Session::meta_value(CapturedTensor& captured) const {
  if (captured.value.defined()) return captured.value;
  captured.value = to_meta(captured.tensor);
  if (!captured.of_root || !captured.value.defined() || !captured.tensor.is_floating_point()) return captured.value;
  for (const OtherType& type : other_types_) {
    if (captured.tensor.scalar_type() != type.from) continue;
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    captured.value = captured.value.to(type.to);
    break;
  }
  return captured.value;
}

at::Tensor Session::make_proxy(Node& node, at::Tensor value, std::optional<c10::Device> device) {
  remember(node, value, device);
  latest_ = &node;
  if (!value.defined()) {
    device.reset();
    has_unknown_shapes_ = true;
  }
  return at::Tensor(c10::make_intrusive<ProxyImpl>(shared_from_this(), &node, std::move(value), device));
}

at::Tensor Session::proxy(Node& node, const at::Tensor& example, std::optional<c10::Device> device) {
  c10::impl::ExcludeDispatchKeyGuard guard(kTraceKeys);
  if (!example.defined()) return make_proxy(node, {}, std::nullopt);
  if (const ProxyImpl* known = proxy_impl(example)) return make_proxy(node, known->value(), known->known_device());
  return make_proxy(node, to_meta(example), device ? *device : example.device());
}

void Session::remember(const Node& node, const at::Tensor& value, std::optional<c10::Device> device) {
  if (!value.defined()) return;
  if (node.id() >= values_.size()) {
    values_.resize(node.id() + 1 + values_.size() / 2);
    devices_.resize(values_.size(), c10::Device(c10::kCPU));
  }
  values_[node.id()] = value;
  if (device) devices_[node.id()] = *device;
}

void Session::copy_value(const Node& from, Node& to) {
  replaced_[from.id()] = &to;
  if (const at::Tensor value = value_of(from); value.defined()) remember(to, value, devices_[from.id()]);
}

Node* Session::standing_for(Node& node) const {
  Node* stands = &node;
  while (stands->is_erased()) {
    const auto next = replaced_.find(stands->id());
    if (next == replaced_.end()) return nullptr;
    stands = next->second;
  }
  return stands;
}

void Session::remember_parts(const Node& node, const std::vector<c10::IValue>& values, c10::Device device) {
  CompoundValue compound{{}, device};
  for (const c10::IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined()) compound.parts.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const at::Tensor& part : value.toTensorVector()) compound.parts.push_back(part);
  }
  compound_values_.emplace_back(node.id(), std::move(compound));
}

Argument Session::argument_for(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  if (ProxyImpl* proxy = proxy_impl(tensor)) {
    if (follows(*proxy->session())) return Argument(kept_node(*proxy));
    if (proxy->session().get() != this) {
      throw trace_error(proxy->session()->is_open() ? proxy->node() : nullptr, "used here",
                        proxy->session()->is_open() ? "belongs to another trace; pass it in as an argument"
                                                    : "was made by a trace that has ended; return it from that trace");
    }
    if (proxy->is_constant()) settle(*proxy);
    if (proxy->was_made_to_require_grad()) require_grad(*proxy);
    if (proxy->node()->is_erased()) throw trace_error(proxy->node(), "used here", "has been erased from its graph");
    return Argument(proxy->node());
  }
  CapturedTensor& captured = capture(tensor);
  Node& node = attribute_node(captured);
  if (captured.of_root && captured.tensor.is_same(tensor) && tensor.requires_grad() && !captured.required_grad) {
    throw trace_error(&node, "set_requires_grad()",
                      "makes a tensor require gradients inside the program, which a graph cannot hold; say so before "
                      "the trace");
  }
  // `weight.data()` is the parameter without its gradient, and so is one that the program has frozen meanwhile. A
  // buffer may have got one from what was written to it. What a run before has put in its place is the buffer itself.
  const bool is_itself = captured.tensor.is_same(tensor) || was_proxy(tensor);
  const bool is_written =
      captured.of_root && captured.node != captured.attribute && !is_itself && may_have_gradient(tensor.scalar_type());
  return (captured.required_grad || is_written) && !tensor.requires_grad() ? detached(node) : Argument(node);
}

// A constant made in the trace becomes an attribute as soon as something recorded uses it.
void Session::settle(ProxyImpl& constant) {
  const at::Tensor data = constant.value();
  CapturedTensor& captured = capture(data);
  captured.is_literal = true;
  Node& node = attribute_node(captured);
  constant.settle(node, captured.value);
}

void Session::rebind(const at::Tensor& tensor, Node& node) {
  if (ProxyImpl* proxy = proxy_impl(tensor)) {
    if (proxy->session().get() != this) {
      kept_nodes_[proxy] = &node;
    } else {
      proxy->rebind(node);
    }
    remember(node, proxy->value(), proxy->known_device());
  } else {
    CapturedTensor& captured = capture(tensor);
    if (!captured.of_root && !captured.tensor.is_same(tensor)) {
      throw trace_error(&node, target_text(node.target()),
                        "writes memory that LibTorch does not own (torch::from_blob), which a graph cannot hold; write "
                        "a tensor made by LibTorch, and return it");
    }
    // Written through `weight.data()`: the weight itself stays what it is to gradients.
    if (captured.tensor.requires_grad() && !tensor.requires_grad()) return;
    captured.node = &node;
    remember(node, captured.value, captured.tensor.device());
  }
}

void Session::reshape(const at::Tensor& tensor, at::Tensor value) {
  const at::Tensor& known = meta_value(tensor);
  if (!known.defined() || !value.defined() || same_view(known, value)) return;
  reshapes_in_place_ = true;
  if (ProxyImpl* proxy = proxy_impl(tensor)) {
    proxy->reshape(std::move(value));
  } else {
    capture(tensor).value = std::move(value);
  }
}

Node& Session::getitem(Node& node, const Argument& index) {
  return create_node(Op::call_function, python::kGetItem, {Argument(node), index});
}

Shapes Session::shapes(const Graph& graph) const {
  const auto info_of = [](const at::Tensor& value, c10::Device device) {
    TensorInfo info;
    info.dtype = to_dtype(value.scalar_type());
    info.sizes = value.sizes().vec();
    info.strides = value.strides().vec();
    info.device = to_device(device);
    return info;
  };
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (const at::Tensor value = value_of(node); value.defined()) shapes[node] = info_of(value, devices_[node.id()]);
  }
  for (const auto& [id, value] : compound_values_) {
    const Node* node = graph.node_by_id(id);
    if (!node) continue;
    for (const at::Tensor& part : value.parts) shapes[*node].tensors.push_back(info_of(part, value.device));
  }
  return shapes;
}

}  // namespace fx::internal
