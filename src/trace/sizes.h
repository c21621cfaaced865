// Sizes: which sizes of the inputs a trace is to hold for.
//
//   fx::symbolic_trace(net, {x});                                              // every size that the program takes
//   fx::symbolic_trace(net, {x}, {.sizes = fx::Sizes::fixed});                 // those of the examples
//   fx::symbolic_trace(net, {x}, {.sizes = fx::Sizes::varying({"x[0]"})});     // the batch varies, nothing else
//   fx::symbolic_trace(net, {x, mask, cache}, {.sizes = fx::Sizes::tied("mask[1] = x[1] + cache[1]")});
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

namespace fx {

/// For which sizes of its inputs a trace is to hold.
class Sizes {
 public:
  static const Sizes any;    ///< every size that the program takes
  static const Sizes fixed;  ///< the sizes of the examples
  /// These dimensions and no others, `x[0]` for the first of the input x. Throws Error(invalid_argument) in the trace
  /// when there is no such dimension, or when one cannot vary.
  static Sizes varying(std::vector<std::string> dimensions) { return Sizes(false, std::move(dimensions)); }
  /// Every size that the program takes, and these hold among them: a dimension, `=`, and an expression of others with
  /// + - * // and brackets. Throws Error(invalid_argument) in the trace when one is malformed or does not hold for the
  /// examples. Dimensions that are always equal need not be named.
  /// @{
  static Sizes tied(std::vector<std::string> texts) {
    Sizes sizes;
    sizes.ties_ = std::move(texts);
    return sizes;
  }
  template <std::convertible_to<std::string>... Texts>
  static Sizes tied(const Texts&... texts) {
    return tied(std::vector<std::string>{std::string(texts)...});
  }
  /// @}

  Sizes() = default;  ///< `any`
  /// True for `fixed`.
  bool is_fixed() const { return !any_ && names_.empty(); }
  /// True for `any`.
  bool is_any() const { return any_; }
  /// The dimensions of varying(); else empty.
  const std::vector<std::string>& names() const { return names_; }
  /// Those of tied(); else empty.
  const std::vector<std::string>& ties() const { return ties_; }

 private:
  Sizes(bool is_any, std::vector<std::string> names) : any_(is_any), names_(std::move(names)) {}
  bool any_ = true;
  std::vector<std::string> names_, ties_;
};

inline const Sizes Sizes::any = Sizes(true, {});
inline const Sizes Sizes::fixed = Sizes(false, {});

}  // namespace fx
