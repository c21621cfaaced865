// The second half of recording a call: its arguments, its node, its results. The first half: recording.cc.
#include <algorithm>
#include <limits>

#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/trace/recorded_call.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {

using c10::IValue;

// ── The node
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// contiguous() of what is contiguous, to() of its own type: the tensor itself, with its gradient whatever the mode.
bool Session::Call::gives_an_argument() const {
  if (!known_ || values_.size() != 1 || !values_[0].isTensor()) return false;
  const c10::AliasInfo* alias = op_.schema().returns()[0].alias_info();  // dropout and type_as do not say so
  if ((alias && alias->isWrite()) || !op_.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return false;  // views of all of it, of which LibTorch makes another tensor
  bool is_one = false;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (record_.arguments[i].name == "memory_format") session_.asked_layout();  // another layout may be a copy
    if (!arguments_[i].isTensor() || !arguments_[i].toTensor().defined()) continue;
    is_one = is_one || session_.meta_value(arguments_[i].toTensor()).is_same(values_[0].toTensor());
  }
  return is_one;
}

// Where gradients are off, an operator is given what takes no part in them. It writes the same memory, so that what it
// was given stays what it is, gradients included. Numbers have none, and who changes shapes in place is left alone.
bool Session::Call::needs_detaching() const {
  if (record_.changes_shape || record_.target == "aten::detach") return false;
  bool writes = false, differentiable = !known_;
  for (const OpArgument& argument : record_.arguments) writes |= argument.written;
  for (const IValue& value : values_) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      differentiable |= tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
    });
  }
  return writes || differentiable;
}

// A number of which a program has made a tensor that it marked as one (`set_wrapped_number`) is a number in the graph,
// for a tensor in it has no such mark.
std::optional<Argument> Session::Call::number(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_number(tensor)) return std::nullopt;
  const ProxyImpl* proxy = proxy_impl(tensor);
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  if (!proxy || proxy->is_constant()) return to_argument((proxy ? proxy->value() : tensor).item());
  const Node* node = proxy->open_node();  // torch::tensor(2.5)
  const Argument* made_of = node && node->target() == "aten::scalar_tensor" ? &node->arg(0) : nullptr;
  const at::ScalarType type = proxy->value().scalar_type();
  if (made_of && made_of->is_float() && type == at::kFloat)
    return Argument(static_cast<double>(static_cast<float>(made_of->as_float())));
  if (made_of && ((made_of->is_float() && type == at::kDouble) || (made_of->is_int() && type == at::kLong)))
    return *made_of;
  throw trace_error(node, "set_wrapped_number()",
                    "marks a traced tensor as a number, which a graph cannot hold; use a number");
}

Argument Session::Call::tensor(const at::Tensor& tensor) {
  Argument argument = session_.argument_for(tensor);
  if (!detaches_ || argument.is_none()) return argument;
  Argument without_grad = session_.argument_without_grad(tensor);
  if (!(without_grad == argument)) detached_.push_back(tensor.unsafeGetTensorImpl());
  return without_grad;
}

Argument Session::Call::tensor_list(const IValue& list) {
  std::vector<Argument> elements;
  for (const IValue& element : list.toListRef()) {
    elements.push_back(element.isNone() ? Argument() : tensor(element.toTensor()));
  }
  return Argument::list(elements);
}

