// How one operator call becomes a node: constants, shapes, arguments, node, results, in that order, so that a call that
// cannot be recorded throws before the graph changes.
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/known_values.h>
#include <fxgraph/trace/recorded_call.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

using c10::IValue;
using torch::jit::Stack;

// torch::tensor({1, 2}) makes its result with `empty` below autograd, but above ADInplaceOrView; no other code does.
bool inside_tensor_literal() {
  const c10::DispatchKeySet excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  return excluded.has(c10::DispatchKey::AutogradFunctionality) && !excluded.has(c10::DispatchKey::ADInplaceOrView) &&
         !c10::InferenceMode::is_enabled();
}

}  // namespace

// contiguous() asks whether its tensor is, and is an operator only when that is not so. Whoever asks and then does
// something else takes something from layouts.
void Session::settle_contiguity(const c10::OperatorHandle& op, const Stack& stack) {
  static const std::string kContiguous = "aten::contiguous";
  if (!contiguity_asked_of_) return;
  const Node* const asked = std::exchange(contiguity_asked_of_, nullptr);
  const bool is_contiguous = op.operator_name().name == kContiguous;
  const ProxyImpl* self = is_contiguous ? proxy_impl(stack[stack.size() - 2].toTensor()) : nullptr;
  if (!self || self->node() != asked || contiguity_questions_ > 1) takes_layout_ = true;  // one is contiguous()'s own
}

bool Session::asks_contiguity(const Node* node) {
  if (!records_contiguous_) asks_layout_ = true;
  if (!records_contiguous_ || !is_open()) return false;
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (contiguity_asked_of_ && contiguity_asked_of_ != node) takes_layout_ = true;
  contiguity_questions_ = contiguity_asked_of_ == node ? contiguity_questions_ + 1 : 1;
  contiguity_asked_of_ = node;
  return true;
}

void Session::record(const c10::OperatorHandle& op, Stack& stack) {
  if (!is_open())
    throw trace_error(nullptr, "used here", "was made by a trace that has ended; return it from that trace");
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  has_other_threads_ = has_other_threads_ || std::this_thread::get_id() != thread_;
  const auto record_now = [&] {
    settle_contiguity(op, stack);
    Call(*this, op, stack).record();
    modes_.leave();
  };
  if (!has_other_threads_) return record_now();
  // What is thrown in a thread of the program's ends the process, and so does what is thrown past a thread that runs.
  if (!waiting_) {
    try {
      return record_now();
    } catch (...) {
      waiting_ = std::current_exception();
    }
  }
  if (!latest_) throw_what_waits();
  Call(*this, op, stack).fake_input();
}

void Session::throw_what_waits() {
  if (waiting_) std::rethrow_exception(std::exchange(waiting_, nullptr));
}

