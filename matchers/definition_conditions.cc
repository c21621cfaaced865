#include <fxgraph/matchers/definition_conditions.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/ir/number_list.h>

namespace fx::internal {

namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t rank_of(const TensorInfo& info) { return static_cast<std::int64_t>(info.sizes.size()); }

bool are_known(const Sizes& sizes) {
  return std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; });
}

/// One number is a list of it.
std::optional<Sizes> numbers_of(const Argument* list) {
  return list ? integers_of(Argument::list(elements_of(*list))) : std::nullopt;
}

/// How many dimensions there are, as far as the tensor or a permutation of it tells; -1: not known.
std::int64_t rank_at(const DefinitionSite& site) {
  if (const TensorInfo* x = site.tensor("x")) return rank_of(*x);
  const auto dims = numbers_of(site.argument("p"));
  return dims ? static_cast<std::int64_t>(dims->size()) : -1;
}

}  // namespace

bool has_bounds(DefinitionSite& site) {
  const auto low = site.number("lo"), high = site.number("hi");
  return low && high && *low <= *high;
}

bool has_inverse(DefinitionSite& site) {
  const auto divisor = site.number("s"), factor = site.number("c");
  const double known = divisor ? *divisor : factor.value_or(0);
  if (known == 0 || !std::isfinite(known) || !std::isfinite(1 / known)) return false;
  const double inverse = 1 / known, whole = std::round(inverse);
  site.set(divisor ? "c" : "s", Argument(std::abs(inverse - whole) < 1e-12 * whole ? whole : inverse));
  return true;
}

bool swaps_last(DefinitionSite& site) {
  const std::int64_t rank = rank_at(site);
  const Argument *a = site.argument("a"), *b = site.argument("b");
  if (rank == 0 || rank == 1) return false;
  if (a && b) {
    const auto from_end = [&](const Argument& dim) {
      return dim.as_int() < 0 || rank < 0 ? dim.as_int() : dim.as_int() - rank;
    };
    const std::int64_t first = from_end(*a), second = from_end(*b);
    if (std::min(first, second) != -2 || std::max(first, second) != -1) return false;
  }
  // As it is written: of what counts from the front nothing is known.
  if (rank < 0) return !site.argument("i") && !site.argument("p");
  Sizes swapped;
  for (std::int64_t i = 0; i < rank; ++i) swapped.push_back(i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2);
  if (const Argument* permutation = site.argument("p")) {
    auto dims = numbers_of(permutation);
    if (!dims) return false;
    for (std::int64_t& dim : *dims) dim = dim < 0 ? dim + rank : dim;
    if (*dims != swapped) return false;
  }
  site.set("p", list_of(swapped));
  site.set("i", Argument(rank - 2));
  site.set("j", Argument(rank - 1));
  return true;
}

bool is_matrix(DefinitionSite& site) {
  const TensorInfo* x = site.tensor("x");
  return x && rank_of(*x) == 2;
}

bool has_dimension(DefinitionSite& site) {
  const TensorInfo* x = site.tensor("x");
  const Argument *front = site.argument("f"), *end = site.argument("e");
  const Argument* given = front ? front : end;
  if (!x || x->sizes.empty() || !given || !given->is_int()) return false;
  const std::int64_t dim = given->as_int(), rank = rank_of(*x);
  if ((front != nullptr) != (dim >= 0)) return false;
  site.set("e", Argument(front ? dim - rank : dim));
  site.set("f", Argument(front ? dim : dim + rank));
  return true;
}

bool weight_is_matrix(DefinitionSite& site) {
  const TensorInfo* weight = site.tensor("w");
  return weight && rank_of(*weight) == 2;
}

bool is_plain_linear(DefinitionSite& site) {
  const TensorInfo *x = site.tensor("x"), *weight = site.tensor("w"), *bias = site.tensor("b");
  const Argument* given = site.argument("b");
  const bool fits = !given || (bias && rank_of(*bias) == 1 && weight && bias->sizes[0] == weight->sizes[0]);
  return weight && rank_of(*weight) == 2 && fits && (!x || rank_of(*x) == 2);
}

