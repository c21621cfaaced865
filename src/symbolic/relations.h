// The relations of two numbers, as data.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fxgraph/symbolic/size_facts.h>

namespace fx::internal {

struct RelationRow {
  SizeRelation relation;
  std::string_view function;  ///< SymPy's name; none of what is no function there
  std::string_view opposite;  ///< that of what holds where it does not
  std::string_view words;
  bool (*holds)(double, double);
};
inline constexpr RelationRow kRelations[] = {
    {SizeRelation::equal, "Equality", "Unequality", " must be ", [](double a, double b) { return a == b; }},
    {SizeRelation::unequal, "Unequality", "Equality", " must not be ", [](double a, double b) { return a != b; }},
    {SizeRelation::at_least, "GreaterThan", "StrictLessThan", " must be at least ",
     [](double a, double b) { return a >= b; }},
    {SizeRelation::at_most, "LessThan", "StrictGreaterThan", " must be at most ",
     [](double a, double b) { return a <= b; }},
    {SizeRelation::more, "StrictGreaterThan", "LessThan", " must be more than ",
     [](double a, double b) { return a > b; }},
    {SizeRelation::less, "StrictLessThan", "GreaterThan", " must be less than ",
     [](double a, double b) { return a < b; }},
    {SizeRelation::multiple, "", "", " must be a multiple of ", nullptr},
};

/// That of a function; null for others.
inline const RelationRow* find_relation(std::string_view function) {
  const auto* row =
      function.empty() ? std::end(kRelations) : std::ranges::find(kRelations, function, &RelationRow::function);
  return row == std::end(kRelations) ? nullptr : row;
}

}  // namespace fx::internal
