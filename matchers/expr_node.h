// How an Expr is stored. Internal to matchers/.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/node.h>
#include <fxgraph/matchers/expr.h>
#include <fxgraph/matchers/targets.h>

namespace fx::internal {

enum class PatternKind : std::uint8_t {
  any,          ///< any argument
  value,        ///< any node
  call,         ///< a node with this opcode and one of these targets
  attribute,    ///< a get_attr
  constant,     ///< a value computed from get_attrs and literals alone
  literal,      ///< this literal
  hole,         ///< a literal of some kind
  sequence,     ///< a list, tuple, dict or slice that names nodes
  one_of,       ///< one of the alternatives
  absent,       ///< None, or an argument that is not there
  rest,         ///< other arguments; as a tail with a name, the list of them
  negation,     ///< an argument that the child does not match
  transparent,  ///< what the child matches, or a call that hands it on as it is
  dominated,    ///< a value that the first child dominates through calls that the second accepts
};

enum class HoleKind : std::uint8_t { any, integer, floating, boolean, string };

/// A predicate, and what it wants in words.
struct Condition {
  std::function<bool(const Argument&)> test;
  std::string what;
  std::string text{};  ///< of a comparison, as the pattern text writes it; else the predicate goes by `what`
};

/// What a tensor must be; its sizes are patterns of their own.
struct TensorTest {
  std::uint64_t dtypes = ~std::uint64_t{0};  ///< bit i: DType i
  std::optional<Device> device;              ///< without an index: any of that type
  bool sized = false;                        ///< the rank is told
  int open = -1;                             ///< where `...` stands among the sizes; negative: nowhere
  friend bool operator==(const TensorTest&, const TensorTest&) = default;
};

inline constexpr std::uint32_t kManyUses = std::numeric_limits<std::uint32_t>::max();

/// What a pattern node says by itself, without its operands.
struct PatternTest {
  PatternKind kind = PatternKind::any;
  Op op = Op::call_function;
  HoleKind hole = HoleKind::any;
  ArgumentKind container = ArgumentKind::list;  ///< of a sequence; list and tuple are the same here
  bool bare = false;                            ///< a call without arguments: any will do
  bool open = false;                            ///< `rest()` was given
  bool commutative = false;
  bool unordered = false;  ///< the elements of a sequence may stand in any order
  TargetSet targets;
  TargetSet types;  ///< of the module that is called
  Argument literal;
  double tolerance = -1;  ///< negative: exact
  Symbol name;
  std::uint32_t min_uses = 0;
  std::uint32_t max_uses = kManyUses;
  std::vector<Condition> conditions;
  std::optional<TensorTest> tensor;

  /// True when conditions, or how many use it, decide beside what it is.
  bool has_conditions() const;
};

struct ExprNode : PatternTest {
  std::uint64_t identity = 0;  ///< equal: the same value
  bool blank = false;          ///< a `_`, to be filled when the call is applied
  std::vector<match::Expr> args;
  std::vector<std::pair<Symbol, match::Expr>> kwargs;
  std::vector<match::Expr> dims;  ///< sizes that the tensor test names
  std::vector<match::Expr> tail;  ///< the name of `...`, at most one
};

}  // namespace fx::internal
