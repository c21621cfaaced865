// Tensors put together, repeated and put in another order.
#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace join_rows {
namespace {

// (tensors, dim)
void cat(SizeCall& c) {
  const std::vector<const TensorType*> tensors = c.tensors("tensors");
  c.require(!tensors.empty(), "at least one tensor");
  DType dtype = tensors[0]->dtype;
  const TensorType* first = nullptr;
  // A vector of no elements goes with everything.
  const auto is_nothing = [&](const TensorType& each, Answer answer) {
    return each.sizes.size() == 1 && c.answer({SizeRelation::equal, each.sizes[0], 0}) == answer;
  };
  for (const TensorType* each : tensors) {
    if (each->dtype != dtype) SizeCall::give_up("types that are promoted");
    c.require(!each->sizes.empty(), "no tensor without dimensions");
    if (!first || is_nothing(*first, Answer::yes)) first = each;
  }
  const std::size_t dim = c.dim("dim", first->sizes.size());
  Sizes sizes = first->sizes;
  sizes[dim] = 0;
  for (const TensorType* each : tensors) {
    if (is_nothing(*each, Answer::yes)) continue;
    if (each->sizes.size() != sizes.size() &&
        (is_nothing(*each, Answer::unknown) || is_nothing(*first, Answer::unknown)))
      SizeCall::give_up("a vector that may be empty");
    c.require(each->sizes.size() == sizes.size(), "tensors of as many dimensions");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i == dim) {
        sizes[i] = sizes[i] + each->sizes[i];
      } else {
        c.require_equal(sizes[i], each->sizes[i]);
      }
    }
  }
  c.give(std::move(sizes), dtype);
}

// (tensors): with dimensions of 1 before, or behind for the depth, put together along one
template <std::size_t dim>
void stack_along(SizeCall& c) {
  AbstractValue::List list;
  std::size_t along = dim;
  for (const TensorType* each : c.tensors("tensors")) {
    TensorType tensor = *each;
    if (dim == 1 && tensor.sizes.size() < 2) along = 0;
    const std::size_t least = dim == 1 ? 1 : 2;
    if (tensor.sizes.size() < least) tensor.sizes.insert(tensor.sizes.begin(), least - tensor.sizes.size(), 1);
    if (dim == 2 && tensor.sizes.size() < 3) tensor.sizes.emplace_back(1);
    tensor.strides = each->is_contiguous() ? std::optional(contiguous_strides(tensor.sizes)) : std::nullopt;
    list.emplace_back(std::move(tensor));
  }
  const AbstractValue arguments[] = {std::move(list), SizeExpr(static_cast<std::int64_t>(along))};
  c.give_as(Symbol("aten::cat"), arguments);
}

// (tensors, indexing): as views that repeat each along the others'
void mesh(SizeCall& c) {
  const std::vector<const TensorType*> tensors = c.tensors("tensors");
  c.require(!tensors.empty(), "at least one vector");
  std::vector<std::size_t> dims(tensors.size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = i;
  if (c.given("indexing") && c.text("indexing") == "xy" && dims.size() > 1) std::swap(dims[0], dims[1]);
  Sizes sizes(tensors.size(), 1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    c.require(tensors[i]->sizes.size() <= 1 && tensors[i]->dtype == tensors[0]->dtype, "vectors of one type");
    sizes[dims[i]] = tensors[i]->numel();
  }
  std::vector<TensorType> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Sizes strides(sizes.size(), 0);
    const bool is_known = tensors[i]->strides.has_value();
    if (is_known && !tensors[i]->sizes.empty()) strides[dims[i]] = (*tensors[i]->strides)[0];
    parts.push_back({tensors[i]->dtype, sizes, is_known ? std::optional(std::move(strides)) : std::nullopt});
  }
  c.give_list(std::move(parts));
}

// (tensors, dim)
void stack(SizeCall& c) {
  const std::vector<const TensorType*> tensors = c.tensors("tensors");
  c.require(!tensors.empty(), "at least one tensor");
  Sizes sizes = tensors[0]->sizes;
  for (const TensorType* each : tensors) {
    if (each->dtype != tensors[0]->dtype) SizeCall::give_up("types that are promoted");
    c.require(each->sizes.size() == sizes.size(), "tensors of as many dimensions");
    for (std::size_t i = 0; i < sizes.size(); ++i) c.require_equal(sizes[i], each->sizes[i]);
  }
  const std::size_t dim = c.dim("dim", sizes.size() + 1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), static_cast<std::int64_t>(tensors.size()));
  c.give(std::move(sizes), tensors[0]->dtype);
}

