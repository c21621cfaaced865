// Views, and what takes a tensor apart: the same elements in another form.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {

ViewStrides view_strides(const SizeCall& c, const TensorType& of, const Sizes& sizes) {
  ViewStrides made;
  const auto certain = [&](const SizeCondition& condition) {
    const Answer answer = c.answer(condition);
    made.is_decided = made.is_decided && answer != Answer::unknown;
    return answer == Answer::yes;
  };
  const auto equal = [&](const SizeExpr& a, const SizeExpr& b) { return certain({SizeRelation::equal, a, b}); };
  if (of.numel() == SizeExpr(0)) return {of.sizes == sizes ? *of.strides : contiguous_strides(sizes)};
  if (of.is_contiguous()) return {contiguous_strides(sizes)};
  Sizes strides(sizes.size());
  std::size_t next = sizes.size();
  SizeExpr base = of.strides->back(), run = 1, viewed = 1;
  for (std::size_t dim = of.sizes.size(); dim-- > 0;) {
    run = run * of.sizes[dim];
    if (dim > 0 && (equal(of.sizes[dim - 1], 1) || equal((*of.strides)[dim - 1], run * base))) continue;
    for (; next > 0; --next) {
      const bool is_whole = equal(viewed, run);
      if (is_whole ? !equal(sizes[next - 1], 1) : certain({SizeRelation::at_least, viewed, run})) break;
      strides[next - 1] = viewed * base;
      viewed = viewed * sizes[next - 1];
    }
    if (!equal(viewed, run)) return made;
    if (dim > 0) base = (*of.strides)[dim - 1];
    run = viewed = 1;
  }
  if (next == 0) made.strides = std::move(strides);
  return made;
}

namespace view_rows {
namespace {

TensorType like(const TensorType& tensor, Sizes sizes, std::optional<Sizes> strides = std::nullopt) {
  return {tensor.dtype, std::move(sizes), std::move(strides)};
}

/// The same elements in these sizes: as a view where that is one, and where none is, as a copy in order or not at all.
void give_view(SizeCall& c, const TensorType& self, Sizes sizes, bool copies) {
  TensorType made = like(self, std::move(sizes));
  if (self.strides) {
    ViewStrides view = view_strides(c, self, made.sizes);
    const bool is_none = !view.strides && view.is_decided;
    c.require(copies || !is_none, "strides of which a view can be made");
    if (!copies && !view.strides) c.leave_unsaid("whether its strides can be viewed so");
    made.strides = is_none ? contiguous_strides(made.sizes) : std::move(view.strides);
  }
  if (!self.strides && !copies) c.leave_unsaid("whether its strides, which are not known, can be viewed so");
  c.give(AbstractValue(std::move(made)));
}

void view(SizeCall& c) {
  const TensorType& self = c.self();
  if (c.given("dtype")) {
    const DType dtype = c.dtype("dtype", self.dtype);
    if (element_size(dtype) != element_size(self.dtype)) SizeCall::give_up("elements of another size");
    return c.give(AbstractValue(TensorType{dtype, self.sizes, self.strides}));
  }
  const bool copies = c.schema().index_of(Symbol("shape")) >= 0;  // reshape
  give_view(c, self, c.reshaped(self.numel(), c.numbers(copies ? "shape" : "size")), copies);
}

void view_as(SizeCall& c) {
  const TensorType &self = c.self(), &other = c.tensor("other");
  c.require_equal(self.numel(), other.numel());
  give_view(c, self, other.sizes, packet_of(c.schema().target.view()).find("reshape") != std::string_view::npos);
}

// (self, start_dim, end_dim)
void flatten(SizeCall& c) {
  const TensorType& self = c.self();
  const bool all = c.schema().index_of(Symbol("start_dim")) < 0;  // ravel
  const std::size_t first = all ? 0 : c.dim("start_dim", self.sizes.size());
  const std::size_t last = all ? self.sizes.size() - 1 : c.dim("end_dim", self.sizes.size());
  if (self.sizes.empty()) return give_view(c, self, {1}, true);
  c.require(first <= last, "a first dimension before the last");
  Sizes sizes;
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (i > first && i <= last) {
      sizes.back() = sizes.back() * self.sizes[i];
    } else {
      sizes.push_back(self.sizes[i]);
    }
  }
  if (!all) return give_view(c, self, std::move(sizes), true);
  Sizes strides = contiguous_strides(sizes);
  c.give(AbstractValue(like(self, std::move(sizes), std::move(strides))));
}

// (self, dim, sizes)
void unflatten(SizeCall& c) {
  const TensorType& self = c.self();
  c.require(!self.sizes.empty(), "a dimension to unflatten");
  const std::size_t at = c.dim("dim", self.sizes.size());
  const Sizes parts = c.reshaped(self.sizes[at], c.numbers("sizes"));
  c.require(!parts.empty(), "sizes to unflatten to");
  Sizes sizes(self.sizes);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at), parts.begin(), parts.end());
  give_view(c, self, std::move(sizes), false);
}

