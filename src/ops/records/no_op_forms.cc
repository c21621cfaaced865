#include <fxgraph/ops/records/no_op_forms.h>

#include <cmath>
#include <cstdint>

#include <fxgraph/ops/call.h>

namespace fx::internal {
namespace no_op_conditions {
namespace {

bool is_number(const Argument* a, double value) {
  return a && (a->is_int() || a->is_float()) && a->as_float() == value;
}
bool is_bool(const Argument* a, bool value) { return a && a->is_bool() && a->as_bool() == value; }
bool is_int(const Argument* a, std::int64_t value) { return a && a->is_int() && a->as_int() == value; }
bool is_absent(const Argument* a) { return !a || a->is_none(); }

// An alpha of 0 does not make a sum with inf or NaN, nor does a 0 times an alpha of inf.
bool adds_zero(const Call& c) {
  const Argument* alpha = c.argument("alpha");
  return is_number(c.argument("other"), 0.0) &&
         (!alpha || ((alpha->is_int() || alpha->is_float()) && std::isfinite(alpha->as_float())));
}
bool times_one(const Call& c) { return is_number(c.argument("other"), 1.0); }
bool divides_by_one(const Call& c) {
  return is_number(c.argument("other"), 1.0) && is_absent(c.argument("rounding_mode"));
}
bool to_the_one(const Call& c) { return is_number(c.argument("exponent"), 1.0); }
bool same_dimension(const Call& c) {
  const Argument *a = c.argument("dim0"), *b = c.argument("dim1");
  return a && b && a->is_int() && b->is_int() && a->as_int() == b->as_int();
}
bool identity_order(const Call& c) {
  const Argument* dims = c.argument("dims");
  if (!dims || !dims->is_sequence()) return false;
  std::int64_t next = 0;
  for (const Argument& dim : dims->elements()) {
    if (!dim.is_int() || dim.as_int() != next++) return false;
  }
  return true;
}
bool whole_slice(const Call& c) {
  const Argument* end = c.argument("end");
  const bool to_end = !end || end->is_none() || (end->is_int() && end->as_int() == INT64_MAX);
  return (is_absent(c.argument("start")) || is_int(c.argument("start"), 0)) && to_end && is_int(c.argument("step"), 1);
}
bool is_default_format(const Call& c) {
  const Argument* format = c.argument("memory_format");
  return is_absent(c.argument("memory_format")) ||
         (format->kind() == ArgumentKind::memory_format && format->as_memory_format().name == "contiguous_format");
}
bool makes_no_copy(const Call& c) {
  return !is_bool(c.argument("copy"), true) && is_absent(c.argument("memory_format"));
}
bool always(const Call&) { return true; }

}  // namespace
}  // namespace no_op_conditions

namespace no_op {

using enum NoOpForm::When;
using namespace no_op_conditions;

constexpr NoOpForm adds_zero = {same_form, no_op_conditions::adds_zero, "adds 0"};
constexpr NoOpForm subtracts_zero = {same_form, no_op_conditions::adds_zero, "subtracts 0"};
constexpr NoOpForm times_one = {same_form, no_op_conditions::times_one, "multiplies by 1"};
constexpr NoOpForm divides_by_one = {same_form, no_op_conditions::divides_by_one, "divides by 1"};
constexpr NoOpForm to_the_one = {same_form, no_op_conditions::to_the_one, "raises to the power 1"};
constexpr NoOpForm drops_nothing = {draws_nothing, always, "drops nothing at inference"};
constexpr NoOpForm swaps_nothing = {any, same_dimension, "swaps a dimension with itself"};
constexpr NoOpForm keeps_order = {any, identity_order, "keeps the order of the dimensions"};
constexpr NoOpForm whole_slice = {any, no_op_conditions::whole_slice, "takes the whole dimension"};
constexpr NoOpForm rectified_before = {rectified, always, "rectifies what is rectified already"};
constexpr NoOpForm keeps_shape = {same_form, always, "keeps the shape"};
constexpr NoOpForm keeps_type = {same_form, makes_no_copy, "keeps the type"};
constexpr NoOpForm already_contiguous = {same_form, is_default_format, "is contiguous already"};

}  // namespace no_op
}  // namespace fx::internal
