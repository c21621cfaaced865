// When a call returns its first argument as it is.
#pragma once

#include <cstdint>

namespace fx {

class Call;

namespace internal {

/// A way of being a no-op.
struct NoOpForm {
  /// What must hold beside `holds`.
  enum class When : std::uint8_t {
    any,            ///< nothing
    same_form,      ///< type and sizes stay
    draws_nothing,  ///< its random numbers are switched off
    rectified,      ///< what it takes is rectified already, and nothing writes to it in between
  };
  When when;                   ///< beside `holds`
  bool (*holds)(const Call&);  ///< what its literals must be
  const char* reason;          ///< "adds 0"
};

namespace no_op {
extern const NoOpForm adds_zero, subtracts_zero, times_one, divides_by_one, to_the_one, drops_nothing, swaps_nothing,
    keeps_order, whole_slice, rectified_before, keeps_shape, keeps_type, already_contiguous;
}  // namespace no_op

}  // namespace internal
}  // namespace fx
