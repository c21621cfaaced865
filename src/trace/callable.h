// Callable: any C++ function or module, as something that the tracer can call on proxies.
//
// The parameters of a function say how its inputs enter the graph:
//   Tensor                       a placeholder
//   std::optional, c10::optional the same, or absent
//   double, int, bool, string    a literal: the example's value, or a hole of a pattern
//   vector, array, tuple, pair, c10::List, TensorList   one placeholder, its elements taken by getitem
//   map<string, …>, unordered_map, c10::Dict            the same by key
// and what it returns becomes the output: a Tensor, number, string, or any nesting of the above.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/inputs.h>
#include <fxgraph/trace/outputs.h>

namespace fx::internal {

struct Callable {
  std::shared_ptr<torch::nn::Module> root;
  /// What each parameter is, in order.
  std::vector<Parameter> parameters;
  /// Binds inputs, calls the program and returns its result as an argument.
  std::function<Argument(Inputs&)> run;
};

/// Runs the program; what LibTorch refuses before a proxy can is an Error(trace), too.
Argument run(const Callable& callable, Inputs& inputs);

// ── The parameter types of a function
// ──────────────────────────────────────────────────────────────────────────────────

template <typename... Types>
struct TypeList {};

template <typename Function>
struct SignatureOf;
template <typename Result, typename... Types>
struct SignatureOf<Result (*)(Types...)> {
  using type = TypeList<Types...>;
};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...)> {
  using type = TypeList<Types...>;
};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) const> {
  using type = TypeList<Types...>;
};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) noexcept> {
  using type = TypeList<Types...>;
};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) const noexcept> {
  using type = TypeList<Types...>;
};

template <std::size_t>
using TensorAt = torch::Tensor;

// `[](auto x)` takes as few tensors as it can be called with.
template <typename Function, std::size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...>) {
  return std::is_invocable_v<Function&, TensorAt<I>...>;
}
template <std::size_t... I>
TypeList<TensorAt<I>...> tensors(std::index_sequence<I...>);

template <typename Function, std::size_t Count = 0>
auto generic_signature() {
  static_assert(Count <= 16, "a traced function takes tensors, numbers or containers of them");
  if constexpr (takes_tensors<Function>(std::make_index_sequence<Count>())) {
    return decltype(tensors(std::make_index_sequence<Count>()))();
  } else if constexpr (Count <= 16) {  // or the compiler would go on for ever
    return generic_signature<Function, Count + 1>();
  }
}

template <typename Function>
auto signature() {
  if constexpr (std::is_pointer_v<Function>) {
    return typename SignatureOf<Function>::type();
  } else if constexpr (requires { &Function::operator(); }) {
    return typename SignatureOf<decltype(&Function::operator())>::type();
  } else {
    return generic_signature<Function>();
  }
}

template <typename... Types>
std::vector<Parameter> describe_parameters(TypeList<Types...>) {
  return {describe_parameter<std::decay_t<Types>>()...};
}

// ── Calling
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

template <typename Function, typename... Args>
Argument call_and_convert(Inputs& inputs, Function&& function, Args&&... args) {
  if constexpr (std::is_void_v<decltype(function(std::forward<Args>(args)...))>) {
    function(std::forward<Args>(args)...);
    return {};
  } else {
    const auto result = function(std::forward<Args>(args)...);
    return value_to_argument(inputs.session(), result);
  }
}

// Hands a bound value to a parameter of type `Type`.
template <typename Type, typename Value>
decltype(auto) pass(Value& value) {
  if constexpr (std::is_lvalue_reference_v<Type>) {
    return static_cast<Type>(value);
  } else {
    return std::move(value);
  }
}

template <typename Function, typename... Types>
std::function<Argument(Inputs&)> runner(Function function, TypeList<Types...>) {
  return [function = std::move(function)](Inputs& inputs) mutable {
    // A braced list binds in order: placeholders come in the order of the parameters.
    std::tuple<std::decay_t<Types>...> values{inputs.bind<std::decay_t<Types>>()...};
    return std::apply([&](auto&... value) { return call_and_convert(inputs, function, pass<Types>(value)...); },
                      values);
  };
}

template <typename Function>
requires(!std::is_base_of_v<torch::nn::Module, Function>) Callable callable_from_function(Function function) {
  const auto types = signature<Function>();
  return {nullptr, describe_parameters(types), runner(std::move(function), types)};
}

/// Runs the graph of `module` again, on proxies.
Callable callable_from_graph_module(std::shared_ptr<GraphModule> module);

