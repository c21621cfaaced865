// wrap: a function of your own that traces keep as one call, FX's wrap.
//
//   const auto attend = fx::wrap("my::attend", [](const torch::Tensor& q, const torch::Tensor& k, double scale) {
//     return torch::softmax(q.matmul(k.t()) * scale, -1);
//   });
//   attend(q, k, 0.5);                   // calls the function; in a trace: one call_function[target=my::attend]
//
// The function becomes an operator of LibTorch, for as long as the program runs: a GraphModule runs it, text names it,
// another trace keeps it, TorchScript calls it, gradients flow through it. In a trace it is recorded also when no
// argument is a proxy, as factories are. Its parameters and results are what operators have: tensors, double, int64_t,
// bool, std::string, optionals, lists and tuples of such.
//
// A name alone says that the function writes none of its arguments; its results may be arguments, or views of them. A
// function that writes, or whose results are always fresh, is declared as LibTorch declares
// operators: fx::wrap("my::scale_(Tensor(a!) x, float by) -> Tensor(a!)", f). Thread-safety: may be called from any
// thread, as may what it returns.
#pragma once

#include <torch/library.h>

#include <string_view>
#include <utility>

namespace fx {

namespace internal {

/// Registers the function and returns its operator.
c10::OperatorHandle define(std::string_view name_or_declaration, torch::CppFunction function);

}  // namespace internal

/// What fx::wrap returns: calls the operator.
template <typename Signature>
class Wrapped;
/// A callable that traces keep as one call, made by wrap().
template <typename Result, typename... Parameters>
class Wrapped<Result(Parameters...)> {
 public:
  /// Calls `op`, which wrap() has registered.
  explicit Wrapped(c10::TypedOperatorHandle<Result(Parameters...)> op) : op_(std::move(op)) {}
  /// Calls the operator; throws what the function throws.
  Result operator()(Parameters... arguments) const { return op_.call(std::forward<Parameters>(arguments)...); }

 private:
  c10::TypedOperatorHandle<Result(Parameters...)> op_;
};

/// Registers `function` under `name` (`my::attend`; without a namespace `fxgraph::` is put before it) or declaration
/// and returns the callable that traces record. Throws Error(invalid_argument) when the name is taken, or when the
/// declaration is not one or does not fit the function.
template <typename Function>
auto wrap(std::string_view name, Function&& function) {
  using Signature = typename c10::guts::infer_function_traits_t<std::decay_t<Function>>::func_type;
  return Wrapped<Signature>(
      internal::define(name, torch::CppFunction(std::forward<Function>(function))).template typed<Signature>());
}

}  // namespace fx
