#include <fxgraph/trace/dispatch.h>

#include <ATen/core/VariableHooksInterface.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/library.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/run/stay_loaded.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

thread_local Session* current_session = nullptr;
thread_local std::uint64_t operators = 0;

// The session of the first proxy among the arguments, or null.
Session* session_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const ProxyImpl* proxy = proxy_impl(value.toTensor());
    return proxy ? proxy->session().get() : nullptr;
  }
  if (!value.isList()) return nullptr;
  for (const c10::IValue& element : value.toListRef()) {
    if (Session* session = session_of(element)) return session;
  }
  return nullptr;
}

Session* session_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (Session* session = session_of(stack[i])) return session;
  }
  return nullptr;
}

// Runs for every operator on a proxy, and for every operator at all in a thread that traces.
void trace_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Session* session = current_session ? current_session : session_of(op, *stack);
  c10::impl::ExcludeDispatchKeyGuard below(kTraceKeys);
  if (!session) return op.callBoxed(stack);  // a helper thread that inherited the mode
  ++operators;
  session->record(op, *stack);
}

// ── Questions for gradients ──────────────────────────────────────────────────────────────────────────────────────────

// Has LibTorch ask the tracer before it answers grad_fn() and is_leaf() of a traced tensor: they are refused where the
// answer may be another one in another run, as requires_grad() is. So is what autograd notes of views and writes.
// LibTorch's hooks grow from version to version and their types change: what passes questions on has the types that the
// interface has, and whole parts that it may lack.
using at::TensorBase;
using Hooks = at::impl::VariableHooksInterface;

class PassingHooks : public Hooks {
 public:
  explicit PassingHooks(Hooks& others) : others_(others) {}

  TensorBase tensor_data(const TensorBase& tensor) const override { return others_.tensor_data(tensor); }
  TensorBase variable_data(const TensorBase& tensor) const override { return others_.variable_data(tensor); }
  unsigned _register_hook(const TensorBase& tensor, std::function<TensorBase(const TensorBase&)> hook) const override {
    return others_._register_hook(tensor, std::move(hook));
  }
  void remove_hook(const TensorBase& tensor, unsigned at) const override { others_.remove_hook(tensor, at); }
  bool is_view(const TensorBase& tensor) const override { return others_.is_view(tensor); }
  const TensorBase& base(const TensorBase& tensor) const override { return others_.base(tensor); }
  const std::string& name(const TensorBase& tensor) const override { return others_.name(tensor); }
  std::int64_t output_nr(const TensorBase& tensor) const override { return others_.output_nr(tensor); }
  void set_data(const TensorBase& tensor, const TensorBase& data) const override { others_.set_data(tensor, data); }
  TensorBase data(const TensorBase& tensor) const override { return others_.data(tensor); }
  std::int64_t _version(const TensorBase& tensor) const override { return others_._version(tensor); }
  void retain_grad(const TensorBase& tensor) const override { others_.retain_grad(tensor); }
  bool retains_grad(const TensorBase& tensor) const override { return others_.retains_grad(tensor); }

 protected:
  Hooks& others_;
};

// The optionals are c10's or the standard's.
template <typename Function>
class PassingBackward;

template <typename... Arguments>
class PassingBackward<void (Hooks::*)(Arguments...) const> : public PassingHooks {
 public:
  using PassingHooks::PassingHooks;
  void _backward(Arguments... arguments) const override { others_._backward(arguments...); }
};

// Since 2.1.
template <typename Base>
class PassingFallback : public Base {
 public:
  using Base::Base;
};

template <typename Base>
requires requires { &Base::basic_autograd_not_implemented_fallback; }
class PassingFallback<Base> : public Base {
 public:
  using Base::Base;
  void basic_autograd_not_implemented_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                               torch::jit::Stack* stack) const override {
    this->others_.basic_autograd_not_implemented_fallback(op, keys, stack);
  }
};

// Since 2.10.
template <typename Base>
class PassingTypes : public Base {
 public:
  using Base::Base;
};

template <typename Base>
requires requires { &Base::set_grad_dtype; }
class PassingTypes<Base> : public Base {
 public:
  using Base::Base;
  std::optional<c10::ScalarType> grad_dtype(const TensorBase& tensor) const override {
    return this->others_.grad_dtype(tensor);
  }
  void set_grad_dtype(const TensorBase& tensor, const std::optional<c10::ScalarType>& type) const override {
    this->others_.set_grad_dtype(tensor, type);
  }
};

