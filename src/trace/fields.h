// C++ types in the signatures of traced programs; structs are tuples of their members.
//
//   struct Batch { torch::Tensor tokens; torch::Tensor mask; double scale = 1; };      // an aggregate: nothing to say
//   fx::symbolic_trace(net, {fx::example(Batch{tokens, mask, 0.5})});
//
// Members are taken by their index, in the order of declaration; an aggregate has at most twelve, none of them an array
// or a base class. Any other struct says what its members are:
//
//   template <> struct fx::Fields<State> {
//     static auto tie(State& state) { return std::tie(state.h, state.c); }             // State() can be made
//   };
//
// A GraphModule takes and returns a tuple in its place.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Optional.h>
#include <torch/nn/utils/rnn.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fx {

/// The members of `Type`: to be specialised, see above.
template <typename Type>
struct Fields;

namespace internal {

// What stands for a member while members are counted. An optional can be made of anything that its value can be made
// of: it is asked for by itself, or two ways would lead to it.
struct AnyField {
  template <typename Type>
  operator Type() const;  // NOLINT: stands for whatever a member is
};
struct AnyStruct {
  template <typename Type>
  requires std::is_aggregate_v<Type>
  operator Type() const;  // NOLINT
};
struct AnyOptional {
  template <typename Value>
  operator std::optional<Value>() const;  // NOLINT
  template <typename Value>
  requires(!std::is_same_v<c10::optional<Value>, std::optional<Value>>) operator c10::optional<Value>()
      const;  // NOLINT
};

template <typename Type, typename... Fields>
constexpr std::size_t count_fields() {
  if constexpr (sizeof...(Fields) == 12) {
    return 12;
  } else if constexpr (requires { Type{Fields()..., AnyStruct()}; }) {
    return count_fields<Type, Fields..., AnyStruct>();
  } else if constexpr (requires { Type{Fields()..., AnyOptional()}; }) {
    return count_fields<Type, Fields..., AnyOptional>();
  } else if constexpr (requires { Type{Fields()..., AnyField()}; }) {
    return count_fields<Type, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

template <typename Type>
auto tie_aggregate(Type& v) {
  constexpr std::size_t kCount = count_fields<std::remove_const_t<Type>>();
  static_assert(kCount > 0, "a struct in a traced signature has members");
  if constexpr (kCount == 1) {
    auto& [a] = v;
    return std::tie(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = v;
    return std::tie(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = v;
    return std::tie(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = v;
    return std::tie(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = v;
    return std::tie(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = v;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = v;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = v;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = v;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = v;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

template <typename... Types>
std::tuple<std::decay_t<Types>...> values_of_tie(std::tuple<Types&...>);

template <typename Type>
concept HasTie = requires(Type& value) {
  Fields<Type>::tie(value);
};
template <typename Type>
concept HasParts = requires(const Type& value) {
  Fields<Type>::parts(value);
};

/// The members of `value`, copied into a tuple.
template <typename Type>
auto fields_of(const Type& value) {
  if constexpr (HasParts<Type>) {
    return Fields<Type>::parts(value);
  } else if constexpr (HasTie<Type>) {
    Type& writable = const_cast<Type&>(value);  // only read
    return decltype(values_of_tie(Fields<Type>::tie(writable)))(Fields<Type>::tie(writable));
  } else {
    Type& writable = const_cast<Type&>(value);
    return decltype(values_of_tie(tie_aggregate(writable)))(tie_aggregate(writable));
  }
}
template <typename Type>
using FieldsTuple = decltype(fields_of(std::declval<const Type&>()));

template <typename Type>
Type from_fields(FieldsTuple<Type> fields) {
  if constexpr (HasParts<Type>) {
    return Fields<Type>::from_parts(std::move(fields));
  } else if constexpr (HasTie<Type>) {
    Type value{};
    Fields<Type>::tie(value) = std::move(fields);
    return value;
  } else {
    return std::apply([](auto&&... field) { return Type{std::move(field)...}; }, std::move(fields));
  }
}

}  // namespace internal

/// A sequence of several lengths, as LibTorch's recurrent modules take them.
template <>
struct Fields<torch::nn::utils::rnn::PackedSequence> {
  using Type = torch::nn::utils::rnn::PackedSequence;  ///< what is taken apart
  /// What it is made of: data, batch sizes, sorted and unsorted indices.
  using Parts = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
  /// Takes it apart; indices may be undefined.
  static Parts parts(const Type& value) {
    return {value.data(), value.batch_sizes(), value.sorted_indices(), value.unsorted_indices()};
  }
  /// Puts it together.
  static Type from_parts(const Parts& parts) {
    return Type(std::get<0>(parts), std::get<1>(parts), std::get<2>(parts), std::get<3>(parts));
  }
};

namespace internal {

/// A struct whose members are known, or can be found.
template <typename Type>
concept Struct = std::is_class_v<Type> &&(HasTie<Type> || HasParts<Type> || std::is_aggregate_v<Type>)&&!requires {
  std::tuple_size<Type>::value;
};

template <typename Type>
inline constexpr bool kUnsupported = false;

// ── Telling types apart
// ────────────────────────────────────────────────────────────────────────────────────────────────

template <typename Type>
struct IsOptional : std::false_type {};
template <template <typename...> typename Template, typename Type>
requires(std::is_same_v<Template<Type>, std::optional<Type>> ||
         std::is_same_v<Template<Type>, c10::optional<Type>>) struct IsOptional<Template<Type>> : std::true_type {
  using value_type = Type;
};

template <typename Type>
concept StringMap = requires {
  typename Type::mapped_type;
  requires std::is_same_v<typename Type::key_type, std::string>;
};
template <typename Type>
concept Sequence = requires(Type value, typename Type::value_type element) {
  value.push_back(element);
  value.size();
}
&&!std::is_same_v<Type, std::string>;
template <typename Type>
inline constexpr bool kIsTorchDict = false;
template <typename Key, typename Value>
inline constexpr bool kIsTorchDict<c10::Dict<Key, Value>> = true;
template <typename Type>
inline constexpr bool kIsTorchContainer = kIsTorchDict<Type>;
template <typename Element>
inline constexpr bool kIsTorchContainer<c10::List<Element>> = true;
template <typename Type>
concept Iterable = requires(const Type& value) {
  value.begin();
  value.end();
};
template <typename Type>
concept TupleLike = requires {
  std::tuple_size<Type>::value;
};
template <typename Type>
concept IntegerList = Sequence<Type> && std::is_integral_v<typename Type::value_type>;

/// What a list of `Type` holds, where nothing in it tells.
template <typename Type>
c10::TypePtr type_in_lists() {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return c10::TensorType::get();
  } else if constexpr (std::is_same_v<Type, bool>) {
    return c10::BoolType::get();
  } else if constexpr (std::is_integral_v<Type>) {
    return c10::IntType::get();
  } else if constexpr (std::is_floating_point_v<Type>) {
    return c10::FloatType::get();
  } else if constexpr (std::is_same_v<Type, std::string>) {
    return c10::StringType::get();
  } else {
    return c10::AnyType::get();
  }
}

template <typename Type>
c10::IValue ivalue_of(const Type& value) {
  if constexpr (std::is_same_v<Type, at::Tensor>) {
    return value.defined() ? c10::IValue(value) : c10::IValue();
  } else if constexpr (IsOptional<Type>::value) {
    return value ? ivalue_of(*value) : c10::IValue();
  } else if constexpr (std::is_integral_v<Type> && !std::is_same_v<Type, bool>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_floating_point_v<Type>) {
    return static_cast<double>(value);
  } else if constexpr (kIsTorchContainer<Type> || std::is_constructible_v<std::string, Type>) {
    return c10::IValue(value);
  } else if constexpr (StringMap<Type>) {
    const std::map<std::string, typename Type::mapped_type> sorted(value.begin(), value.end());
    c10::impl::GenericDict dict(c10::StringType::get(), type_in_lists<typename Type::mapped_type>());
    for (const auto& [key, element] : sorted) dict.insert(key, ivalue_of(element));
    return dict;
  } else if constexpr (Iterable<Type>) {
    using Element = std::decay_t<decltype(*value.begin())>;
    c10::impl::GenericList list(type_in_lists<Element>());
    for (const Element& element : value) list.push_back(ivalue_of<Element>(element));
    return list;
  } else if constexpr (TupleLike<Type>) {
    return std::apply(
        [](const auto&... parts) { return c10::ivalue::Tuple::create(std::vector<c10::IValue>{ivalue_of(parts)...}); },
        value);
  } else if constexpr (Struct<Type>) {
    return ivalue_of(fields_of(value));
  } else if constexpr (requires { value.output, value.loss; }) {  // torch::nn::ASMoutput
    return ivalue_of(std::tuple(value.output, value.loss));
  } else {
    static_assert(std::is_constructible_v<c10::IValue, Type>,
                  "a traced function returns tensors, numbers, strings, or containers of such");
    return c10::IValue(value);
  }
}

}  // namespace internal

/// What a C++ value is among the example inputs and the results of a program: a struct is a tuple of its members, a map
/// a dict in the order of its keys, an undefined tensor None.
template <typename Type>
c10::IValue example(const Type& value) {
  return internal::ivalue_of(value);
}

}  // namespace fx
