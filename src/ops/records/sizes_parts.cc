// What is cut out of a tensor along one dimension, and what it is cut into.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace part_rows {
namespace {

/// A view along one dimension: its size and by how much its stride is multiplied.
TensorType cut(const TensorType& self, std::size_t dim, const SizeExpr& size, const SizeExpr& step = 1) {
  TensorType part = self;
  part.sizes[dim] = size;
  if (part.strides && step != SizeExpr(1)) (*part.strides)[dim] = (*part.strides)[dim] * step;
  return part;
}

TensorType without(const TensorType& self, std::size_t dim) {
  TensorType part = self;
  part.sizes.erase(part.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  if (part.strides) part.strides->erase(part.strides->begin() + static_cast<std::ptrdiff_t>(dim));
  return part;
}

// (self, dim, index)
void select(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr index = c.number("index");
  if (c.decide({SizeRelation::at_least, index, 0})) {
    c.require({SizeRelation::less, index, self.sizes[dim]});
  } else {
    c.require_at_least(self.sizes[dim] + index, 0);
  }
  c.give(AbstractValue(without(self, dim)));
}

/// A place counted from the front, at least 0.
SizeExpr from_front(SizeCall& c, const SizeExpr& at, const SizeExpr& size) {
  if (c.decide({SizeRelation::at_least, at, 0})) return at;
  const SizeExpr place = at + size;
  return c.answer({SizeRelation::at_least, place, 0}) == Answer::yes ? place : max(place, 0);
}

// (self, dim, start, end, step)
void slice(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr& size = self.sizes[dim];
  const SizeExpr start = c.given("start") ? from_front(c, c.number("start"), size) : SizeExpr(0);
  SizeExpr end = size;
  if (c.given("end") && c.number("end") != SizeExpr(INT64_MAX)) end = from_front(c, c.number("end"), size);
  if (c.answer({SizeRelation::at_most, end, size}) != Answer::yes) end = min(end, size);
  const SizeExpr step = c.number("step");
  c.require_at_least(step, 1);
  SizeExpr length = end - start;
  if (c.answer({SizeRelation::at_least, length, 0}) != Answer::yes) length = max(length, 0);
  c.give(AbstractValue(cut(self, dim, ceil_div(length, step), step)));
}

// (self, dim, start, length)
void narrow(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr start = c.number("start"), length = c.number("length");
  c.require_at_least(length, 0);
  if (!c.decide({SizeRelation::at_least, start, 0})) SizeCall::give_up("a negative start");
  c.require_at_least(self.sizes[dim], start + length);
  c.give(AbstractValue(cut(self, dim, length)));
}

void give_parts(SizeCall& c, const TensorType& self, std::size_t dim, const Sizes& parts) {
  std::vector<TensorType> tensors;
  for (const SizeExpr& size : parts) tensors.push_back(cut(self, dim, size));
  c.give_list(std::move(tensors));
}

/// Parts of `size` each, the last as large as what is left; as many as a literal says.
void give_equal_parts(SizeCall& c, const TensorType& self, std::size_t dim, const SizeExpr& size) {
  if (c.is_certainly(size, 0)) {
    c.require_equal(self.sizes[dim], 0);
    return give_parts(c, self, dim, {SizeExpr(0)});
  }
  const SizeExpr count = max(ceil_div(self.sizes[dim], size), 1);
  constexpr std::int64_t kMost = 4096;
  if (!count.is_integer() || count.value() > kMost) SizeCall::give_up("how many parts there are");
  Sizes parts(static_cast<std::size_t>(count.value()), size);
  parts.back() = self.sizes[dim] - size * (count - 1);
  give_parts(c, self, dim, parts);
}

// (self, split_size, dim), or (self, split_sizes, dim)
void split(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const char* name = c.schema().index_of(Symbol("split_sizes")) >= 0  ? "split_sizes"
                     : c.schema().index_of(Symbol("split_size")) >= 0 ? "split_size"
                                                                      : "sections";
  if (c.argument(name).number()) {
    c.require_at_least(c.number(name), 0);
    return give_equal_parts(c, self, dim, c.number(name));
  }
  const Sizes parts = c.numbers(name);
  SizeExpr sum = 0;
  for (const SizeExpr& each : parts) {
    c.require_at_least(each, 0);
    sum = sum + each;
  }
  c.require_equal(sum, self.sizes[dim]);
  give_parts(c, self, dim, parts);
}

// (self, chunks, dim): fewer where they do not come out.
void chunk(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr chunks = c.number("chunks");
  c.require_at_least(chunks, 1);
  const SizeExpr size = ceil_div(self.sizes[dim], chunks);
  if (chunks.is_integer() && c.is_certainly(size, 0)) {
    return give_parts(c, self, dim, Sizes(static_cast<std::size_t>(chunks.value()), 0));
  }
  if (chunks.is_integer() && c.answer({SizeRelation::multiple, self.sizes[dim], chunks}) == Answer::yes)
    return give_parts(c, self, dim, Sizes(static_cast<std::size_t>(chunks.value()), size));
  give_equal_parts(c, self, dim, size);
}

// (self, sections, dim): always as many, the first ones one larger.
void tensor_split(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  Sizes parts;
  if (c.given("indices")) {
    SizeExpr from = 0;
    Sizes places = c.numbers("indices");
    places.push_back(self.sizes[dim]);
    for (const SizeExpr& place : places) {
      if (c.answer({SizeRelation::at_least, place, 0}) != Answer::yes) SizeCall::give_up("places from behind");
      const SizeExpr to = min(place, self.sizes[dim]);
      parts.push_back(max(to - from, 0));
      from = to;
    }
    return give_parts(c, self, dim, parts);
  }
  const std::int64_t sections = c.literal("sections");
  c.require(sections >= 1, "at least one part");
  for (std::int64_t i = 0; i < sections; ++i)
    parts.push_back(floor_div(self.sizes[dim] + (sections - 1 - i), sections));
  give_parts(c, self, dim, parts);
}

void unbind(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr& count = self.sizes[dim];
  if (!count.is_integer()) SizeCall::give_up("how many parts there are");
  c.give_list(std::vector<TensorType>(static_cast<std::size_t>(count.value()), without(self, dim)));
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"narrow", narrow},
    {"slice", slice, keeps_type, nullptr, &no_op::whole_slice},
    {"select", select, keeps_type},
    {"split split_with_sizes unsafe_split_with_sizes", split, lists_parts},
    {"unsafe_split", split},
    {"chunk unsafe_chunk", chunk, counts_parts},
    {"tensor_split", tensor_split, counts_parts},
    {"unbind", unbind},
};

}  // namespace
}  // namespace part_rows

std::span<const OperatorRecord> part_operators() { return part_rows::kRows; }

}  // namespace fx::internal
