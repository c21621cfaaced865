// The arguments of a call of Python's, as a row of the tables names them.
#pragma once

#include <algorithm>
#include <optional>

#include <boost/container/small_vector.hpp>

#include <fxgraph/ir/node.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/python_rows.h>

namespace fx::internal {

// The values of a row's parameters in one call.
class RowBinding {
 public:
  // False when the call does not fit the row's parameters. Of an `open` call the others are not bound.
  bool bind(const PythonRow& row, const Node& node, bool open = false) {
    const std::vector<PythonParameter>& parameters = row.parameters;
    values_.assign(parameters.size(), std::nullopt);
    std::size_t next = 0;
    const ArgumentSpan args = node.args();
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (next == parameters.size()) return false;
      if (parameters[next].rest) {
        if (!bind_rest(next, args.subspan(i))) return false;
        break;
      }
      values_[next++] = args[i];
    }
    for (const auto& [name, value] : node.kwargs()) {
      const auto at = std::ranges::find(parameters, name, &PythonParameter::name);
      if (at == parameters.end() || values_[at - parameters.begin()]) return false;
      values_[at - parameters.begin()] = value;
    }
    for (std::size_t i = 0; i < parameters.size() && !open; ++i) {
      if (!values_[i]) values_[i] = parameters[i].default_value;
      if (!values_[i]) return false;
    }
    return true;
  }

  bool holds(const PythonRow& row) const {
    return std::ranges::all_of(row.conditions, [&](const PythonCondition& condition) {
      const std::optional<Argument>& given = values_[condition.parameter];
      const std::optional<Argument>& standard = row.parameters[condition.parameter].default_value;
      if (!given && (!standard || condition.test != PythonCondition::Test::equal)) return true;
      const Argument& value = given ? *given : *standard;
      switch (condition.test) {
        case PythonCondition::Test::equal:
          return value == condition.value ||
                 (value.is_int() && condition.value.is_float() && value.as_float() == condition.value.as_float());
        case PythonCondition::Test::not_equal: return !(value == condition.value);
        case PythonCondition::Test::at_least: return value.is_int() && value.as_int() >= condition.value.as_int();
      }
      return false;
    });
  }

  const Argument& operator[](std::size_t i) const { return *values_[i]; }
  bool is_given(std::size_t i) const { return values_[i].has_value(); }

 private:
  bool bind_rest(std::size_t at, ArgumentSpan rest) {
    // One list may stand for all; one node may be either.
    bool list = rest.size() == 1 && rest[0].is_sequence();
    if (rest.size() == 1 && !list) {
      const ArgumentType alone = argument_type(rest[0]);
      if (!alone.known) return false;
      list = alone.list;
    }
    values_[at] = list ? rest[0] : Argument::list(rest);
    return true;
  }

  boost::container::small_vector<std::optional<Argument>, 8> values_;
};

}  // namespace fx::internal
