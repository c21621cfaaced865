#include <fxgraph/export/input_layout.h>

#include <algorithm>
#include <numeric>

namespace fx::pt2 {

void set_strides(TensorMeta& meta) {
  const std::size_t rank = meta.sizes.size();
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::reverse(order);
  const auto is_dense = [&] {
    std::int64_t expected = 1;
    for (const std::size_t dim : order) {
      if (meta.sizes[dim].example != 1 && meta.strides[dim].example != expected) return false;
      expected *= meta.sizes[dim].example;
    }
    return true;
  };
  if (!is_dense()) {
    std::ranges::stable_sort(order, {}, [&](std::size_t dim) { return meta.strides[dim].example; });
    if (!is_dense()) {
      std::iota(order.begin(), order.end(), 0);
      std::ranges::reverse(order);
    }
  }
  SizeExpr stride = SizeExpr::integer(1);
  std::int64_t example = 1;
  for (const std::size_t dim : order) {
    meta.strides[dim] = {stride, example};
    stride = stride * meta.sizes[dim].expr;
    example *= meta.sizes[dim].example;
  }
}

namespace {

// No two elements of it lie in one place.
bool may_be_written(const std::vector<SymbolicSize>& sizes, const std::vector<SymbolicSize>& strides) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t dim) { return strides[dim].example; });
  std::int64_t last = 0;
  for (const std::size_t dim : order) {
    if (sizes[dim].example < 2) continue;
    if (strides[dim].example <= last) return false;
    last += (sizes[dim].example - 1) * strides[dim].example;
  }
  return true;
}

}  // namespace

void lay_out(TensorMeta& meta, const std::vector<std::int64_t>& given, const std::vector<SymbolicSize>& given_strides) {
  const auto is_given = [&](std::size_t dim) {
    const SymbolicSize& size = meta.sizes[dim];
    return size.expr.is_integer() && size.example == given[dim];
  };
  bool all_given = given.size() == meta.sizes.size() && given_strides.size() == given.size();
  for (std::size_t dim = 0; all_given && dim < given.size(); ++dim) all_given = is_given(dim);
  if (all_given && may_be_written(meta.sizes, given_strides)) {
    meta.strides = given_strides;
  } else {
    set_strides(meta);
  }
}

}  // namespace fx::pt2
