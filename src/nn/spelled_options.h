// Options of torch::nn modules as hyper-parameters. For the rows of torch::nn: nn_rows.h.
#pragma once

#include <torch/nn/options.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/codegen/cpp_value.h>
#include <fxgraph/nn/module_type.h>

namespace fx::internal {

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A value as C++ and as Python take it. Empty text: no source can say it.
struct Spelled {
  std::string cpp;
  Argument python{};
};

template <typename T>
concept OptionalLike = requires(const T& value) {
  value.has_value();
};
template <typename T>
concept VariantLike = requires(const T& value) {
  value.index();
};

template <typename T>
concept PlainLike = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

Spelled spell(const PlainLike auto& value) { return {cpp_literal(Argument(value)), Argument(value)}; }
Spelled spell(const OptionalLike auto& value);

template <typename Values>
Spelled listed(const Values& values) {
  Spelled list;
  std::vector<Argument> elements;
  for (const auto& value : values) {
    const Spelled each = spell(value);
    list.cpp += (list.cpp.empty() ? "" : ", ") + each.cpp;
    elements.push_back(each.python);
  }
  return {"{" + list.cpp + "}", Argument::tuple(elements)};
}

template <typename T>
Spelled spell(const std::vector<T>& values) {
  const Spelled list = listed(values);
  return {std::string("std::vector<") + (std::is_same_v<T, double> ? "double" : "int64_t") + ">" + list.cpp,
          list.python};
}
Spelled spell(const OptionalLike auto& value) {
  return value.has_value() ? spell(*value) : Spelled{"torch::nullopt", Argument()};
}

// A single number stands for all.
template <typename Values>
Spelled spell_expanding(const Values& values) {
  for (const auto& value : values) {
    if (value != values[0]) return listed(values);
  }
  return spell(values[0]);
}
template <std::size_t D, typename T>
Spelled spell(const torch::ExpandingArray<D, T>& values) {
  return spell_expanding(*values);
}
template <std::size_t D, typename T>
Spelled spell(const torch::ExpandingArrayWithOptionalElem<D, T>& values) {
  return spell_expanding(*values);
}

struct InVariant {
  // `torch::kReLU` is "relu" in Python.
  template <typename T>
  Spelled operator()(const T& value) const {
    if constexpr (requires { torch::enumtype::_compute_enum_name{}(value); }) {
      const std::string name = torch::enumtype::_compute_enum_name{}(value);
      std::string word;
      for (const char letter : name.substr(1)) word += static_cast<char>(std::tolower(letter));
      return {"torch::" + name, word};
    } else {
      return {};
    }
  }
  template <std::size_t D, typename T>
  Spelled operator()(const torch::ExpandingArray<D, T>& value) const {
    const Spelled numbers = spell(value);
    return {"torch::ExpandingArray<" + std::to_string(D) + ">(" + numbers.cpp + ")", numbers.python};
  }
};
Spelled spell(const VariantLike auto& value) { return visit(InVariant(), value); }

// ── Options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// An option and how it is read.
template <typename Get>
struct Option {
  const char* name;
  Get get;
  const char* python = nullptr;  ///< where Python calls it otherwise
};
template <typename Get, typename... Python>
Option(const char*, Get, Python...) -> Option<Get>;
#define FX_OPTION(name, ...)                                     \
  Option {                                                       \
#name, [](const auto& o) -> const auto& { return o.name(); } \
    __VA_OPT__(, ) __VA_ARGS__                                   \
  }

/// An option of options of some type. What is made for each is what compiling the rows costs: no more than this.
struct OptionReader {
  const char* name;
  const char* python;  ///< null: as `name`
  Spelled (*read)(const void* options);
};
template <typename Options, typename Get>
Spelled read_option(const void* options) {
  return spell(Get()(*static_cast<const Options*>(options)));
}

/// The first `taken` of them by position, then the others, whose value in `plain` is the default. Nothing where no
/// source can say one.
std::optional<HyperParameters> read_options(std::span<const OptionReader> readers, std::size_t taken,
                                            const void* options, const void* plain);

/// Takes options to hyper-parameters: those that the options' constructor takes, then those that have setters. A value
/// that is the same without being set is a default.
template <typename Required, typename Set>
struct Described;
template <typename... Required, typename... Set>
struct Described<std::tuple<Option<Required>...>, std::tuple<Option<Set>...>> {
  std::array<std::pair<const char*, const char*>, sizeof...(Required) + sizeof...(Set)> names;

  template <typename Options>
  std::optional<HyperParameters> operator()(const Options& options) const {
    constexpr std::size_t kCount = sizeof...(Required) + sizeof...(Set);
    std::array<OptionReader, kCount> readers;
    const std::array<Spelled (*)(const void*), kCount> reads = {&read_option<Options, Required>...,
                                                                &read_option<Options, Set>...};
    for (std::size_t i = 0; i < kCount; ++i) readers[i] = {names[i].first, names[i].second, reads[i]};
    const Options plain = Options(Required()(options)...);
    return read_options(readers, sizeof...(Required), &options, &plain);
  }
};

template <typename... Required, typename... Set>
Described<std::tuple<Option<Required>...>, std::tuple<Option<Set>...>> described(
    const std::tuple<Option<Required>...>& required, const Option<Set>&... set) {
  return {std::apply(
      [&](const auto&... each) {
        return std::array<std::pair<const char*, const char*>, sizeof...(Required) + sizeof...(Set)>{
            std::pair(each.name, each.python)..., std::pair(set.name, set.python)...};
      },
      required)};
}

/// The options that a constructor takes.
template <typename... Gets>
std::tuple<Option<Gets>...> taking(Option<Gets>... options) {
  return {options...};
}

}  // namespace fx::internal