class GradientHooks : public PassingTypes<PassingFallback<PassingBackward<decltype(&Hooks::_backward)>>> {
 public:
  using PassingTypes::PassingTypes;

  decltype(std::declval<const Hooks&>().grad_fn(std::declval<const TensorBase&>())) grad_fn(
      const TensorBase& tensor) const override {
    ask(tensor);
    return others_.grad_fn(tensor);
  }
  // Two that share a count of writes: a trace has one of each value.
  TensorBase tensor_data(const TensorBase& tensor) const override {
    return traced(tensor) ? others_.variable_data(tensor) : others_.tensor_data(tensor);
  }
  bool is_leaf(const TensorBase& tensor) const override {
    ask(tensor);
    return others_.is_leaf(tensor);
  }
  bool is_view(const TensorBase& tensor) const override {
    ask_history(tensor, "is_view()");
    return others_.is_view(tensor);
  }
  const TensorBase& base(const TensorBase& tensor) const override {
    ask_history(tensor, "_base()");
    return others_.base(tensor);
  }
  std::int64_t output_nr(const TensorBase& tensor) const override {
    ask_history(tensor, "output_nr()");
    return others_.output_nr(tensor);
  }
  std::int64_t _version(const TensorBase& tensor) const override {
    ask_history(tensor, "_version()");
    return others_._version(tensor);
  }
  // LibTorch's asks whether it is a leaf.
  void requires_grad_(const TensorBase& tensor, bool required) const override {
    if (!proxy_of(tensor)) return others_.requires_grad_(tensor, required);
    tensor.set_requires_grad(required);
  }

 private:
  static const ProxyImpl* proxy_of(const TensorBase& tensor) {
    if (!tensor.defined() || !tensor.key_set().has(kProxyKey)) return nullptr;
    return dynamic_cast<const ProxyImpl*>(tensor.unsafeGetTensorImpl());
  }
  // A traced value, while its trace goes on.
  static const ProxyImpl* traced(const TensorBase& tensor) {
    const ProxyImpl* proxy = proxy_of(tensor);
    return proxy && proxy->session() && proxy->session()->is_open() && proxy->node() ? proxy : nullptr;
  }
  static void ask(const TensorBase& tensor) {
    if (const ProxyImpl* proxy = traced(tensor)) proxy->session()->requires_grad(*proxy);
  }
  static void ask_history(const TensorBase& tensor, const char* call) {
    if (const ProxyImpl* proxy = traced(tensor)) proxy->session()->asked_history(*proxy, call);
  }
};

void install_gradient_hooks() {
  // Never taken back, as the tracer's kernels are not.
  static const auto* const hooks = [] {
    auto* made = new GradientHooks(*at::impl::GetVariableHooks());
    at::impl::SetVariableHooks(made);
    return made;
  }();
  (void)hooks;
}

}  // namespace

void install_dispatch() {
  // Never taken back: LibTorch's dispatcher may be gone when static objects of the program end.
  static const auto* const libraries = [] {
    auto result = std::make_unique<std::vector<torch::Library>>();
    try {
      for (const c10::DispatchKey key : {kProxyKey, kModeKey}) {
        result->emplace_back(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
        result->back().fallback(torch::CppFunction::makeFromBoxedFunction<&trace_operator>());
      }
    } catch (const c10::Error&) {
      throw Error(
          ErrorKind::trace,
          "tracing: another copy of fxgraph traces in this process already, and LibTorch has room for one; link "
          "the shared library (fxgraph::shared) wherever the process uses fxgraph, so that there is one copy");
    }
    stay_loaded();
    return result.release();
  }();
  (void)libraries;
  install_gradient_hooks();
}

std::uint64_t traced_operators() { return operators; }

// TorchScript notes the sizes and gradients that it meets, and from the second call on runs what fits these.
RecordingScope::RecordingScope(Session& session)
    : outer_(current_session), outer_optimizes_(torch::jit::getGraphExecutorOptimize()), mode_(kModeKey) {
  current_session = &session;
  torch::jit::setGraphExecutorOptimize(false);
}

RecordingScope::~RecordingScope() {
  current_session = outer_;
  torch::jit::setGraphExecutorOptimize(outer_optimizes_);
}

std::string RecordingScope::what_was_refused() { return current_session ? current_session->refused() : std::string(); }

bool RecordingScope::has_examples() { return current_session && current_session->has_inputs(); }

void RecordingScope::refused(const std::string& message) {
  if (current_session) current_session->note_refused(message);
}

}  // namespace fx::internal