// (self) or (self, dim): sizes of 1 go.
void squeeze(SizeCall& c) {
  const TensorType& self = c.self();
  const std::vector<bool> named = c.dims("dim", self.sizes.size(), !c.given("dim"));
  Sizes sizes;
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    const Answer one = named[i] ? c.answer({SizeRelation::equal, self.sizes[i], 1}) : Answer::no;
    if (one == Answer::unknown) SizeCall::give_up_rank("nothing tells whether " + self.sizes[i].str() + " is 1");
    if (one == Answer::no) sizes.push_back(self.sizes[i]);
  }
  c.give(std::move(sizes), self.dtype);
}

void unsqueeze(SizeCall& c) {
  const TensorType& self = c.self();
  Sizes sizes = self.sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(c.dim("dim", sizes.size() + 1)), 1);
  c.give(std::move(sizes), self.dtype);
}

void give_permuted(SizeCall& c, const TensorType& self, const std::vector<std::size_t>& from) {
  Sizes sizes, strides;
  const std::optional<Sizes> known = self.strides;
  for (const std::size_t dim : from) {
    sizes.push_back(self.sizes[dim]);
    if (known) strides.push_back((*known)[dim]);
  }
  // Nothing is said of strides that are not known: not that they are in order either.
  c.give(AbstractValue(like(self, std::move(sizes), known ? std::optional(std::move(strides)) : std::nullopt)));
}

void transpose(SizeCall& c) {
  const TensorType& self = c.self();
  const std::size_t rank = self.sizes.size();
  std::vector<std::size_t> from(rank);
  for (std::size_t i = 0; i < rank; ++i) from[i] = i;
  const bool named = c.schema().index_of(Symbol("dim0")) >= 0;
  const std::size_t a = c.dim(named ? "dim0" : "axis0", rank), b = c.dim(named ? "dim1" : "axis1", rank);
  if (rank > 0) std::swap(from[a], from[b]);
  give_permuted(c, self, from);
}

void t(SizeCall& c) {
  const TensorType& self = c.self();
  const bool is_t =
      packet_of(c.schema().target.view()).ends_with("::t") || packet_of(c.schema().target.view()).ends_with("::t_");
  c.require(!is_t || self.sizes.size() <= 2, "at most two dimensions");
  std::vector<std::size_t> from;
  for (std::size_t i = self.sizes.size(); i-- > 0;) from.push_back(i);
  give_permuted(c, self, from);
}

void permute(SizeCall& c) {
  const TensorType& self = c.self();
  std::vector<std::size_t> from;
  std::vector<bool> taken(self.sizes.size(), false);
  for (const std::int64_t written : c.literals("dims")) {
    const std::size_t dim = c.dim(written, self.sizes.size());
    c.require(!self.sizes.empty() && !taken[dim], "each dimension once");
    taken[dim] = true;
    from.push_back(dim);
  }
  c.require(from.size() == self.sizes.size(), "as many dimensions as the tensor has");
  give_permuted(c, self, from);
}

// (self, source, destination)
void movedim(SizeCall& c) {
  const TensorType& self = c.self();
  const std::size_t rank = self.sizes.size();
  const std::vector<std::int64_t> source = c.literals("source"), destination = c.literals("destination");
  c.require(source.size() == destination.size(), "as many sources as destinations");
  constexpr std::size_t kFree = SIZE_MAX;
  std::vector<std::size_t> from(rank, kFree);
  std::vector<bool> moved(rank, false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::size_t a = c.dim(source[i], rank), b = c.dim(destination[i], rank);
    if (rank == 0) continue;
    c.require(!moved[a] && from[b] == kFree, "each dimension once");
    moved[a] = true;
    from[b] = a;
  }
  std::size_t next = 0;
  for (std::size_t& each : from) {
    if (each != kFree) continue;
    while (moved[next]) ++next;
    each = next++;
  }
  give_permuted(c, self, from);
}

void expand_to(SizeCall& c, const TensorType& self, Sizes sizes) {
  c.require(sizes.size() >= self.sizes.size(), "no fewer dimensions than the tensor has");
  const std::size_t more = sizes.size() - self.sizes.size();
  std::optional<Sizes> strides = self.strides ? std::optional(Sizes(sizes.size(), 0)) : std::nullopt;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (i < more) {
      c.require(sizes[i] != SizeExpr(-1), "a size for each new dimension");
      c.require_at_least(sizes[i], 0);
      if (strides) (*strides)[i] = 0;
      continue;
    }
    if (sizes[i].is_integer() && sizes[i].value() < -1) SizeCall::give_up("a negative size");
    const SizeExpr& had = self.sizes[i - more];
    if (sizes[i] == SizeExpr(-1) || c.answer({SizeRelation::equal, sizes[i], had}) == Answer::yes) {
      sizes[i] = had;
      if (strides) (*strides)[i] = (*self.strides)[i - more];
      continue;
    }
    const Answer was_one = c.answer({SizeRelation::equal, had, 1});
    if (was_one == Answer::no) c.require_equal(had, sizes[i]);
    if (was_one == Answer::unknown)
      c.require_any({{SizeRelation::equal, had, sizes[i]}, {SizeRelation::equal, had, 1}});
    if (was_one != Answer::yes) strides.reset();
    if (strides) (*strides)[i] = 0;
  }
  // What is not expanded is as it was; how strides of new dimensions are written does not matter where it is not known.
  if (more > 0) strides.reset();
  c.give(AbstractValue(like(self, std::move(sizes), std::move(strides))));
}