bool has_row_bias(DefinitionSite& site) {
  const TensorInfo *weight = site.tensor("w"), *bias = site.tensor("b");
  return weight && bias && rank_of(*weight) == 2 && rank_of(*bias) == 1 && bias->sizes[0] == weight->sizes[0];
}

bool is_viewed_linear(DefinitionSite& site) {
  const TensorInfo *x = site.tensor("x"), *flat = site.tensor("flat"), *result = site.result();
  if (!x || !flat || !result || x->sizes.empty() || result->sizes.size() != x->sizes.size()) return false;
  if (rank_of(*flat) != 2 || !are_known(x->sizes) || !are_known(result->sizes)) return false;
  return x->sizes.back() == flat->sizes[1] && std::equal(x->sizes.begin(), x->sizes.end() - 1, result->sizes.begin());
}

bool are_matrices(DefinitionSite& site) {
  const TensorInfo *a = site.tensor("a"), *b = site.tensor("b");
  return a && b && rank_of(*a) == 2 && rank_of(*b) == 2;
}

bool are_batches(DefinitionSite& site) {
  const TensorInfo *a = site.tensor("a"), *b = site.tensor("b");
  return a && b && rank_of(*a) == 3 && rank_of(*b) == 3 && a->sizes[0] == b->sizes[0] && a->sizes[0] >= 0;
}

bool is_viewed_matmul(DefinitionSite& site) {
  const TensorInfo *a = site.tensor("a"), *b = site.tensor("b"), *result = site.result();
  const TensorInfo *left = site.tensor("left"), *right = site.tensor("right");
  if (!a || !b || !result || !left || !right || rank_of(*left) != 3 || rank_of(*right) != 3) return false;
  const std::size_t rank = result->sizes.size();
  if (rank < 3 || !are_known(result->sizes) || !are_known(a->sizes) || !are_known(b->sizes)) return false;
  const auto broadcasts = [&](const Sizes& sizes) {
    if (sizes.size() < 2 || sizes.size() > rank) return false;
    for (std::size_t i = 3; i <= sizes.size(); ++i) {
      const std::int64_t size = sizes[sizes.size() - i];
      if (size != 1 && size != result->sizes[rank - i]) return false;
    }
    return true;
  };
  const auto inner = [](const Sizes& sizes, std::size_t from_end) { return sizes[sizes.size() - from_end]; };
  if (!broadcasts(a->sizes) || !broadcasts(b->sizes)) return false;
  // Both of fewer dimensions make a smaller product.
  Sizes leading;
  for (std::size_t i = rank; i >= 3; --i) {
    std::int64_t size = 0;
    for (const Sizes* sizes : {&a->sizes, &b->sizes})
      size = i <= sizes->size() ? std::max(size, inner(*sizes, i)) : size;
    leading.push_back(size);
  }
  return std::equal(leading.begin(), leading.end(), result->sizes.begin()) &&
         inner(a->sizes, 2) == inner(result->sizes, 2) && inner(b->sizes, 1) == inner(result->sizes, 1) &&
         inner(a->sizes, 1) == inner(left->sizes, 1) && inner(b->sizes, 2) == inner(right->sizes, 2) &&
         inner(a->sizes, 1) == inner(b->sizes, 2);
}

bool is_global(DefinitionSite& site) {
  const TensorInfo* x = site.tensor("x");
  if (!x || (rank_of(*x) != 3 && rank_of(*x) != 4)) return false;
  const std::int64_t rank = rank_of(*x);
  if (const Argument* given = site.argument("d")) {
    auto dims = numbers_of(given);
    if (!dims || dims->size() != 2) return false;
    for (std::int64_t& dim : *dims) dim = dim < 0 ? dim : dim - rank;
    std::ranges::sort(*dims);
    if (*dims != Sizes{-2, -1}) return false;
  }
  site.set("front", list_of({rank - 2, rank - 1}));
  site.set("turned", list_of({rank - 1, rank - 2}));
  return true;
}

