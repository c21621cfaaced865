// Outputs: how what a traced program returns becomes the argument of the output node.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/trace/inputs.h>

namespace fx::internal {

class Session;

Argument tensor_to_argument(Session& session, const at::Tensor& tensor);
/// Tensors, numbers, strings and lists, tuples and dicts of such.
Argument ivalue_to_argument(Session& session, const c10::IValue& value);

template <typename Type>
Argument value_to_argument(Session& session, const Type& value);

template <typename Type>
Argument map_to_argument(Session& session, const Type& map) {
  // Sorted by key, so that the order of a hash table does not show.
  std::vector<std::pair<std::string, Argument>> items;
  for (const auto& [key, value] : map) items.emplace_back(key, value_to_argument(session, value));
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Argument> pairs;
  for (const auto& [key, value] : items) {
    pairs.push_back(Argument(key));
    pairs.push_back(value);
  }
  return Argument::dict(pairs);
}

template <typename Type>
inline constexpr bool kIsTorchContainer = kIsTorchDict<Type>;
template <typename Element>
inline constexpr bool kIsTorchContainer<c10::List<Element>> = true;

template <typename Type>
Argument value_to_argument(Session& session, const Type& value) {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return tensor_to_argument(session, value);
  } else if constexpr (std::is_same_v<Type, c10::IValue>) {
    return ivalue_to_argument(session, value);
  } else if constexpr (kIsTorchContainer<Type>) {
    return ivalue_to_argument(session, value);
  } else if constexpr (IsOptional<Type>::value) {
    return value ? value_to_argument(session, *value) : Argument();
  } else if constexpr (std::is_arithmetic_v<Type> || std::is_same_v<Type, std::string>) {
    return Argument(value);
  } else if constexpr (StringMap<Type>) {
    return map_to_argument(session, value);
  } else if constexpr (Iterable<Type>) {
    std::vector<Argument> elements;
    for (const auto& element : value)
      elements.push_back(value_to_argument<std::decay_t<decltype(element)>>(session, element));
    return Argument::list(elements);
  } else if constexpr (TupleLike<Type>) {
    return std::apply(
        [&](const auto&... elements) {
          return Argument::tuple(std::vector<Argument>{value_to_argument(session, elements)...});
        },
        value);
  } else if constexpr (Struct<Type>) {
    return value_to_argument(session, fields_of(value));
  } else if constexpr (requires { value.output, value.loss; }) {  // torch::nn::ASMoutput
    return Argument::tuple({value_to_argument(session, value.output), value_to_argument(session, value.loss)});
  } else {
    static_assert(kUnsupported<Type>, "a traced function returns tensors, numbers, strings, or containers of such");
  }
}

}  // namespace fx::internal
