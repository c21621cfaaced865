// Options of torch::nn modules as C++ source. Included by nn_construction.cc only.
#pragma once

#include <torch/nn/options.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include <fxgraph/codegen/cpp_value.h>

namespace fx::internal {

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────
// Empty text: no source can say it.

template <typename T>
concept OptionalLike = requires(const T& value) {
  value.has_value();
};
template <typename T>
concept VariantLike = requires(const T& value) {
  value.index();
};

inline std::string spell(bool value) { return value ? "true" : "false"; }
inline std::string spell(std::int64_t value) { return std::to_string(value); }
inline std::string spell(double value) { return cpp_literal(Argument(value)); }
inline std::string spell(const std::string& value) { return cpp_string(value); }
std::string spell(const OptionalLike auto& value);

template <typename Values>
std::string listed(const Values& values) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + spell(value);
  return "{" + out + "}";
}

inline std::string spell(const std::vector<std::int64_t>& values) { return "std::vector<int64_t>" + listed(values); }
inline std::string spell(const std::vector<double>& values) { return "std::vector<double>" + listed(values); }
std::string spell(const OptionalLike auto& value) { return value.has_value() ? spell(*value) : "torch::nullopt"; }

// A single number stands for all.
template <typename Values>
std::string spell_expanding(const Values& values) {
  for (const auto& value : values) {
    if (value != values[0]) return listed(values);
  }
  return spell(values[0]);
}
template <std::size_t D, typename T>
std::string spell(const torch::ExpandingArray<D, T>& values) {
  return spell_expanding(*values);
}
template <std::size_t D, typename T>
std::string spell(const torch::ExpandingArrayWithOptionalElem<D, T>& values) {
  return spell_expanding(*values);
}

struct InVariant {
  template <typename T>
  std::string operator()(const T& value) const {
    if constexpr (requires { torch::enumtype::_compute_enum_name{}(value); }) {
      return "torch::" + torch::enumtype::_compute_enum_name{}(value);
    } else {
      return {};
    }
  }
  template <std::size_t D, typename T>
  std::string operator()(const torch::ExpandingArray<D, T>& value) const {
    return "torch::ExpandingArray<" + std::to_string(D) + ">(" + spell(value) + ")";
  }
};
std::string spell(const VariantLike auto& value) { return visit(InVariant(), value); }

// ── Options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// An option with a setter.
template <typename Get>
struct Setter {
  const char* name;
  Get get;
};
template <typename Get>
Setter(const char*, Get) -> Setter<Get>;
#define FX_OPTION(name)                                          \
  Setter {                                                       \
#name, [](const auto& o) -> const auto& { return o.name(); } \
  }

// An option as it is and as it is without being set.
struct SetOption {
  const char* name;
  std::string text;
  std::string plain;
};

/// `torch::nn::<type>(torch::nn::<type>Options(<required>).<setter>(…)…)`; empty when it cannot be said.
std::string made_of(const char* type, std::initializer_list<std::string> required,
                    std::initializer_list<SetOption> options);

template <typename Options, typename... Required, typename... Gets>
std::string made_of(const char* type, const Options& options, const std::tuple<Required...>& required,
                    Setter<Gets>... setters) {
  const Options plain = std::make_from_tuple<Options>(required);
  return std::apply(
      [&](const auto&... each) {
        return made_of(type, {spell(each)...},
                       {SetOption{setters.name, spell(setters.get(options)), spell(setters.get(plain))}...});
      },
      required);
}

}  // namespace fx::internal
