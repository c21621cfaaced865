// How an Expr is stored. Internal to matchers/.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/argument.h"
#include "ir/node.h"
#include "matchers/expr.h"
#include "matchers/targets.h"

namespace fx::internal {

enum class PatternKind : std::uint8_t {
  any,        ///< any argument
  value,      ///< any node
  call,       ///< a node with this opcode and one of these targets
  attribute,  ///< a get_attr
  literal,    ///< this literal
  hole,       ///< a literal of some kind
  sequence,   ///< a list, tuple, dict or slice that names nodes
  one_of,     ///< one of the alternatives
  absent,     ///< None, or an argument that is not there
  rest,       ///< other arguments
};

enum class HoleKind : std::uint8_t { any, integer, floating, boolean, string };

/// A predicate, and what it wants in words.
struct Condition {
  std::function<bool(const Argument&)> test;
  std::string what;
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
  TargetSet targets;
  Argument literal;
  double tolerance = -1;  ///< negative: exact
  Symbol name;
  std::uint32_t min_uses = 0;
  std::uint32_t max_uses = kManyUses;
  std::vector<Condition> conditions;
};

struct ExprNode : PatternTest {
  std::uint64_t identity = 0;  ///< equal: the same value
  bool blank = false;          ///< a `_`, to be filled when the call is applied
  std::vector<match::Expr> args;
  std::vector<std::pair<Symbol, match::Expr>> kwargs;
};

}  // namespace fx::internal