bool merges(DefinitionSite& site) {
  const TensorInfo *x = site.tensor("x"), *result = site.result();
  if (!x || !result || !are_known(x->sizes) || !are_known(result->sizes)) return false;
  const Sizes &from = x->sizes, &to = result->sizes;
  if (site.argument("a")) {
    site.set("s", list_of(to));
    return true;
  }
  if (to.size() >= from.size() || to.empty()) return false;
  const std::size_t merged = from.size() - to.size() + 1;
  std::size_t begin = 0;
  while (begin + 1 < to.size() && from[begin] == to[begin]) ++begin;
  // Sizes of 1 leave it open where it begins: the first way counts.
  for (std::size_t at = 0; at <= begin; ++at) {
    std::int64_t product = 1;
    for (std::size_t i = at; i < at + merged; ++i) product *= from[i];
    const bool fits = product == to[at] && std::equal(from.begin() + static_cast<std::ptrdiff_t>(at + merged),
                                                      from.end(), to.begin() + static_cast<std::ptrdiff_t>(at + 1));
    if (!fits) continue;
    site.set("a", Argument(static_cast<std::int64_t>(at)));
    site.set("b", Argument(at + merged == from.size() ? std::int64_t{-1} : static_cast<std::int64_t>(at + merged - 1)));
    return true;
  }
  return false;
}

template <int dims>
bool convolves(DefinitionSite& site) {
  const TensorInfo* weight = site.tensor("w");
  if (!weight || rank_of(*weight) != dims + 2) return false;
  const TensorInfo* x = site.tensor("x");
  if (x && rank_of(*x) != dims + 2) return false;
  const auto padding = site.argument("p");
  if (padding && padding->is_string()) return false;
  site.set("zeros", list_of(Sizes(dims, 0)));
  return true;
}

bool changes_type(DefinitionSite& site) {
  const TensorInfo *x = site.tensor("x"), *result = site.result();
  return x && result && x->dtype != result->dtype;
}

bool scales_by_head(DefinitionSite& site) {
  const TensorInfo* q = site.tensor("q");
  if (!q || q->sizes.empty() || q->sizes.back() <= 0) return false;
  const double root = std::sqrt(static_cast<double>(q->sizes.back()));
  const auto divisor = site.number("s"), factor = site.number("c");
  if (divisor && std::abs(*divisor - root) > 1e-4 * root) return false;
  if (factor && std::abs(*factor * root - 1) > 1e-4) return false;
  if (!divisor) site.set("s", Argument(root));
  if (!factor) site.set("c", Argument(1 / root));
  return true;
}

bool takes_halves(DefinitionSite& site) {
  const TensorInfo* x = site.tensor("x");
  const Argument *dim = site.argument("d"), *middle = site.argument("m"), *end = site.argument("n");
  if (!x || x->sizes.empty() || !dim || !dim->is_int()) return false;
  const std::int64_t rank = rank_of(*x), at = dim->as_int() < 0 ? dim->as_int() + rank : dim->as_int();
  if (at < 0 || at >= rank || x->sizes[static_cast<std::size_t>(at)] <= 0) return false;
  const std::int64_t size = x->sizes[static_cast<std::size_t>(at)];
  if (size % 2 != 0) return false;
  if (middle && !(*middle == Argument(size / 2))) return false;
  if (end && !(end->is_int() && end->as_int() >= size)) return false;
  site.set("m", Argument(size / 2));
  if (!end || end->as_int() == size) site.set("n", Argument(size));
  return true;
}

template bool convolves<1>(DefinitionSite& site);
template bool convolves<2>(DefinitionSite& site);
template bool convolves<3>(DefinitionSite& site);

}  // namespace fx::internal
