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

#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

/// The parameter of type T from a value; a missing one is what torch::nn's own defaults are: no tensor, nothing, true.
template <typename T>
T take(torch::jit::Stack& values, std::size_t i) {
  if (i < values.size()) {
    if constexpr (std::is_same_v<T, torch::Tensor>) {
      return values[i].isNone() ? torch::Tensor() : values[i].toTensor();
    } else if constexpr (std::is_same_v<T, TorchOptional<torch::IntArrayRef>>) {
      if (values[i].isNone()) return T();
      thread_local std::vector<std::int64_t>
          numbers;  // an ArrayRef owns nothing; forward reads it before the next call
      numbers = values[i].toIntVector();
      return T(numbers);
    } else {
      return values[i].to<T>();
    }
  }
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else {
    return T();
  }
}

template <typename Class, typename Result, typename... Parameters, std::size_t... i>
void call_with(Class& module, Result (Class::*forward)(Parameters...), torch::jit::Stack& stack,
               std::index_sequence<i...>) {
  if (stack.size() > sizeof...(Parameters))
    throw Error(ErrorKind::execution, "too many arguments for the module's forward");
  Result result = (module.*forward)(take<std::decay_t<Parameters>>(stack, i)...);
  stack.clear();
  stack.emplace_back(std::move(result));
}

// forward may come from a base class of Impl.
template <typename Impl, typename Class, typename Result, typename... Parameters>
void call_member(Impl& module, Result (Class::*forward)(Parameters...), torch::jit::Stack& stack) {
  call_with(static_cast<Class&>(module), forward, stack, std::index_sequence_for<Parameters...>());
}

template <typename Impl>
void call_forward(torch::nn::Module& module, torch::jit::Stack& stack) {
  call_member(dynamic_cast<Impl&>(module), &Impl::forward, stack);
}

}  // namespace fx::internal