void expand(SizeCall& c) { expand_to(c, c.self(), c.numbers("size")); }
void expand_as(SizeCall& c) { expand_to(c, c.self(), c.tensor("other").sizes); }

// (self, offset, dim1, dim2)
void diagonal(SizeCall& c) {
  const TensorType& self = c.self();
  const std::size_t rank = self.sizes.size();
  const std::size_t a = c.dim("dim1", rank), b = c.dim("dim2", rank);
  c.require(rank >= 2 && a != b, "two dimensions");
  const SizeExpr offset = c.number("offset");
  const bool above = c.decide({SizeRelation::at_least, offset, 0});
  SizeExpr length = above ? min(self.sizes[a], self.sizes[b] - offset) : min(self.sizes[a] + offset, self.sizes[b]);
  if (c.answer({SizeRelation::at_least, length, 0}) != Answer::yes) length = max(length, 0);
  Sizes sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != a && i != b) sizes.push_back(self.sizes[i]);
  }
  sizes.push_back(length);
  c.give(AbstractValue(like(self, std::move(sizes))));
}

// (self, dimension, size, step)
void unfold(SizeCall& c) {
  const TensorType& self = c.self();
  const SizeExpr size = c.number("size"), step = c.number("step");
  c.require(!self.sizes.empty(), "a dimension");
  const std::size_t dim = c.dim("dimension", self.sizes.size());
  c.require_at_least(size, 0);
  c.require_at_least(step, 1);
  c.require_at_least(self.sizes[dim], size);
  Sizes sizes = self.sizes;
  sizes[dim] = floor_div(self.sizes[dim] - size, step) + 1;
  sizes.push_back(size);
  c.give(AbstractValue(like(self, std::move(sizes))));
}

void as_strided(SizeCall& c) {
  Sizes sizes = c.numbers("size"), strides = c.numbers("stride");
  c.require(sizes.size() == strides.size(), "a stride for each size");
  SizeExpr last = c.given("storage_offset") ? c.number("storage_offset") : SizeExpr(0);
  c.require_at_least(last, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    c.require_at_least(sizes[i], 0);
    if (strides[i].is_integer() && strides[i].value() < 0) SizeCall::give_up("a negative stride");
    last = last + (sizes[i] - 1) * strides[i];
  }
  // A storage may hold more than its tensor.
  if (c.answer({SizeRelation::less, last, c.self().numel()}) != Answer::yes) SizeCall::give_up("beyond its elements");
  c.give(AbstractValue(like(c.self(), std::move(sizes), std::move(strides))));
}

void alias(SizeCall& c) {
  const AbstractValue& first = c.arguments()[0];
  if (!first.tensor()) SizeCall::give_up("nothing is known of its input");
  c.give(first);
}

void contiguous(SizeCall& c) {
  c.give(TensorType{c.self().dtype, c.self().sizes, c.self().is_contiguous() ? c.self().strides : std::nullopt});
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"view", view, keeps_type | views_all | raises_by_strides, nullptr, &no_op::keeps_shape},
    {"reshape", view, keeps_type | views_all, nullptr, &no_op::keeps_shape},
    {"_unsafe_view", view, views_all | raises_by_strides},
    {"_reshape_alias", as_strided, views_all},
    {"view_as", view_as, keeps_type | views_all | raises_by_strides},
    {"reshape_as", view_as, views_all},
    {"flatten", flatten, keeps_type | views_all, nullptr, &no_op::keeps_shape},
    {"ravel", flatten, views_all},
    {"unflatten", unflatten, views_all | raises_by_strides},
    {"squeeze", squeeze, keeps_type | views_all, nullptr, &no_op::keeps_shape},
    {"unsqueeze", unsqueeze, keeps_type | views_all},
    {"transpose", transpose, keeps_type, nullptr, &no_op::swaps_nothing},
    {"swapaxes swapdims", transpose},
    {"t", t, keeps_type},
    {"numpy_T", t},
    {"permute", permute, keeps_type, nullptr, &no_op::keeps_order},
    {"movedim moveaxis", movedim},
    {"expand", expand, keeps_type, nullptr, &no_op::keeps_shape},
    {"broadcast_to", expand},
    {"expand_as", expand_as},
    {"diagonal", diagonal},
    {"unfold", unfold},
    {"as_strided", as_strided},
    {"alias detach", alias, keeps_type | views_all},
    {"lift_fresh", alias},
    {"contiguous", contiguous, keeps_type | gives_contiguous, cost::each_output<0>, &no_op::already_contiguous},
    {"lift_fresh_copy", contiguous},
};

}  // namespace
}  // namespace view_rows

std::span<const OperatorRecord> view_operators() { return view_rows::kRows; }

}  // namespace fx::internal
