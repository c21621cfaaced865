// TargetSet: which operators a pattern node accepts.
//
// A set is made of names, RE2 expressions on the whole target, and tags that operator schemas carry:
//
//   TargetSet("aten::relu")                       one operator
//   TargetSet({"aten::relu", "aten::gelu"})       any of these
//   re("aten::hard(swish|sigmoid)")               every target that the expression matches from end to end
//   tag::pointwise                                every operator whose schema says so
//   TargetSet()                                   any target
//
// A name says what is called, however a graph spells it: `aten::relu` accepts `torch.relu(x)` and `x.relu()`, and
// `torch.relu` means the same. Without an overload it is every overload that takes the pattern's arguments.
//
// Thread-safety: immutable after construction; may be read from any thread. Copies share the compiled expressions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/support/symbol.h>

namespace re2 {
class RE2;
}

namespace fx {

/// A property of operators, as OperatorTraits has it; `mutating` stands for its `writes`.
enum class Tag : std::uint8_t { pointwise, view, reduction, random, mutating };

/// Returns the tag's name as it is spelt above.
std::string_view to_string(Tag tag);

/// The operators that a pattern node accepts; see the top of this file.
class TargetSet {
 public:
  /// Every target.
  TargetSet() = default;
  /// One operator; a name without overload stands for what the top of this file says.
  /// @{
  TargetSet(Symbol name) : names_{name} {}
  TargetSet(const char* name) : TargetSet(Symbol(name)) {}
  TargetSet(const std::string& name) : TargetSet(Symbol(name)) {}
  TargetSet(std::string_view name) : TargetSet(Symbol(name)) {}
  /// @}
  /// Every operator that carries the tag.
  TargetSet(Tag tag) : tags_{tag} {}
  /// The union.
  TargetSet(std::initializer_list<TargetSet> sets);
  /// The union.
  TargetSet(const std::vector<TargetSet>& sets);

  /// Every target that the RE2 expression matches from end to end. Throws Error(syntax) for a bad expression.
  static TargetSet matching(std::string_view expression);

  /// The calls that are written with this name, whatever else means the same: `torch.relu`, no `aten::relu`.
  static TargetSet spelt(std::string_view name);

  /// True when `target` is in the set. O(names), and the cost of the expressions where there are any.
  bool contains(Symbol target) const;
  /// True for a name that the set has by its spelling.
  bool is_spelt(Symbol target) const;
  /// True for the set of every target, which has nothing in it.
  bool accepts_all() const { return names_.empty() && spelt_.empty() && expressions_.empty() && tags_.empty(); }
  /// True when the set is nothing but names() and spellings().
  bool is_finite() const { return (!names_.empty() || !spelt_.empty()) && expressions_.empty() && tags_.empty(); }
  /// The names of operators, modules or attributes in the set.
  const std::vector<Symbol>& names() const { return names_; }
  /// The names that are spelt().
  const std::vector<Symbol>& spellings() const { return spelt_; }
  /// The tags in the set.
  const std::vector<Tag>& tags() const { return tags_; }
  /// The expressions as they were written.
  std::vector<std::string> expressions() const;

  /// True when both are made of the same names, expressions and tags, in the same order.
  friend bool operator==(const TargetSet& a, const TargetSet& b);

 private:
  std::vector<Symbol> names_;
  std::vector<Symbol> spelt_;
  std::vector<std::shared_ptr<const re2::RE2>> expressions_;
  std::vector<Tag> tags_;
};

}  // namespace fx
