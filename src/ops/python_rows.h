// The rows of python_functions(), read once into a form that binds quickly.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <fxgraph/ops/records/python_names.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal {

struct PythonParameter {
  Symbol name;
  std::optional<Argument> default_value;
  bool rest = false;  // `*tensors`: takes all that is left, as a list
};

struct PythonCondition {
  enum class Test : std::uint8_t { equal, not_equal, at_least };
  std::size_t parameter;
  Test test;
  Argument value;
};

struct PythonItem {
  static constexpr std::size_t kLiteral = ~std::size_t{0};
  Symbol keyword;  // empty: by position
  std::size_t parameter = kLiteral;
  std::optional<Argument> literal;  // the value, or what stands for None
  std::string_view words;           // the argument is the number of one of these words
  std::size_t repeated = 0;         // a number stands for so many of it
  enum class Half : std::uint8_t { none, left, right };
  Half half = Half::none;  // of two lists of dimensions; n stands for the last n of the left and the first of the right
};

struct PythonRow {
  std::string_view name;
  std::vector<PythonParameter> parameters;
  std::vector<PythonCondition> conditions;
  Symbol target;  // an operator with or without overload; empty: nothing but "no effects"
  std::vector<PythonItem> items;
  bool same_arguments = false;                 // the call is the operator's already
  std::size_t inplace = PythonItem::kLiteral;  // the parameter `inplace`
};

/// The rows of `name`, in order.
std::span<const PythonRow> python_rows(std::string_view name);

/// The functions and methods that call an operator of the packet, given the right arguments. O(rows).
std::vector<std::string_view> python_functions_of(std::string_view packet);

}  // namespace fx::internal
