// Callable: any C++ function or module, as something that the tracer can call on proxies.
//
// The parameters of a function say how its inputs enter the graph:
//   Tensor                       a placeholder
//   std::optional, c10::optional the same, or absent
//   double, int, bool, string    a literal: the example's value, or a hole of a pattern
//   vector, array, tuple, pair, c10::List, TensorList   one placeholder, its elements taken by getitem
//   map<string, …>, unordered_map, c10::Dict            the same by key
//   a struct                     one placeholder, a tuple of its members (trace/fields.h)
// and what it returns becomes the output: a Tensor, number, string, or any nesting of the above.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/pimpl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/handed_over.h>
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
  using result = Result;
};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...)> : SignatureOf<Result (*)(Types...)> {};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) const> : SignatureOf<Result (*)(Types...)> {};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) noexcept> : SignatureOf<Result (*)(Types...)> {};
template <typename Result, typename Class, typename... Types>
struct SignatureOf<Result (Class::*)(Types...) const noexcept> : SignatureOf<Result (*)(Types...)> {};

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
    return ivalue_to_argument(inputs.session(), ivalue_of(result));
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
    return call_and_watch<Types...>(values, [&] {
      return std::apply([&](auto&... value) { return call_and_convert(inputs, function, pass<Types>(value)...); },
                        values);
    });
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

// Whether forward can be called with its first parameters, the compiler supplying the defaults of the others.
template <typename Module, typename Types, std::size_t... I>
constexpr bool takes_first(std::index_sequence<I...>) {
  return requires(Module & module) { module.forward(std::declval<std::tuple_element_t<I, Types>>()...); };
}

/// A module's forward: calls it with the first of its arguments, the others taking their defaults.
template <typename Module, typename Result, typename... Types>
struct ForwardCall {
  using Tuple = std::tuple<Types...>;
  static constexpr std::size_t kCount = sizeof...(Types);

  std::shared_ptr<Module> module;

  template <std::size_t Count = 0>
  static constexpr std::size_t required() {
    if constexpr (Count == kCount || takes_first<Module, Tuple>(std::make_index_sequence<Count>())) {
      return Count;
    } else {
      return required<Count + 1>();
    }
  }

  Argument operator()(Inputs& inputs) const {
    const std::vector<Parameter> parameters = describe_parameters(TypeList<Types...>());
    return call<kCount>(inputs, std::min(inputs.count_of(parameters, required()), kCount));
  }

  template <std::size_t Count>
  Argument call(Inputs& inputs, std::size_t count) const {
    if constexpr (Count > 0) {
      if constexpr (takes_first<Module, Tuple>(std::make_index_sequence<Count - 1>())) {
        if (count < Count) return call<Count - 1>(inputs, count);
      }
    }
    return call_first(inputs, std::make_index_sequence<Count>());
  }

  template <std::size_t... I>
  Argument call_first(Inputs& inputs, std::index_sequence<I...>) const {
    // A braced list binds in order: placeholders come in the order of the parameters.
    [[maybe_unused]] std::tuple<std::decay_t<std::tuple_element_t<I, Tuple>>...> values{
        inputs.bind<std::decay_t<std::tuple_element_t<I, Tuple>>>()...};
    const auto forward = [this](auto&&... arguments) -> Result {
      return module->forward(std::forward<decltype(arguments)>(arguments)...);
    };
    return call_and_watch<std::tuple_element_t<I, Tuple>...>(values, [&] {
      return call_and_convert(inputs, forward, pass<std::tuple_element_t<I, Tuple>>(std::get<I>(values))...);
    });
  }
};

template <typename Module, typename Result, typename... Types>
Callable callable_from_types(std::shared_ptr<Module> module, TypeList<Types...> types) {
  return {module, describe_parameters(types), ForwardCall<Module, Result, Types...>{module}};
}
template <typename Module>
Callable callable_from_module(std::shared_ptr<Module> module) {
  static_assert(!std::is_same_v<Module, torch::nn::Module>,
                "torch::nn::Module has no forward: pass the module as the type that it is");
  if constexpr (std::is_base_of_v<GraphModule, Module>) {
    return callable_from_graph_module(std::move(module));
  } else if constexpr (requires { &Module::forward; }) {
    using Signature = SignatureOf<decltype(&Module::forward)>;
    return callable_from_types<Module, typename Signature::result>(std::move(module), typename Signature::type());
  } else {
    // forward is overloaded or a template: one tensor in, one out.
    Callable callable = callable_from_function([module](torch::Tensor x) { return module->forward(x); });
    callable.root = module;
    return callable;
  }
}

// A module on the stack is nobody's: the pointer owns nothing, and makes shared_from_this() work while it lives.
template <typename Module>
std::shared_ptr<Module> owner_of(Module& module) {
  if (const std::shared_ptr<torch::nn::Module> owner = module.weak_from_this().lock())
    return std::shared_ptr<Module>(owner, &module);
  return std::shared_ptr<Module>(&module, [](Module*) {});
}

template <typename Type>
struct IsSharedPointer : std::false_type {};
template <typename Type>
struct IsSharedPointer<std::shared_ptr<Type>> : std::true_type {};

/// Throws Error(trace): a null pointer, an empty holder or function.
[[noreturn]] void refuse_no_program();

/// Anything that can be traced.
template <typename Program>
Callable make_callable(Program&& program) {
  using Type = std::decay_t<Program>;
  if constexpr (std::is_pointer_v<std::remove_reference_t<Program>> || requires { program.operator bool(); }) {
    if (!program) refuse_no_program();
  }
  if constexpr (std::is_same_v<Type, Callable>) {
    return program;
  } else if constexpr (IsSharedPointer<Type>::value) {
    return callable_from_module(std::const_pointer_cast<std::remove_const_t<typename Type::element_type>>(program));
  } else if constexpr (torch::detail::is_module_holder<Type>::value) {
    return callable_from_module(program.ptr());
  } else if constexpr (std::is_base_of_v<torch::nn::Module, Type>) {
    return callable_from_module(owner_of(const_cast<Type&>(program)));  // forward may be const
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
