// What is known of operators in a word each: flags of their rows (operator_records.h).
//
// Thread-safety: reads tables. Cost: O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fxgraph/support/symbol.h>

namespace fx {

class Call;
class OperatorSchema;

/// What an operator does, or asks; several may hold.
enum class OperatorFlag : std::uint32_t {
  keeps_type = 1 << 0,           ///< its result is of the type of what it is given first, where that is of floats
  keeps_channels_last = 1 << 1,  ///< seen in LibTorch 1.13; of one that does not, the result is right and slower
  reads_any_layout = 1 << 2,     ///< and its result is the same in memory
  looks_up = 1 << 3,             ///< rows in a table that it does not read whole
  reads_data = 1 << 4,           ///< a number is made of what a tensor holds
  is_composite = 1 << 5,         ///< made of others: it needs memory beside its results, as much as nobody says
  asks_sizes = 1 << 6,           ///< what the shapes of the inputs decide, and whether a tensor is there
  asks_form = 1 << 7,            ///< element type, strides, contiguity
  asks_otherwise = 1 << 8,       ///< what else no data decide
  sizes_of_data = 1 << 9,        ///< of its results; of one that indexes by masks the types of the indices say
  gives_contiguous = 1 << 10,    ///< whatever the strides of what it takes
  views_all = 1 << 11,           ///< a view of all elements, in their order
  raises_by_strides = 1 << 12,   ///< where they do not do
  differs_by_strides = 1 << 13,  ///< beside those of OperatorTraits::reads_layout()
  copies_in_order = 1 << 14,     ///< a copy that keeps the order of dimensions
  rectifies = 1 << 15,           ///< a call of `relu` behind it changes nothing
  counts_parts = 1 << 16,        ///< its second argument is how many results there are, or lists where parts begin
  lists_parts = 1 << 17,         ///< it gives one for each element of its second argument, where that is a list
  answers_each = 1 << 18,        ///< it gives one for each element of its first argument, where that is a list
};

/// By the target as it is written, or its packet. Unknown operators have none.
bool has_flag(Symbol target, OperatorFlag flag);

/// The argument that, given, says the sizes that else data would: `num_classes` of one_hot.
std::optional<std::size_t> sizes_given_by(const OperatorSchema& schema);
/// Whether data decide the sizes of what the call gives: its operator says so (`sizes_of_data`), and no argument does.
bool data_decide_sizes(const Call& call);

}  // namespace fx
