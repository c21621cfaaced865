// What a program was handed by reference, and whether it has put something else there.
//
// `void forward(Tensor x, std::vector<Tensor>& past)` that assigns to `past[0]` changes what its caller holds. A graph
// has no such place: it would compute nothing of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <fxgraph/trace/outputs.h>

namespace fx::internal {

/// The parts of a value: tensors by who they are, all else by what it is.
struct HandedOver {
  std::vector<at::Tensor> tensors;
  std::string rest;

  bool is_same(const HandedOver& other) const;
  void add(const at::Tensor& tensor) { tensors.push_back(tensor); }
  void add(const c10::IValue& value);
  void add(const std::string& text) { rest += text + ";"; }

  template <typename Type>
  void add_all(const Type& value) {
    if constexpr (std::is_same_v<Type, at::Tensor> || std::is_same_v<Type, c10::IValue> ||
                  std::is_same_v<Type, std::string>) {
      add(value);
    } else if constexpr (kIsTorchContainer<Type>) {
      add(c10::IValue(value));
    } else if constexpr (IsOptional<Type>::value) {
      add(std::string(value ? "some" : "none"));
      if (value) add_all(*value);
    } else if constexpr (std::is_arithmetic_v<Type>) {
      add(std::to_string(value));
    } else if constexpr (StringMap<Type>) {
      for (const auto& [key, element] : value) {
        add(key);
        add_all(element);
      }
    } else if constexpr (Iterable<Type>) {
      for (const auto& element : value) add_all<std::decay_t<decltype(element)>>(element);
    } else if constexpr (TupleLike<Type>) {
      std::apply([this](const auto&... elements) { (this->add_all(elements), ...); }, value);
    } else if constexpr (Struct<Type>) {
      add_all(fields_of(value));
    }
  }
};

/// Throws Error(trace): parameter `index` holds something else now.
[[noreturn]] void refuse_assigned_reference(std::size_t index);

template <typename Type>
inline constexpr bool kIsPlace = std::is_lvalue_reference_v<Type> && !std::is_const_v<std::remove_reference_t<Type>>;

/// Calls `call`, which hands `values` over as parameters of `Types`, and refuses what it assigns to them. A tensor
/// alone is often taken by reference only to use its variable again: it is refused where nothing is returned.
template <typename... Types, typename Values, typename Call>
Argument call_and_watch(const Values& values, const Call& call) {
  const auto parts = [&] {
    std::vector<HandedOver> all(sizeof...(Types));
    std::size_t index = 0;
    std::apply([&](const auto&... value) { ((kIsPlace<Types> ? all[index].add_all(value) : void(), ++index), ...); },
               values);
    return all;
  };
  if constexpr ((kIsPlace<Types> || ...)) {
    const std::vector<HandedOver> before = parts();
    Argument result = call();
    const std::vector<HandedOver> after = parts();
    const std::array<bool, sizeof...(Types)> is_tensor = {std::is_same_v<std::decay_t<Types>, at::Tensor>...};
    for (std::size_t i = 0; i < before.size(); ++i) {
      if ((!is_tensor[i] || result.is_none()) && !before[i].is_same(after[i])) refuse_assigned_reference(i);
    }
    return result;
  } else {
    return call();
  }
}

}  // namespace fx::internal
