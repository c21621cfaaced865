// Tensors that are made of numbers.
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace factory_rows {
namespace {

Sizes written_sizes(SizeCall& c) {
  Sizes sizes = c.numbers("size");
  for (const SizeExpr& each : sizes) c.require_at_least(each, 0);
  return sizes;
}

void give_new(SizeCall& c, Sizes sizes, DType dtype) {
  Sizes strides = contiguous_strides(sizes);
  c.give(AbstractValue(TensorType{dtype, std::move(sizes), std::move(strides)}));
}

void filled(SizeCall& c) { give_new(c, written_sizes(c), c.dtype("dtype", DType::float32)); }
// Of rand and randn.
DType random_type(const SizeCall& c, DType otherwise) {
  const DType dtype = c.dtype("dtype", otherwise);
  if (!is_float(dtype)) SizeCall::give_up("its kernel tells");
  return dtype;
}
void random(SizeCall& c) { give_new(c, written_sizes(c), random_type(c, DType::float32)); }
void whole_numbers(SizeCall& c) {
  if (!c.given("dtype")) SizeCall::give_up("a type that releases differ in");
  give_new(c, written_sizes(c), c.dtype("dtype", DType::int64));
}

// (size, fill_value, …)
void full(SizeCall& c) {
  const AbstractValue& value = c.argument("fill_value");
  const DType dtype = c.given("dtype") ? c.dtype("dtype", DType::float32) : c.promoted({"fill_value"});
  if (value.tensor()) SizeCall::give_up("a value that is a tensor");
  give_new(c, written_sizes(c), dtype);
}

// (self, …)
void like(SizeCall& c) {
  const TensorType& self = c.self();
  c.give(self.sizes, c.dtype("dtype", self.dtype));
}
void random_like(SizeCall& c) {
  random_type(c, c.self().dtype);
  like(c);
}

// (self, size, …)
void new_filled(SizeCall& c) { give_new(c, written_sizes(c), c.dtype("dtype", c.self().dtype)); }

// (start, end, step): whole numbers
void arange(SizeCall& c) {
  const bool starts = c.schema().index_of(Symbol("start")) >= 0, steps = c.schema().index_of(Symbol("step")) >= 0;
  const SizeExpr start = starts ? c.number("start") : SizeExpr(0), end = c.number("end");
  const SizeExpr step = steps ? c.number("step") : SizeExpr(1);
  if (!step.is_integer() || step.value() == 0) SizeCall::give_up("a step that is not known");
  SizeExpr length = step.value() > 0 ? end - start : start - end;
  c.require_at_least(length, 0);
  if (c.dtype("dtype", DType::int64) == DType::boolean) SizeCall::give_up("its kernel tells");
  give_new(c, {ceil_div(length, std::abs(step.value()))}, c.dtype("dtype", DType::int64));
}

// (start, end, steps)
void linspace(SizeCall& c) {
  c.require_at_least(c.number("steps"), 0);
  if (c.dtype("dtype", DType::float32) == DType::boolean) SizeCall::give_up("its kernel tells");
  give_new(c, {c.number("steps")}, c.dtype("dtype", DType::float32));
}

// (n, m)
void eye(SizeCall& c) {
  const SizeExpr n = c.number("n"), m = c.schema().index_of(Symbol("m")) >= 0 ? c.number("m") : n;
  c.require_at_least(n, 0);
  c.require_at_least(m, 0);
  give_new(c, {n, m}, c.dtype("dtype", DType::float32));
}

// (n)
void permutation(SizeCall& c) {
  c.require_at_least(c.number("n"), 0);
  if (c.dtype("dtype", DType::int64) == DType::boolean) SizeCall::give_up("its kernel tells");
  give_new(c, {c.number("n")}, c.dtype("dtype", DType::int64));
}

/// How many places a triangle of `row` times `col` has, up to the diagonal `offset`.
SizeExpr places_of_triangle(const SizeCall& c, const SizeExpr& row, const SizeExpr& col, const SizeExpr& offset) {
  const SizeExpr first = c.decide({SizeRelation::more, offset, 0})         ? min(col, offset + 1)
                         : c.decide({SizeRelation::more, row + offset, 0}) ? SizeExpr(1)
                                                                           : SizeExpr(0);
  const SizeExpr last = max(0, min(col, row + offset)), rows = max(0, min(row, row + offset));
  const SizeExpr slanted = last - first + 1;
  return floor_div((first + last) * slanted, 2) + max(0, rows - slanted) * col;
}

// (row, col, offset): the places up to a diagonal, or from it on
void triangle(SizeCall& c) {
  const SizeExpr row = c.number("row"), col = c.number("col"), offset = c.number("offset");
  c.require_at_least(row, 0);
  c.require_at_least(col, 0);
  const bool lower = packet_of(c.schema().target.view()) == "aten::tril_indices";
  const DType dtype = c.dtype("dtype", DType::int64);
  if (dtype != DType::int64 && dtype != DType::int32) SizeCall::give_up("its kernel tells");
  if (c.answer({SizeRelation::at_least, 0, row * col}) != Answer::no)
    SizeCall::give_up("nothing tells whether it is empty");
  const SizeExpr places =
      lower ? places_of_triangle(c, row, col, offset) : row * col - places_of_triangle(c, row, col, offset - 1);
  give_new(c, {2, places}, dtype);
}

void scalar(SizeCall& c) { give_new(c, {}, c.dtype("dtype", DType::float32)); }

// (a number)
void of_number(SizeCall& c) {
  const Argument* literal = c.arguments()[0].literal();
  if (c.arguments()[0].number()) return c.give({}, DType::int64);
  if (!literal || literal->is_none()) SizeCall::give_up("a number that is not known");
  c.give({}, literal->is_bool() ? DType::boolean : DType::float64);
}

/// What a tensor of `value` holds: an overload for one number says it of those that are not known, too.
DType type_of_number(const SizeCall& c, const AbstractValue& value) {
  if (value.number()) return DType::int64;
  if (const Argument* literal = value.literal(); literal && literal->is_bool()) return DType::boolean;
  if (const Argument* literal = value.literal(); literal && literal->is_float()) return DType::float32;
  switch (c.schema().arguments[0].type.base) {
    case SchemaType::Base::integer: return DType::int64;
    case SchemaType::Base::boolean: return DType::boolean;
    case SchemaType::Base::floating: return DType::float32;
    default: SizeCall::give_up("a number that is not known");
  }
}

// (numbers, dtype, …): one, or lists of as many; a tensor stays what it is
void tensor_of(SizeCall& c) {
  Sizes sizes;
  const AbstractValue* value = &c.arguments()[0];
  if (const TensorType* tensor = value->tensor()) {
    if (c.dtype("dtype", tensor->dtype) != tensor->dtype) SizeCall::give_up("another type");
    return c.give(*value);
  }
  for (; value->list() && !value->list()->empty(); value = &(*value->list())[0])
    sizes.emplace_back(static_cast<std::int64_t>(value->list()->size()));
  if (value->list()) sizes.emplace_back(0);
  const DType dtype = value->list() ? DType::float32 : type_of_number(c, *value);
  c.give(std::move(sizes), c.dtype("dtype", dtype));
}

constexpr OperatorRecord kRows[] = {
    {"prim::NumToTensor", of_number},
    {"zeros ones empty", filled},
    {"rand randn", random},
    {"randint", whole_numbers},
    {"full", full},
    {"zeros_like ones_like empty_like full_like", like},
    {"rand_like randn_like", random_like},
    {"new_zeros new_ones new_empty new_full", new_filled},
    {"arange", arange},
    {"linspace", linspace},
    {"eye", eye},
    {"randperm", permutation},
    {"scalar_tensor", scalar},
    {"as_tensor tensor", tensor_of},
    {"tril_indices triu_indices", triangle},
};

}  // namespace
}  // namespace factory_rows

std::span<const OperatorRecord> factory_operators() { return factory_rows::kRows; }

}  // namespace fx::internal
