// Arguments for any operator, drawn by its schema: right often enough to run, wrong in all the ways that are allowed.
// Internal to this library and the tests.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/ops/schema.h>
#include <fxgraph/testing/hostile/tensors.h>

namespace fx::hostile {

/// Where the values of a call come from.
struct ValueSource {
  /// A value for this parameter; `first` is the call's first tensor so far, undefined before there is one. Null when
  /// there is none.
  std::function<Node*(const SchemaArgument& parameter, const at::Tensor& first)> tensor;
  std::function<at::Tensor(const Node&)> value_of;
  /// A scalar value of the program in place of a number; may give null.
  std::function<Node*()> number = {};
  /// A whole number of the program that is this one; may give null.
  std::function<Node*(std::int64_t)> integer = {};
};

struct DrawnCall {
  std::vector<Argument> args;  ///< all that may be given by position, up to the last that was chosen
  std::vector<NamedArgument> kwargs;
};

struct ArgumentOptions {
  unsigned optional_percent = 20;  ///< how often an optional argument is given
  Numbers numbers = Numbers::tame;
};

/// Nothing when a parameter is of a kind that cannot be drawn.
std::optional<DrawnCall> draw_call(Random& random, const OperatorSchema& schema, const ValueSource& source,
                                   const ArgumentOptions& options = {});

/// A number as programs write them, negative, zero, infinite and NaN ones among them.
Argument draw_literal(Random& random, Numbers numbers);

}  // namespace fx::hostile
