// The functions and methods of Python that no operator is and that fxgraph computes itself, as data:
// `operator.getitem`, `torch._assert`, `math.sqrt`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fx::internal {

/// What is computed.
enum class PythonTask : std::uint8_t {
  take_item,
  set_item,
  read_attribute,
  length,
  to_int,
  to_float,
  to_bool,
  negate,
  divide_down,
  power,
  keep_number,
  invert_bits,
  is_same,
  is_other,
  is_instance,
  check,
  larger,
  smaller,
  choose,
  unique,
  unique_consecutive,
  square_root,
  exponential,
  logarithm,
  round_down,
  round_up,
};

struct PythonSignature {
  std::string_view name;  ///< `operator.getitem`; a method starts with a dot: `.unique`
  PythonTask task;
  std::array<const char*, 5> parameters;  ///< in Python's order; null behind the last
  std::size_t optional = 0;               ///< how many of the last may be left out
};

/// All of them, in no order.
std::span<const PythonSignature> python_signatures();

}  // namespace fx::internal
