// Calling a C++ module's forward with values from a stack. Included from nn/nn_modules.h.
#pragma once

#include <ATen/core/stack.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/codegen/code.h>
#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

/// The parameter of type T from a value; None is no tensor, or nothing.
template <typename T>
T take(torch::jit::Stack& values, std::size_t i) {
  if constexpr (std::is_same_v<T, torch::Tensor>) {
    return values[i].isNone() ? torch::Tensor() : values[i].toTensor();
  } else if constexpr (std::is_same_v<T, TorchOptional<torch::IntArrayRef>>) {
    if (values[i].isNone()) return T();
    thread_local std::vector<std::int64_t> numbers;  // an ArrayRef owns nothing; forward reads it before the next call
    numbers = values[i].toIntVector();
    return T(numbers);
  } else {
    return values[i].to<T>();
  }
}

/// Whether forward can be called with its first parameters; the compiler knows the defaults of the others.
template <typename Impl, typename Parameters, std::size_t... i>
constexpr bool forward_takes(std::index_sequence<i...>) {
  return requires(Impl & module) { module.forward(std::declval<std::tuple_element_t<i, Parameters>>()...); };
}

template <typename T, typename Value>
decltype(auto) hand_over(Value& value) {
  if constexpr (std::is_lvalue_reference_v<T>) {
    return static_cast<T>(value);
  } else {
    return std::move(value);
  }
}

template <typename Impl, typename Parameters, std::size_t... i>
void call_first(Impl& module, torch::jit::Stack& stack, std::index_sequence<i...>) {
  [[maybe_unused]] std::tuple<std::decay_t<std::tuple_element_t<i, Parameters>>...> values{
      take<std::decay_t<std::tuple_element_t<i, Parameters>>>(stack, i)...};
  auto result = module.forward(hand_over<std::tuple_element_t<i, Parameters>>(std::get<i>(values))...);
  stack.clear();
  stack.emplace_back(std::move(result));
}

/// Calls forward with as many of its first parameters as there are values.
template <typename Impl, typename Parameters, std::size_t count>
void call_counted(Impl& module, torch::jit::Stack& stack) {
  if constexpr (forward_takes<Impl, Parameters>(std::make_index_sequence<count>())) {
    if (stack.size() == count) return call_first<Impl, Parameters>(module, stack, std::make_index_sequence<count>());
  }
  if constexpr (count > 0) return call_counted<Impl, Parameters, count - 1>(module, stack);
  throw Error(ErrorKind::execution, "too few arguments for the module's forward");
}

template <typename Impl, typename... Parameters>
void call_member(Impl& module, torch::jit::Stack& stack) {
  if (stack.size() > sizeof...(Parameters))
    throw Error(ErrorKind::execution, "too many arguments for the module's forward");
  call_counted<Impl, std::tuple<Parameters...>, sizeof...(Parameters)>(module, stack);
}

// forward may come from a base class of Impl, and may be const.
template <typename Forward>
struct ForwardOf;
template <typename Class, typename Answer, typename... Parameters>
struct ForwardOf<Answer (Class::*)(Parameters...)> {
  using Result = Answer;
  template <typename Impl>
  static void call(Impl& module, torch::jit::Stack& stack) {
    call_member<Impl, Parameters...>(module, stack);
  }
};
template <typename Class, typename Answer, typename... Parameters>
struct ForwardOf<Answer (Class::*)(Parameters...) const> : ForwardOf<Answer (Class::*)(Parameters...)> {};
template <typename Class, typename Answer, typename... Parameters>
struct ForwardOf<Answer (Class::*)(Parameters...) noexcept> : ForwardOf<Answer (Class::*)(Parameters...)> {};
template <typename Class, typename Answer, typename... Parameters>
struct ForwardOf<Answer (Class::*)(Parameters...) const noexcept> : ForwardOf<Answer (Class::*)(Parameters...)> {};

template <typename T>
CodeModule::Result result_of(const T*) {
  return {};
}
template <typename... Parts>
CodeModule::Result result_of(const std::tuple<Parts...>*) {
  return {{result_of(static_cast<const Parts*>(nullptr))...}};
}

/// What forward returns, by its type.
template <typename Impl>
CodeModule::Result result_of_forward() {
  using Result = std::decay_t<typename ForwardOf<decltype(&Impl::forward)>::Result>;
  return result_of(static_cast<const Result*>(nullptr));
}

template <typename Impl>
void call_forward(torch::nn::Module& module, torch::jit::Stack& stack) {
  ForwardOf<decltype(&Impl::forward)>::call(dynamic_cast<Impl&>(module), stack);
}

}  // namespace fx::internal
