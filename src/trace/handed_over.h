// What a program was handed by reference, and whether it has put something else there.
//
// `void forward(Tensor x, std::vector<Tensor>& past)` that assigns to `past[0]` changes what its caller holds. A graph
// has no such place: it would compute nothing of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/trace/fields.h>

namespace fx::internal {

/// A value and all that it is made of, as it is now.
std::vector<c10::IValue> parts_of(const c10::IValue& value);
/// Tensors are the same by who they are, all else by what it is.
bool are_same(const std::vector<c10::IValue>& before, const std::vector<c10::IValue>& after);

/// Throws Error(trace): parameter `index` holds something else now.
[[noreturn]] void refuse_assigned_reference(std::size_t index);

template <typename Type>
inline constexpr bool kIsPlace = std::is_lvalue_reference_v<Type> && !std::is_const_v<std::remove_reference_t<Type>>;

/// Calls `call`, which hands `values` over as parameters of `Types`, and refuses what it assigns to them. A tensor
/// alone is often taken by reference only to use its variable again: it is refused where nothing is returned.
template <typename... Types, typename Values, typename Call>
Argument call_and_watch(const Values& values, const Call& call) {
  if constexpr ((kIsPlace<Types> || ...)) {
    const auto parts = [&] {
      return std::apply(
          [](const auto&... value) {
            return std::array{parts_of(kIsPlace<Types> ? ivalue_of(value) : c10::IValue())...};
          },
          values);
    };
    const std::array before = parts();
    Argument result = call();
    const std::array after = parts();
    constexpr std::array is_tensor = {std::is_same_v<std::decay_t<Types>, at::Tensor>...};
    for (std::size_t i = 0; i < before.size(); ++i) {
      if ((!is_tensor[i] || result.is_none()) && !are_same(before[i], after[i])) refuse_assigned_reference(i);
    }
    return result;
  } else {
    return call();
  }
}

}  // namespace fx::internal