void Session::Call::record() {
  if (on_constants()) return run_on_constants();
  without_grad_ = session_.modes_.enter(record_.takes_values);
  if (record_without_outs()) return;
  if (!record_.all_results_are_tensors && record_.results.size() == 1) return answer_without_node();
  const bool compound = record_.results.size() != 1 || record_.results[0].kind == OperandKind::tensor_list;
  known_ = compute();
  find_device();
  const bool has_no_grad = without_grad_ && !gives_an_argument();
  detaches_ = has_no_grad && needs_detaching();
  Node& node = make_node();
  if (has_no_grad) session_.mark_without_grad(node);
  if (known_ && compound) session_.remember_parts(node, values_, *device_);
  std::vector<IValue> results;
  for (std::size_t i = 0; i < record_.results.size(); ++i) {
    const bool several = record_.results.size() > 1;
    results.push_back(result(i, several ? session_.getitem(node, static_cast<std::int64_t>(i)) : node));
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
      (proxy && proxy->is_under_construction() ? any : ordinary) = true;
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
  finish(
      {at::Tensor(c10::make_intrusive<ProxyImpl>(session_.shared_from_this(), result, /*under_construction=*/true))});
}

// ── Shapes
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

IValue Session::Call::shape_of(const IValue& value, bool& known) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return value;
    if (ProxyImpl* proxy = proxy_impl(tensor); proxy && proxy->is_constant()) {
      const at::Tensor shape = to_meta(proxy->value());
      if (is_number(tensor)) shape.unsafeGetTensorImpl()->set_wrapped_number(true);
      return shape;
    }
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
  bool known = !depends_on_data(record_, arguments_);
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
    // It is not to change what earlier nodes looked like.
    if (known && record_.arguments[i].written && values_.back().isTensor())
      values_.back() = own_shape(values_.back().toTensor());
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
    if (!session_.engine_->run(op_, record_, values_)) {
      values_.clear();
      return false;
    }
  } catch (const c10::Error& error) {
    if (session_.follower_) session_.follower_->refused(error);
    const Node* node = first_node();
    if (!record_.all_results_are_tensors && record_.results.size() == 1) {
      asks_for_data_ = true;
      return false;
    }
    throw trace_error(node, call_name(record_.target), "cannot run on these shapes: " + first_line(error));
  } catch (const std::exception& error) {  // as views that do not fit
    if (session_.follower_) session_.follower_->refused(error);
    throw;
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

// Questions that return numbers (`result_type`, `size`) are answered from the shape and leave no node.
void Session::Call::answer_without_node() {
  if (const std::optional<bool> equal = equality()) return finish({*equal});
  if (compute()) {
    if (record_.target.view().find("stride") != std::string_view::npos) session_.asked_layout();
    // The type of a result depends on whether there are dimensions, and so may other answers.
    static const Symbol kSize("aten::size.int"), kCount("aten::numel");
    const bool is_of_one_size = record_.target == kCount || (record_.target == kSize && arguments_[1].toInt() >= 0);
    for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
      for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
        const ProxyImpl* proxy = proxy_impl(tensor);
        if (!proxy) return;
        session_.asked(proxy->node());
        if (!is_of_one_size) session_.note_rank_query(proxy->node());
      });
    }
    return finish({values_.back()});
  }
  if (const std::optional<IValue> value = known_number()) return finish({*value});
  const std::string call = call_name(record_.target);
  const bool is_item = call == "item()" || call == "_local_scalar_dense()";
  if (is_item && caller_checks_offsets()) return finish({c10::Scalar(0)});
  if (asks_for_data_ || is_item || call == "is_nonzero()" || call == "equal()" || call == "allclose()")
    throw no_data(first_node(), call);
  throw unknown_shape(first_node(), call);
}

// A number that no input decides is known; one that a parameter decides is asserted, as literals are.
std::optional<IValue> Session::Call::known_number() {
  if (record_.draws_random_numbers) return std::nullopt;
  std::vector<const Node*> nodes;
  std::vector<std::size_t> places;
  Stack values;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    const ProxyImpl* proxy = arguments_[i].isTensor() ? proxy_impl(arguments_[i].toTensor()) : nullptr;
    values.push_back(proxy && proxy->is_constant() ? IValue(proxy->value()) : arguments_[i]);
    if (values.back().isTensorList()) return std::nullopt;
    if (!arguments_[i].isTensor() || (proxy && proxy->is_constant())) continue;
    const Node* node = session_.argument_for(arguments_[i].toTensor()).node_or_null();
    if (!node) return std::nullopt;
    nodes.push_back(node);
    places.push_back(i);
  }
  const std::optional<KnownValues> known = known_values(session_, nodes);
  if (!known) return std::nullopt;
  for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = known->values[i];
  op_.callBoxed(&values);
  const IValue value = values.back();
  if (!known->of_attribute && !known->of_kept) return value;
  const std::optional<Argument> number = to_argument(value);
  if (!number || (number->is_float() && std::isnan(number->as_float()))) return std::nullopt;
  std::vector<Argument> args;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) args.push_back(argument(i));
  Node& question = session_.create_node(Op::call_function, record_.target, args);
  const std::string message =
      call_name(record_.target) +
      (known->of_attribute ? " of a parameter or buffer was " : " of a tensor that the program keeps was ") +
      to_string(*number) + " when this was traced, and the graph holds for that value only";
  session_.assertions().add(SizeRelation::equal, question, *number, message);
  return value;
}

// The device that the result would have: the one asked for, else that of the first tensor with dimensions, else of any.
void Session::Call::find_device() {
  if (!known_) return;
  std::optional<c10::Device> of_number;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (record_.arguments[i].kind == OperandKind::device && arguments_[i].isDevice()) {
      device_ = arguments_[i].toDevice();
      return;
    }
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      const ProxyImpl* proxy = proxy_impl(tensor);  // which takes questions for the program's
      const bool is_number = (proxy && proxy->value().defined() ? proxy->value() : tensor).dim() == 0;
      std::optional<c10::Device>& place = is_number ? of_number : device_;
      if (!place) place = tensor.device();
    });
  }
  if (!device_) device_ = of_number ? *of_number : c10::Device(c10::kCPU);
}

}  // namespace fx::internal