void repeat_sizes(SizeCall& c, const Sizes& times) {
  const TensorType& self = c.self();
  c.require(times.size() >= self.sizes.size(), "a number for each dimension");
  Sizes sizes(times.size());
  const std::size_t more = times.size() - self.sizes.size();
  for (std::size_t i = 0; i < times.size(); ++i) {
    c.require_at_least(times[i], 0);
    sizes[i] = times[i] * (i < more ? SizeExpr(1) : self.sizes[i - more]);
  }
  c.give(std::move(sizes), self.dtype);
}

// (self, repeats), and tile, which pads its list
void repeat(SizeCall& c) { repeat_sizes(c, c.numbers("repeats")); }
void tile(SizeCall& c) {
  Sizes times = c.numbers("dims");
  const std::size_t rank = c.self().sizes.size();
  if (times.size() < rank) times.insert(times.begin(), rank - times.size(), 1);
  repeat_sizes(c, times);
}

// (self, repeats, dim, output_size): a number for all
void repeat_interleave(SizeCall& c) {
  const TensorType& self = c.self();
  if (!c.argument("repeats").number()) SizeCall::give_up("as many as data say");
  const SizeExpr times = c.number("repeats");
  if (c.given("output_size")) SizeCall::give_up("a size that is given");
  c.require_at_least(times, 0);
  if (!c.given("dim")) return c.give({self.numel() * times}, self.dtype);
  const std::size_t dim = c.dim("dim", self.sizes.size());
  if (self.sizes.empty()) SizeCall::give_up("a tensor without dimensions");
  Sizes sizes = self.sizes;
  sizes[dim] = sizes[dim] * times;
  c.give(std::move(sizes), self.dtype);
}

void flip(SizeCall& c) {
  const TensorType& self = c.self();
  std::vector<bool> seen(self.sizes.size(), false);
  for (const std::int64_t each : c.literals("dims")) {
    const std::size_t dim = c.dim(each, self.sizes.size());
    if (self.sizes.empty()) continue;
    c.require(!seen[dim], "each dimension once");
    seen[dim] = true;
  }
  c.give_same();
}

// (self, shifts, dims)
void roll(SizeCall& c) {
  const std::vector<std::int64_t> dims = c.literals("dims");
  const Sizes shifts = c.numbers("shifts");
  c.require(!shifts.empty(), "at least one shift");
  c.require(dims.size() == shifts.size() || (dims.empty() && shifts.size() == 1), "a shift for each dimension");
  c.require(dims.empty() || !c.self().sizes.empty(), "dimensions to roll");
  for (const std::int64_t each : dims) c.dim(each, c.self().sizes.size());
  c.give_same();
}

// (self, k, dims)
void rot90(SizeCall& c) {
  const TensorType& self = c.self();
  const std::vector<std::int64_t> dims = c.literals("dims");
  const std::int64_t turns = c.literal("k");
  c.require(dims.size() == 2 && self.sizes.size() >= 2, "two dimensions");
  const std::size_t a = c.dim(dims[0], self.sizes.size()), b = c.dim(dims[1], self.sizes.size());
  c.require(a != b, "two dimensions");
  Sizes sizes = self.sizes;
  if (turns % 2 != 0) std::swap(sizes[a], sizes[b]);
  // A turn of two dimensions is a view of a flipped copy.
  c.give(AbstractValue(TensorType{self.dtype, std::move(sizes), std::nullopt}));
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"hstack", stack_along<1>},
    {"vstack", stack_along<0>},
    {"dstack", stack_along<2>},
    {"meshgrid", mesh, answers_each},
    {"cat", cat, keeps_channels_last, cost::each_output<0>},
    {"concat", cat},
    {"stack", stack, {}, cost::each_output<0>},
    {"repeat", repeat, gives_contiguous},
    {"tile", tile},
    {"repeat_interleave", repeat_interleave},
    {"flip", flip},
    {"roll", roll},
    {"rot90", rot90},
};

}  // namespace
}  // namespace join_rows

std::span<const OperatorRecord> join_operators() { return join_rows::kRows; }

}  // namespace fx::internal