// ── Modules
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// Reaches what FORWARD_HAS_DEFAULT_ARGS tells AnyModule.
struct ForwardDefaults : torch::nn::Module {
  static bool exist(torch::nn::Module& module) { return (module.*(&ForwardDefaults::_forward_has_default_args))(); }
  static std::size_t required(torch::nn::Module& module) {
    return (module.*(&ForwardDefaults::_forward_num_required_args))();
  }
};

template <std::size_t Count, typename... Types>
auto first_types(TypeList<Types...>) {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return TypeList<std::tuple_element_t<I, std::tuple<Types...>>...>();
  }
  (std::make_index_sequence<Count>());
}

// Calls forward with its first arguments; AnyModule supplies the defaults of the others.
template <typename Result, typename Module, typename... Types>
Argument call_with_defaults(Inputs& inputs, const std::shared_ptr<Module>& module, TypeList<Types...>) {
  std::tuple<std::decay_t<Types>...> values{inputs.bind<std::decay_t<Types>>()...};
  torch::nn::AnyModule any(module);
  torch::nn::AnyValue result = std::apply([&](auto&... value) { return any.any_forward(std::move(value)...); }, values);
  return value_to_argument(inputs.session(), result.get<Result>());
}

// `count` arguments, at most `Count`.
template <typename Result, std::size_t Count, typename Module, typename Types>
Argument call_with(std::size_t count, Inputs& inputs, const std::shared_ptr<Module>& module, Types types) {
  if constexpr (Count > 0) {
    if (count != Count) return call_with<Result, Count - 1>(count, inputs, module, types);
  }
  return call_with_defaults<Result>(inputs, module, first_types<Count>(types));
}

template <typename Module, typename Result, typename... Types>
Callable callable_from_types(std::shared_ptr<Module> module, TypeList<Types...> types) {
  const auto call = [module](auto&&... arguments) -> Result { return module->forward(pass<Types>(arguments)...); };
  return {module, describe_parameters(types), runner(call, types)};
}
template <typename Module, typename Base, typename Result, typename... Types>
Callable callable_from_forward(std::shared_ptr<Module> module, Result (Base::*)(Types...)) {
  Callable callable = callable_from_types<Module, Result>(module, TypeList<Types...>());
  if (!ForwardDefaults::exist(*module)) return callable;
  callable.run = [module, all = std::move(callable.run)](Inputs& inputs) {
    const std::size_t count = inputs.count(ForwardDefaults::required(*module));
    if (count == sizeof...(Types)) return all(inputs);
    return call_with<std::decay_t<Result>, sizeof...(Types)>(count, inputs, module, TypeList<Types...>());
  };
  return callable;
}
template <typename Module, typename Base, typename Result, typename... Types>
Callable callable_from_forward(std::shared_ptr<Module> module, Result (Base::*)(Types...) const) {
  return callable_from_types<Module, Result>(std::move(module), TypeList<Types...>());
}

template <typename Module>
Callable callable_from_module(std::shared_ptr<Module> module) {
  static_assert(!std::is_same_v<Module, torch::nn::Module>,
                "torch::nn::Module has no forward: pass the module as the type that it is");
  if constexpr (std::is_base_of_v<GraphModule, Module>) {
    return callable_from_graph_module(std::move(module));
  } else if constexpr (requires { &Module::forward; }) {
    return callable_from_forward(std::move(module), &Module::forward);
  } else {
    // forward is overloaded or a template: one tensor in, one out.
    Callable callable = callable_from_function([module](torch::Tensor x) { return module->forward(x); });
    callable.root = module;
    return callable;
  }
}

template <typename Type>
struct IsSharedPointer : std::false_type {};
template <typename Type>
struct IsSharedPointer<std::shared_ptr<Type>> : std::true_type {};

/// Anything that can be traced.
template <typename Program>
Callable make_callable(Program&& program) {
  using Type = std::decay_t<Program>;
  if constexpr (IsSharedPointer<Type>::value) {
    return callable_from_module(program);
  } else if constexpr (torch::detail::is_module_holder<Type>::value) {
    return callable_from_module(program.ptr());
  } else if constexpr (std::is_base_of_v<torch::nn::Module, Type>) {
    return callable_from_module(std::shared_ptr<Type>(program.shared_from_this(), &program));
  } else if constexpr (std::is_same_v<Type, torch::nn::AnyModule>) {
    torch::nn::AnyModule any = program;
    Callable callable = callable_from_function([any](torch::Tensor x) mutable { return any.forward(x); });
    callable.root = any.ptr();
    return callable;
  } else {
    return callable_from_function<Type>(std::forward<Program>(program));
  }
}

}  // namespace fx::internal
