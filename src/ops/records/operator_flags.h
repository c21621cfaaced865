// What is known of operators in a word each, as data: one row an operator.
//
// Thread-safety: reads a table. Cost: a search in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fxgraph/support/symbol.h>

namespace fx {

/// What an operator does, or asks; several may hold.
enum class OperatorFlag : std::uint16_t {
  keeps_type = 1,           ///< its result is of the type of what it is given first, where that is of floats
  keeps_channels_last = 2,  ///< seen in LibTorch 1.13; of one that does not, the result is right and slower
  reads_any_layout = 4,     ///< and its result is the same in memory
  looks_up = 8,             ///< rows in a table that it does not read whole
  reads_data = 16,          ///< a number is made of what a tensor holds
  is_composite = 32,        ///< made of others: it needs memory beside its results, as much as nobody says
  asks_sizes = 64,          ///< what the shapes of the inputs decide, and whether a tensor is there
  asks_form = 128,          ///< element type, strides, contiguity
  asks_otherwise = 256,     ///< what else no data decide
};

/// By the target as it is written, or its packet. Unknown operators have none.
bool has_flag(Symbol target, OperatorFlag flag);

/// How many values a list result has, as one argument tells.
struct ListLength {
  /// The argument is that number, a list of as many, or of one less.
  enum class Kind : std::uint8_t { number, length, length_plus_one };
  std::size_t argument;  ///< its position
  Kind kind;             ///< what it tells
};
/// Of an overload whose result's length no data decide.
std::optional<ListLength> list_length(Symbol overload);

}  // namespace fx
