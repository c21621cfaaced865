// Elements chosen and put.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace index_rows {
namespace {

void require_index(const TensorType& index) {
  if (index.dtype != DType::int64) SizeCall::give_up("an index that its kernel may refuse");
}

/// An index for each dimension, or none; a mask is one for each of its own, of as many places as its data say.
std::vector<std::optional<Sizes>> read_indices(SizeCall& c) {
  const TensorType& self = c.self();
  const AbstractValue::List* indices = c.argument("indices").list();
  if (!indices) SizeCall::give_up("nothing is known of the indices");
  std::vector<std::optional<Sizes>> read;
  for (const AbstractValue& each : *indices) {
    const TensorType* index = each.tensor();
    const bool is_mask = index && (index->dtype == DType::boolean || index->dtype == DType::uint8);
    if (!each.is_none() && !is_mask && !(index && index->dtype == DType::int64))
      SizeCall::give_up("an index that is no whole number");
    if (!is_mask) {
      read.push_back(index ? std::optional(index->sizes) : std::nullopt);
      continue;
    }
    if (index->sizes.empty()) SizeCall::give_up("a mask of one number");
    const SizeExpr count = index->numel();
    const SizeExpr found = c.fresh({0, count.is_integer() ? std::optional(count.value()) : std::nullopt});
    for (const SizeExpr& size : index->sizes) {
      c.require(read.size() < self.sizes.size(), "no more indices than dimensions");
      c.require_equal(size, self.sizes[read.size()]);
      read.push_back(Sizes{found});
    }
  }
  c.require(read.size() <= self.sizes.size(), "no more indices than dimensions");
  return read;
}

// (self, indices): those that are given are broadcast; they stand together, or in front.
Sizes indexed(SizeCall& c) {
  const TensorType& self = c.self();
  std::vector<std::optional<Sizes>> indices = read_indices(c);
  indices.resize(self.sizes.size());
  std::vector<const Sizes*> given;
  std::size_t first = self.sizes.size(), count = 0;
  bool together = true;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (count > 0 && !indices[i - 1]) together = false;
    if (count == 0) first = i;
    ++count;
    given.push_back(&*indices[i]);
  }
  const Sizes broadcast = c.broadcast(given);
  SizeExpr reads = 1;
  for (const SizeExpr& size : broadcast) reads = reads * size;
  Sizes sizes;
  const auto put = [&] { sizes.insert(sizes.end(), broadcast.begin(), broadcast.end()); };
  if (count > 0 && !together) put();
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (count > 0 && together && i == first) put();
    if (!indices[i]) sizes.push_back(self.sizes[i]);
    // How many places data decide is found in the tensor itself.
    if (indices[i] && !reads.is_of_data()) c.require_places(self.sizes[i], reads);
  }
  return sizes;
}
// How the result lies depends on the index.
void index(SizeCall& c) { c.give(AbstractValue(TensorType{c.self().dtype, indexed(c), std::nullopt})); }

// (self, indices, values)
void index_put(SizeCall& c) {
  SizeCall::require_type(c.tensor("values"), c.self().dtype);
  c.require_expands(c.tensor("values").sizes, indexed(c));
  c.give_same();
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
  c.give_same();
}

// (self, dim, index, value)
void index_fill(SizeCall& c) {
  require_index(c.tensor("index"));
  c.require(c.tensor("index").sizes.size() <= 1, "an index that is a vector");
  c.dim("dim", c.self().sizes.size());
  if (const TensorType* value = c.argument("value").tensor()) c.require(value->sizes.empty(), "a value of one number");
  c.give_same();
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
  c.require_places(sizes[dim], index.numel());
  sizes[dim] = index.numel();
  c.give(std::move(sizes), self.dtype);
}

/// The index is no larger than what it names places of, or names none.
void require_within(SizeCall& c, const TensorType& index, const TensorType& of, std::size_t dim) {
  c.require_any({{SizeRelation::at_least, of.sizes[dim], index.sizes[dim]}, {SizeRelation::equal, index.numel(), 0}});
}

// (self, dim, index)
void gather(SizeCall& c) {
  const TensorType &self = c.self(), &index = c.tensor("index");
  require_index(index);
  const std::size_t rank = self.sizes.size(), dim = c.dim("dim", rank);
  if (rank == 0 || index.sizes.empty() || index.numel() == SizeExpr(0)) SizeCall::give_up("an uncommon form");
  c.require(index.sizes.size() == rank, "an index of as many dimensions");
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != dim) require_within(c, index, self, i);
  }
  c.give(index.sizes, self.dtype);
}

// (self, index)
void take(SizeCall& c) {
  require_index(c.tensor("index"));
  c.require_places(c.self().numel(), c.tensor("index").numel());
  c.give(c.tensor("index").sizes, c.self().dtype);
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
    if (i != dim) require_within(c, index, self, i);
    if (source) require_within(c, index, *source, i);
  }
  c.give_same();
}

// How many there are is in the data: rows of places, or elements.
void nonzero(SizeCall& c) {
  const TensorType& self = c.self();
  const SizeExpr count = self.numel();
  const SizeExpr found = c.fresh({0, count.is_integer() ? std::optional(count.value()) : std::nullopt});
  c.give(AbstractValue(TensorType{DType::int64, {found, static_cast<std::int64_t>(self.sizes.size())}, std::nullopt}));
}
// A number that is in the data.
void number_read(SizeCall& c) {
  if (!is_whole(c.self().dtype) || c.self().dtype == DType::boolean) SizeCall::give_up("a number that is not whole");
  if (packet_of(c.schema().target.view()) == "aten::item") c.require_equal(c.self().numel(), 1);
  c.give(AbstractValue(c.fresh({})));
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
    {"index_add index_copy", index_add},
    {"index_fill", index_fill},
    {"searchsorted bucketize", places},
    {"isin", is_in},
    {"index_select", index_select, looks_up | gives_contiguous, cost::each_output<0>},
    {"gather", gather, looks_up, cost::each_output<0>},
    {"take", take},
    {"scatter scatter_add scatter_reduce", scatter},
    {"item _local_scalar_dense", number_read, reads_data},
    {"nonzero argwhere", nonzero, sizes_of_data},
    {"masked_select", masked_select, gives_contiguous | sizes_of_data},
};

}  // namespace
}  // namespace index_rows

std::span<const OperatorRecord> index_operators() { return index_rows::kRows; }

}  // namespace fx::internal
