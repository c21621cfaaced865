// Definitions: what one operator is in others, and what adds up to one: silu(x) is x sigmoid(x).
//
// One table, read in both directions. Searches read a program through it on request (FindOptions::definitions), and the
// rules of rewriter/rules that recognise or decompose an operator have their patterns here.
//
// Sources: LibTorch's own kernels and decompositions, and what exporters write. A row promises how far both sides agree
// on the CPU; some differ in their gradients where they are not smooth.
//
// Thread-safety: the table is made once and only read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ir/type_set.h>
#include <fxgraph/matchers/match.h>

namespace fx {

/// How the results compare with those of the pattern, for inputs that meet the rule's needs.
enum class Promise : std::uint8_t {
  bit_exact,        ///< equal, NaN and signed zeros included
  reassociates,     ///< the same real number, rounded in another order
  approximate,      ///< within a tolerance
  lower_precision,  ///< the same real number, rounded to bfloat16 on the way
};
/// Returns the name as it is spelt above, with hyphens: `bit-exact`.
std::string_view to_string(Promise promise);

/// A place where a side of a definition fits, and what the other side needs beside what is bound there.
class DefinitionSite {
 public:
  /// `sizes(node)` says what is known of a tensor; null: nothing.
  DefinitionSite(const Match& match, std::function<const TensorInfo*(const Node&)> info)
      : match_(match), info_(std::move(info)) {}

  /// The argument that is bound to `name`; null where this side has none of that name.
  const Argument* argument(std::string_view name) const;
  /// The number bound to `name`; nothing where it is none.
  std::optional<double> number(std::string_view name) const;
  /// What is known of the tensor bound to `name`, or of the result; null: nothing.
  /// @{
  const TensorInfo* tensor(std::string_view name) const;
  const TensorInfo* result() const { return tensor(match_.anchor()); }
  /// @}
  /// False when what was said is not what is bound.
  bool is_as_said() const;
  /// False when the tensors that are bound are known not to be of floating-point numbers, or not of the result's type.
  bool may_be_floating() const;
  /// Whose sizes and types were read: the two sides are the same as long as they are these.
  const std::vector<const Node*>& read() const { return read_; }
  /// Says what `name` is; where it is bound, too, only that will do.
  void set(std::string_view name, Argument value) { values_.emplace_back(name, std::move(value)); }

  /// True when set() said what `name` is.
  bool says(std::string_view name) const;
  /// What `name` is: said by set(), or bound.
  const Argument* value(std::string_view name) const;

 private:
  const TensorInfo* tensor(const Node& node) const;

  const Match& match_;
  std::function<const TensorInfo*(const Node&)> info_;
  std::vector<std::pair<std::string, Argument>> values_;
  mutable std::vector<const Node*> read_;
};

/// Returns float16, bfloat16, float32 and float64.
TypeSet floating_types();

/// A row of the table.
struct Definition {
  std::string name;                  ///< of the operator
  std::string call;                  ///< `aten::silu(x)`: the call, as it is made
  std::vector<std::string> bodies;   ///< each is the same; found, and made
  std::vector<std::string> found{};  ///< other texts that are found and never made
  std::vector<std::string> calls{};  ///< how the call itself is found; empty: as it is made
  /// Must accept a place of either side; may say what the other side needs. What is not known does not hold.
  bool (*holds)(DefinitionSite& site) = nullptr;
  Promise promise = Promise::approximate;  ///< how far both sides agree, in float32 and float64
  bool of_any_type = false;   ///< else of floating-point numbers; a rewrite must know that they are float32 or 64
  bool same_gradient = true;  ///< also where a bound is met
  bool has_parts = false;     ///< what it adds up from counts by itself, too: attention has its products
};

/// The rows, in the order in which they build on each other.
std::span<const Definition> definitions();
/// The row of this name. Throws Error(not_found).
const Definition& definition(std::string_view name);

}  // namespace fx
