// Elements along dimensions combined, and those that are put in order along one.
#include <algorithm>
#include <cmath>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace reduction_rows {
namespace {

/// Sizes without the named dimensions, or with 1 in their place.
Sizes reduced(const TensorType& self, const std::vector<bool>& named, bool keeps) {
  Sizes sizes;
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (!named[i]) sizes.push_back(self.sizes[i]);
    if (named[i] && keeps) sizes.emplace_back(1);
  }
  return sizes;
}

bool keeps_dims(const SizeCall& c) { return c.schema().index_of(Symbol("keepdim")) >= 0 && c.flag("keepdim"); }

Sizes reduced(SizeCall& c, bool none_is_all = true) {
  const TensorType& self = c.self();
  return reduced(self, c.dims("dim", self.sizes.size(), none_is_all), keeps_dims(c));
}

/// Of nothing there is no largest element.
void require_elements(SizeCall& c, const std::vector<bool>& named) {
  const TensorType& self = c.self();
  for (std::size_t i = 0; i < self.sizes.size(); ++i) {
    if (named[i]) c.require_at_least(self.sizes[i], 1);
  }
}

DType real_type(const SizeCall& c) {
  const DType dtype = c.self().dtype;
  if (!is_float(dtype) && !is_whole(dtype)) SizeCall::give_up("complex numbers");
  return dtype;
}
DType number_type(const SizeCall& c) {
  if (c.self().dtype == DType::boolean) SizeCall::give_up("its kernel tells");
  return real_type(c);
}
DType float_type(const SizeCall& c) {
  const DType dtype = c.self().dtype;
  if (!is_float(dtype)) SizeCall::give_up("its kernel tells");
  return dtype;
}

void sum(SizeCall& c) {
  const DType dtype = real_type(c);
  c.give(reduced(c), c.dtype("dtype", is_whole(dtype) ? DType::int64 : dtype));
}
void sum_of_floats(SizeCall& c) {
  if (!is_float(c.dtype("dtype", float_type(c)))) SizeCall::give_up("its kernel tells");
  sum(c);
}

void mean(SizeCall& c) {
  if (c.given("dtype") && !is_float(c.dtype("dtype", DType::float32))) SizeCall::give_up("its kernel tells");
  const DType dtype = c.given("dtype") ? c.dtype("dtype", DType::float32) : float_type(c);
  c.give(reduced(c), dtype);
}
void mean_of_floats(SizeCall& c) {
  float_type(c);
  mean(c);
}

// (self, dim, keepdim)
void extremes(SizeCall& c) {
  const TensorType& self = c.self();
  real_type(c);
  const std::vector<bool> named = c.dims("dim", self.sizes.size());
  require_elements(c, named);
  c.give(reduced(self, named, keeps_dims(c)), self.dtype);
}

// max, min and median: of all, of one dimension with places, or of two tensors.
void extreme(SizeCall& c) {
  if (c.given("other")) {
    const TensorType &self = c.self(), &other = c.tensor("other");
    return c.give(c.broadcast(self.sizes, other.sizes), c.promoted({"self", "other"}));
  }
  extremes(c);
  if (c.given("dim")) c.give(reduced(c), DType::int64);
}
void middle(SizeCall& c) {
  const DType dtype = number_type(c);
  if (c.schema().index_of(Symbol("dim")) < 0) return c.give(Sizes(), dtype);  // that of nothing is NaN
  extreme(c);
}

void place(SizeCall& c) {
  number_type(c);
  require_elements(c, c.dims("dim", c.self().sizes.size()));
  c.give(reduced(c), DType::int64);
}

void logical(SizeCall& c) {
  if (c.self().dtype == DType::uint8) SizeCall::give_up("its kernel tells");
  c.give(reduced(c), DType::boolean);
}

void spread(SizeCall& c) { c.give(reduced(c), float_type(c)); }
void spread_and_mean(SizeCall& c) {
  spread(c);
  c.give(reduced(c), float_type(c));
}

/// Norms of infinite and negative orders are those of the largest or smallest element.
bool is_of_extremes(const AbstractValue& order) {
  const Argument* literal = order.literal();
  if (literal && literal->is_float()) return literal->as_float() < 0 || std::isinf(literal->as_float());
  return order.number() && order.number()->is_integer() && order.number()->value() < 0;
}