Argument Session::Call::argument(std::size_t i) {
  const OpArgument& wanted = record_.arguments[i];
  const IValue& value = arguments_[i];
  if (value.isTensor()) {
    if (std::optional<Argument> found = wanted.written ? std::nullopt : number(value.toTensor()))
      return std::move(*found);
    return tensor(value.toTensor());
  }
  if (value.isNone()) return {};
  if (wanted.kind == OperandKind::tensor_list) return tensor_list(value);
  if (wanted.kind == OperandKind::generator) {
    throw trace_error(first_node(), call_name(record_.target),
                      "is given a random generator, which a graph cannot hold; use torch::manual_seed instead");
  }
  std::optional<Argument> argument = to_argument(value, wanted.type);
  if (!argument) {
    throw Error(ErrorKind::unsupported, call_name(record_.target) + ": its argument `" + wanted.name.str() + "` is a " +
                                            value.tagKind() + ", which a graph cannot hold");
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

// `where(condition)`, `nonzero_numpy`: one list of indices for each dimension.
std::optional<std::size_t> Session::Call::length_is_rank() {
  static const Symbol kWhere("aten::where"), kNonzero("aten::nonzero_numpy");
  if ((record_.target != kWhere && record_.target != kNonzero) || record_.arguments.size() != 1) return std::nullopt;
  const at::Tensor& value = session_.meta_value(arguments_[0].toTensor());
  if (!value.defined()) return std::nullopt;
  return static_cast<std::size_t>(std::max<std::int64_t>(value.dim(), 1));
}

// Of little `chunk` makes fewer parts than it is asked for, and how much there is nobody has said.
void Session::Call::assert_length(Node& node, std::size_t length) {
  static const Symbol kChunk("aten::chunk"), kUnsafeChunk("aten::unsafe_chunk");
  if (record_.target != kChunk && record_.target != kUnsafeChunk) return;
  const auto wanted = static_cast<std::int64_t>(length);
  Node& found = session_.create_node(Op::call_function, python::kLength, {Argument(node)});
  const std::string message = "%" + node.name() + " must be of " + std::to_string(wanted) +
                              " parts, as many as it was asked for: trace with examples of the sizes that you need";
  session_.assertions().add(SizeRelation::equal, found, wanted, message);
}

IValue Session::Call::list_result(Node& node, const IValue* value) {
  std::size_t length = 0;
  if (value) {
    length = value->toListRef().size();
    session_.asked(first_node());  // chunk(2) of one row is one tensor
  } else if (const auto count = result_list_length(record_, arguments_)) {
    length = *count;
    assert_length(node, length);
  } else if (const auto rank = length_is_rank()) {
    length = *rank;
  } else {
    throw unknown_shape(first_node(), call_name(record_.target));
  }
  if (session_.follower_) session_.follower_->returns_list(length);
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
    // What was written is another handle on its memory: the tensor itself goes on as it is.
    const c10::TensorImpl* impl = written.toTensor().unsafeGetTensorImpl();
    if (std::find(detached_.begin(), detached_.end(), impl) != detached_.end()) return written;
    if (known_) session_.reshape(written.toTensor(), values_[i].toTensor());
    session_.rebind(written.toTensor(), node);
    return written;
  }
  const IValue* value = known_ ? &values_[i] : nullptr;
  switch (wanted.kind) {
    case OperandKind::tensor: return tensor_result(node, value);
    case OperandKind::tensor_list: return list_result(node, value);
    default:
      if (!value) throw unknown_shape(first_node(), call_name(record_.target));
      return *value;
  }
}

// ── Errors that wait
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// What comes of it is thrown away: something of the right kind, of a shape that may be.
void Session::Call::fake_input() {
  constexpr std::size_t kMany = 64;  // the program may take them by number
  at::Tensor shape;
  for (std::size_t i = 0; i < record_.arguments.size() && !shape.defined(); ++i) {
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && !shape.defined()) shape = session_.meta_value(tensor);
    });
  }
  const auto tensor = [&] { return session_.make_proxy(*session_.latest_, shape, c10::Device(c10::kCPU)); };
  std::vector<IValue> results;
  for (const OpResult& result : record_.results) {
    if (result.written_argument >= 0) {
      results.push_back(arguments_[result.written_argument]);
    } else if (result.kind == OperandKind::tensor) {
      results.emplace_back(tensor());
    } else if (result.kind == OperandKind::tensor_list) {
      results.emplace_back(c10::List<at::Tensor>(std::vector<at::Tensor>(kMany, tensor())));
    } else {
      results.push_back(op_.schema().returns()[results.size()].type()->kind() == c10::TypeKind::BoolType ? IValue(false)
                        : op_.schema().returns()[results.size()].type()->kind() == c10::TypeKind::IntType
                            ? IValue(0)
                            : IValue(0.0));
    }
  }
  finish(std::move(results));
}

}  // namespace fx::internal
