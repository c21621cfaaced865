// Elements chosen, put together, repeated and put in another order.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace index_rows {
namespace {

void require_index(const TensorType& index) {
  if (index.dtype != DType::int64) SizeCall::give_up("an index that its kernel may refuse");
}

void same(SizeCall& c) { c.give(c.self().sizes, c.self().dtype); }

// (self, indices): those that are given are broadcast; they stand together, or in front.
Sizes indexed(SizeCall& c) {
  const TensorType& self = c.self();
  const AbstractValue::List* indices = c.argument("indices").list();
  if (!indices) SizeCall::give_up("nothing is known of the indices");
  c.require(indices->size() <= self.sizes.size(), "no more indices than dimensions");
  Sizes broadcast;
  std::vector<bool> taken(self.sizes.size(), false);
  std::size_t first = self.sizes.size(), count = 0;
  bool together = true;
  for (std::size_t i = 0; i < indices->size(); ++i) {
    const AbstractValue& each = (*indices)[i];
    if (each.is_none()) continue;
    if (!each.tensor() || each.tensor()->dtype != DType::int64) SizeCall::give_up("an index that is no whole number");
    if (count > 0 && !taken[i - 1]) together = false;
    if (count == 0) first = i;
    ++count;
    taken[i] = true;
    broadcast = c.broadcast(broadcast, each.tensor()->sizes);
  }
  Sizes sizes;
  const auto put = [&] { sizes.insert(sizes.end(), broadcast.begin(), broadcast.end()); };
  if (count > 0 && !together) put();
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (count > 0 && together && i == first) put();
    if (!taken[i]) sizes.push_back(self.sizes[i]);
  }
  return sizes;
}
// How the result lies depends on the index.
void index(SizeCall& c) { c.give(AbstractValue(TensorType{c.self().dtype, indexed(c), std::nullopt})); }

// (self, indices, values)
void index_put(SizeCall& c) {
  SizeCall::require_type(c.tensor("values"), c.self().dtype);
  c.require_expands(c.tensor("values").sizes, indexed(c));
  same(c);
}

// (self, dim, index, source)
void index_add(SizeCall& c) {
  const TensorType &self = c.self(), &index = c.tensor("index"), &source = c.tensor("source");
  require_index(index);
  const std::size_t dim = c.dim("dim", self.sizes.size());
  if (self.sizes.size() != source.sizes.size() || self.sizes.empty() || self.dtype != source.dtype ||
      index.sizes.size() != 1)
    SizeCall::give_up("an uncommon form");
  const bool adds = packet_of(c.schema().target.view()).find("add") != std::string_view::npos;
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (adds && i != dim) {
      c.require_expands({source.sizes[i]}, {self.sizes[i]});
    } else {
      c.require_equal(source.sizes[i], i == dim ? index.sizes[0] : self.sizes[i]);
    }
  }
  same(c);
}

// (self, dim, index, value)
void index_fill(SizeCall& c) {
  require_index(c.tensor("index"));
  c.require(c.tensor("index").sizes.size() <= 1, "an index that is a vector");
  c.dim("dim", c.self().sizes.size());
  if (const TensorType* value = c.argument("value").tensor()) c.require(value->sizes.empty(), "a value of one number");
  same(c);
}

// (sorted_sequence, self) or (self, boundaries): a place for each element
void places(SizeCall& c) {
  const TensorType* self = c.argument("self").tensor();
  const bool sorts = c.schema().index_of(Symbol("sorted_sequence")) >= 0;
  const TensorType& sorted = c.tensor(sorts ? "sorted_sequence" : "boundaries");
  if (sorted.sizes.size() != 1 || c.given("side") || c.given("sorter") || sorted.dtype == DType::boolean ||
      (self && self->dtype != sorted.dtype))
    SizeCall::give_up("an uncommon form");
  c.give(self ? self->sizes : Sizes(), c.flag("out_int32") ? DType::int32 : DType::int64);
}

// (elements, test_elements)
void is_in(SizeCall& c) {
  const TensorType* elements = c.argument("elements").tensor();
  for (const std::string_view name : {"element", "elements", "test_element", "test_elements"}) {
    if (c.given(name) && c.promoted({name}) == DType::boolean) SizeCall::give_up("its kernel tells");
  }
  c.give(elements ? elements->sizes : Sizes(), DType::boolean);
}

// (self, dim, index)
void index_select(SizeCall& c) {
  const TensorType &self = c.self(), &index = c.tensor("index");
  if (index.dtype != DType::int32) require_index(index);
  c.require(index.sizes.size() <= 1, "an index that is a vector");
  const std::size_t dim = c.dim("dim", self.sizes.size());
  if (self.sizes.empty()) SizeCall::give_up("a tensor without dimensions");
  Sizes sizes = self.sizes;
  sizes[dim] = index.numel();
  c.give(std::move(sizes), self.dtype);
}