void norm(SizeCall& c) {
  const DType self = float_type(c), dtype = c.dtype("dtype", self);
  if (is_of_extremes(c.argument("ord"))) require_elements(c, c.dims("dim", c.self().sizes.size()));
  if (promote(self, dtype) != dtype) SizeCall::give_up("a narrower type");
  c.give(reduced(c), dtype);
}

// Of a matrix, by releases up to 1.13.
void matrix_norm(SizeCall& c) {
  if (c.given("dim") && c.literals("dim").size() > 2) SizeCall::give_up("more dimensions than a matrix has");
  norm(c);
}
void log_sum(SizeCall& c) {
  if (c.literals("dim").empty()) SizeCall::give_up("no dimension");
  spread(c);
}

void count(SizeCall& c) { c.give(reduced(c), DType::int64); }

// (self, dim, …): an element for each.
void along(SizeCall& c) {
  const TensorType& self = c.self();
  c.dim("dim", self.sizes.size());
  real_type(c);
  const DType dtype = c.dtype("dtype", is_whole(self.dtype) ? DType::int64 : self.dtype);
  if (dtype == DType::boolean || (self.sizes.empty() && c.schema().written_argument(0)))
    SizeCall::give_up("its kernel tells");
  c.give(self.sizes, dtype);
}
void softmax(SizeCall& c) {
  const TensorType& self = c.self();
  c.dim("dim", self.sizes.size());
  const bool by_type = c.schema().index_of(Symbol("dtype")) >= 0;
  if (!by_type && c.schema().index_of(Symbol("half_to_float")) >= 0 && c.flag("half_to_float"))
    SizeCall::give_up("its kernel tells");
  const DType dtype = by_type && c.given("dtype") ? c.dtype("dtype", self.dtype) : self.dtype;
  if (!is_float(dtype)) SizeCall::give_up("its kernel tells");
  c.give(self.sizes, dtype);
}

void extremes_along(SizeCall& c) {
  const TensorType& self = c.self();
  if (self.sizes.empty() || (c.schema().index_of(Symbol("stable")) >= 0 && !c.given("stable")))
    SizeCall::give_up("an uncommon form");
  c.dim("dim", self.sizes.size());
  c.give(self.sizes, real_type(c));
  c.give(self.sizes, DType::int64);
}
void argsort(SizeCall& c) {
  const TensorType& self = c.self();
  c.dim("dim", self.sizes.size());
  real_type(c);
  c.give(self.sizes, DType::int64);
}

// (self, k, dim, …)
void topk(SizeCall& c) {
  const TensorType& self = c.self();
  number_type(c);
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr k = c.number("k");
  Sizes sizes = self.sizes;
  c.require_at_least(k, 0);
  c.require_at_least(sizes.empty() ? SizeExpr(1) : sizes[dim], k);
  if (!sizes.empty()) sizes[dim] = k;
  c.give(sizes, self.dtype);
  c.give(sizes, DType::int64);
}

// (self, k, dim, keepdim)
void kth_value(SizeCall& c) {
  const TensorType& self = c.self();
  number_type(c);
  const std::size_t dim = c.dim("dim", self.sizes.size());
  const SizeExpr size = self.sizes.empty() ? SizeExpr(1) : self.sizes[dim];
  c.require_at_least(c.number("k"), 1);
  c.require_at_least(size, c.number("k"));
  c.give(reduced(c), self.dtype);
  c.give(reduced(c), DType::int64);
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"sum", sum, keeps_type | reads_any_layout},
    {"nansum", sum_of_floats},
    {"prod", sum},
    {"mean", mean, keeps_type | reads_any_layout},
    {"nanmean", mean_of_floats},
    {"amax amin", extremes},
    {"max min", extreme},
    {"median nanmedian", middle},
    {"argmax argmin", place},
    {"all any", logical},
    {"std var", spread},
    {"std_mean var_mean", spread_and_mean},
    {"logsumexp", log_sum},
    {"norm linalg_vector_norm", norm},
    {"frobenius_norm", matrix_norm},
    {"count_nonzero", count},
    {"cumsum cumprod", along},
    {"softmax log_softmax", softmax, gives_contiguous, cost::each_output<5>},
    {"_softmax", softmax, {}, cost::each_output<5>},
    {"_log_softmax logcumsumexp", softmax},
    {"cummax cummin sort", extremes_along},
    {"argsort", argsort},
    {"topk", topk},
    {"kthvalue", kth_value},
};

}  // namespace
}  // namespace reduction_rows

std::span<const OperatorRecord> reduction_operators() { return reduction_rows::kRows; }

}  // namespace fx::internal