// (self, dim, index)
void gather(SizeCall& c) {
  const TensorType &self = c.self(), &index = c.tensor("index");
  require_index(index);
  const std::size_t rank = self.sizes.size(), dim = c.dim("dim", rank);
  if (rank == 0 || index.sizes.empty() || index.numel() == SizeExpr(0)) SizeCall::give_up("an uncommon form");
  c.require(index.sizes.size() == rank, "an index of as many dimensions");
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != dim) c.require_at_least(self.sizes[i], index.sizes[i]);
  }
  c.give(index.sizes, self.dtype);
}

// (self, index)
void take(SizeCall& c) {
  require_index(c.tensor("index"));
  c.give(c.tensor("index").sizes, c.self().dtype);
}

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
  same(c);
}

// (self, shifts, dims)
void roll(SizeCall& c) {
  const std::vector<std::int64_t> dims = c.literals("dims");
  const Sizes shifts = c.numbers("shifts");
  c.require(!shifts.empty(), "at least one shift");
  c.require(dims.size() == shifts.size() || (dims.empty() && shifts.size() == 1), "a shift for each dimension");
  c.require(dims.empty() || !c.self().sizes.empty(), "dimensions to roll");
  for (const std::int64_t each : dims) c.dim(each, c.self().sizes.size());
  same(c);
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

// (self, dim, index, src or value)
void scatter(SizeCall& c) {
  const TensorType &self = c.self(), &index = c.tensor("index");
  require_index(index);
  const std::size_t rank = self.sizes.size(), dim = c.dim("dim", rank);
  const TensorType* source = c.argument("src").tensor();
  if (source && (source->dtype != self.dtype || source->sizes.empty()))
    SizeCall::give_up("types or a form that its kernel may refuse");
  if (rank == 0 || index.sizes.empty() || index.numel() == SizeExpr(0)) SizeCall::give_up("an uncommon form");
  c.require(index.sizes.size() == rank && (!source || source->sizes.size() == rank), "as many dimensions");
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != dim) c.require_at_least(self.sizes[i], index.sizes[i]);
    if (source) c.require_at_least(source->sizes[i], index.sizes[i]);
  }
  same(c);
}

// How many there are is in the data: rows of places, or elements.
void nonzero(SizeCall& c) {
  const TensorType& self = c.self();
  const SizeExpr count = self.numel();
  const SizeExpr found = c.fresh({0, count.is_integer() ? std::optional(count.value()) : std::nullopt});
  c.give(AbstractValue(TensorType{DType::int64, {found, static_cast<std::int64_t>(self.sizes.size())}, std::nullopt}));
}
void masked_select(SizeCall& c) {
  const TensorType &self = c.self(), &mask = c.tensor("mask");
  if (mask.dtype != DType::boolean) SizeCall::give_up("a mask that is not bool");
  SizeExpr count = 1;
  for (const SizeExpr& size : c.broadcast(self.sizes, mask.sizes)) count = count * size;
  const SizeExpr found = c.fresh({0, count.is_integer() ? std::optional(count.value()) : std::nullopt});
  c.give({found}, self.dtype);
}

// (self, num_samples, replacement)
void multinomial(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(self.sizes.size() == 1 || self.sizes.size() == 2, "one distribution, or rows of them");
  SizeCall::float_type(self);
  Sizes sizes = self.sizes;
  c.require_at_least(c.number("num_samples"), 1);
  c.require_at_least(sizes.back(), 1);
  if (!c.flag("replacement")) c.require_at_least(sizes.back(), c.number("num_samples"));
  sizes.back() = c.number("num_samples");
  c.give(std::move(sizes), DType::int64);
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"multinomial", multinomial},
    {"index", index},
    {"index_put", index_put, differs_by_strides},
    {"index_add", index_add},
    {"index_copy", index_add},
    {"index_fill", index_fill},
    {"searchsorted", places},
    {"bucketize", places},
    {"isin", is_in},
    {"hstack", stack_along<1>},
    {"vstack", stack_along<0>},
    {"dstack", stack_along<2>},
    {"meshgrid", mesh, answers_each},
    {"index_select", index_select, looks_up | gives_contiguous, cost::each_output<0>},
    {"gather", gather, looks_up, cost::each_output<0>},
    {"take", take},
    {"cat", cat, keeps_channels_last, cost::each_output<0>},
    {"concat", cat},
    {"stack", stack, {}, cost::each_output<0>},
    {"repeat", repeat, gives_contiguous},
    {"tile", tile},
    {"repeat_interleave", repeat_interleave},
    {"flip", flip},
    {"roll", roll},
    {"rot90", rot90},
    {"scatter", scatter},
    {"scatter_add", scatter},
    {"scatter_reduce", scatter},
    {"nonzero", nonzero, sizes_of_data},
    {"argwhere", nonzero, sizes_of_data},
    {"masked_select", masked_select, gives_contiguous | sizes_of_data},
};

}  // namespace
}  // namespace index_rows

std::span<const OperatorRecord> index_operators() { return index_rows::kRows; }

}  // namespace fx::internal
