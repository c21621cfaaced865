#include <fxgraph/export/call_sizes.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fxgraph/export/size_arithmetic.h>
#include <fxgraph/ops/call.h>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;
using Sizes = std::vector<SymbolicSize>;

// The sizes of the tensor that the argument is; null where it is none.
const Sizes* sizes_of(const Call& call, const char* name, const KnownSizes& known) {
  const Argument* value = call.argument(name);
  return value && value->is_node() ? &known.of_tensor(value->node()) : nullptr;
}

std::optional<Number> number_of(const Call& call, const char* name, Number otherwise) {
  const Argument* value = call.argument(name);
  return !value ? std::optional(otherwise) : value->is_int() ? std::optional(value->as_int()) : std::nullopt;
}

// Two numbers of an argument that may be one for both.
std::optional<std::pair<Number, Number>> two_numbers(const Call& call, const char* name) {
  const Argument* value = call.argument(name);
  if (!value || !value->is_sequence()) return std::nullopt;
  const ArgumentSpan all = value->elements();
  if (all.empty() || all.size() > 2 || !std::ranges::all_of(all, &Argument::is_int)) return std::nullopt;
  return std::pair(all[0].as_int(), all[all.size() - 1].as_int());
}

// A dimension that may be counted from behind.
std::optional<std::size_t> dimension(std::optional<Number> dim, std::size_t rank) {
  if (dim && *dim < 0) *dim += static_cast<Number>(rank);
  if (!dim || *dim < 0 || *dim >= static_cast<Number>(rank)) return std::nullopt;
  return static_cast<std::size_t>(*dim);
}

// ── Resized by factors ────────────────────────────────────────────────────────────────────────────────────────────

// `TruncToInt(2.5*ToFloat(n))`
std::optional<SizeExpr> resized(const Call& call, std::size_t dim, const KnownSizes& known) {
  constexpr std::size_t kFirst = 2;  // behind the batch and the channels
  const std::string_view target = operator_name(call.schema()).view();
  const bool resizes = target.starts_with("aten::upsample_") || target.starts_with("aten::_upsample_");
  if (dim < kFirst || !resizes || !target.ends_with(".vec")) return std::nullopt;
  const Sizes* sizes = sizes_of(call, "input", known);
  const Argument* factors = call.argument("scale_factors");
  if (!sizes || !factors || !factors->is_sequence()) return std::nullopt;
  if (dim >= sizes->size() || dim - kFirst >= factors->elements().size()) return std::nullopt;
  const Argument& factor = factors->elements()[dim - kFirst];
  const SizeExpr& size = (*sizes)[dim].expr;
  if (!factor.is_float() || !varies(size)) return std::nullopt;
  return SizeExpr::call(
      "TruncToInt", {SizeExpr::call("Mul", {SizeExpr::real(factor.as_float()), SizeExpr::call("ToFloat", {size})})});
}

// ── Diagonals and windows ─────────────────────────────────────────────────────────────────────────────────────────

// The last dimension of a diagonal.
std::optional<SizeExpr> diagonal(const Call& call, std::size_t dim, const KnownSizes& known) {
  if (operator_name(call.schema()) != "aten::diagonal") return std::nullopt;
  const Sizes* sizes = sizes_of(call, "self", known);
  const auto offset = number_of(call, "offset", 0);
  if (!sizes || !offset || dim + 2 != sizes->size()) return std::nullopt;
  const auto first = dimension(number_of(call, "dim1", 0), sizes->size());
  const auto second = dimension(number_of(call, "dim2", 1), sizes->size());
  if (!first || !second) return std::nullopt;
  const auto less = [](const SizeExpr& size, Number by) {
    return by == 0 ? size : SizeExpr::call("Add", {size, SizeExpr::integer(-by)});
  };
  const SizeExpr rows = less((*sizes)[*first].expr, std::max<Number>(-*offset, 0));
  const SizeExpr columns = less((*sizes)[*second].expr, std::max<Number>(*offset, 0));
  return SizeExpr::call("Max", {SizeExpr::integer(0), SizeExpr::call("Min", {rows, columns})});
}

// The number of windows of `im2col`, its last dimension.
std::optional<SizeExpr> windows(const Call& call, std::size_t dim, const KnownSizes& known) {
  if (operator_name(call.schema()) != "aten::im2col") return std::nullopt;
  const Sizes* sizes = sizes_of(call, "self", known);
  const auto kernel = two_numbers(call, "kernel_size"), dilation = two_numbers(call, "dilation"),
             padding = two_numbers(call, "padding"), stride = two_numbers(call, "stride");
  if (!sizes || !kernel || !dilation || !padding || !stride) return std::nullopt;
  if (sizes->size() < 3 || dim + 2 != sizes->size()) return std::nullopt;
  // How many begin in a dimension.
  const auto count = [](const SizeExpr& size, Number k, Number d, Number p, Number s) {
    const SizeExpr room = SizeExpr::call("Add", {size, SizeExpr::integer(2 * p - d * (k - 1) - 1)});
    return SizeExpr::call("Add", {SizeExpr::call("FloorDiv", {room, SizeExpr::integer(s)}), SizeExpr::integer(1)});
  };
  const SizeExpr& height = (*sizes)[sizes->size() - 2].expr;
  const SizeExpr& width = (*sizes)[sizes->size() - 1].expr;
  return SizeExpr::call("Mul", {count(height, kernel->first, dilation->first, padding->first, stride->first),
                                count(width, kernel->second, dilation->second, padding->second, stride->second)});
}

// ── Joined ────────────────────────────────────────────────────────────────────────────────────────────────────────

// `s0 + s1 + 4`
std::optional<SizeExpr> joined(const Call& call, std::size_t dim, const KnownSizes& known) {
  if (operator_name(call.schema()) != "aten::cat") return std::nullopt;
  const Argument* parts = call.argument("tensors");
  if (!parts || !parts->is_sequence() || parts->elements().empty()) return std::nullopt;
  std::vector<SizeExpr> terms;
  Number constant = 0;
  for (const Argument& part : parts->elements()) {
    if (!part.is_node()) return std::nullopt;
    const Sizes& sizes = known.of_tensor(part.node());
    // An empty vector may stand among others.
    if (dimension(number_of(call, "dim", 0), sizes.size()) != dim) return std::nullopt;
    const SizeExpr& size = sizes[dim].expr;
    if (size.is_integer()) {
      constant += size.value();
    } else {
      terms.push_back(size);
    }
  }
  if (constant != 0) terms.push_back(SizeExpr::integer(constant));
  if (terms.size() == 1) return terms[0];
  return SizeExpr::call("Add", std::move(terms));
}

// ── Views ─────────────────────────────────────────────────────────────────────────────────────────────────────────

// A product of sizes, divided by others.
class Product {
 public:
  void multiply(const SizeExpr& factor) {
    if (factor.is_integer()) {
      constant_ *= factor.value();
    } else {
      factors_.push_back(factor);
    }
  }
  void divide(const SizeExpr& by) {
    if (by.is_integer()) {
      divisor_ *= by.value();
    } else if (const auto same = std::ranges::find(factors_, by); same != factors_.end()) {
      factors_.erase(same);
    } else {
      divisors_.push_back(by);
    }
  }

  std::optional<SizeExpr> expr() const {
    if (constant_ <= 0 || divisor_ <= 0) return std::nullopt;
    const bool divides = constant_ % divisor_ == 0;
    const SizeExpr above = of(divides ? constant_ / divisor_ : constant_, factors_);
    const SizeExpr below = of(divides ? 1 : divisor_, divisors_);
    return below == SizeExpr::integer(1) ? above : SizeExpr::call("FloorDiv", {above, below});
  }

 private:
  static SizeExpr of(Number constant, std::vector<SizeExpr> factors) {
    if (constant != 1 || factors.empty()) factors.insert(factors.begin(), SizeExpr::integer(constant));
    return factors.size() == 1 ? factors[0] : SizeExpr::call("Mul", std::move(factors));
  }

  Number constant_ = 1, divisor_ = 1;
  std::vector<SizeExpr> factors_, divisors_;
};

// What a view is told: a size, or -1 for what the others leave.
std::optional<SizeExpr> viewed(const Call& call, std::size_t dim, const KnownSizes& known) {
  const std::string_view target = operator_name(call.schema()).view();
  const char* name = target == "aten::reshape"                                  ? "shape"
                     : target == "aten::view" || target == "aten::_unsafe_view" ? "size"
                                                                                : nullptr;
  const Sizes* sizes = name ? sizes_of(call, "self", known) : nullptr;
  const Argument* wanted = sizes ? call.argument(name) : nullptr;
  if (!wanted || !wanted->is_sequence() || dim >= wanted->elements().size()) return std::nullopt;
  const auto told = [&](const Argument& size) -> std::optional<SizeExpr> {
    if (size.is_int()) return SizeExpr::integer(size.as_int());
    return size.is_node() ? known.of_number(size.node()) : std::nullopt;
  };
  const ArgumentSpan all = wanted->elements();
  const std::optional<SizeExpr> own = told(all[dim]);
  if (!own || *own != SizeExpr::integer(-1)) return own;
  Product rest;
  for (const SymbolicSize& size : *sizes) rest.multiply(size.expr);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<SizeExpr> other = i == dim ? std::nullopt : told(all[i]);
    if (i != dim && !other) return std::nullopt;
    if (other) rest.divide(*other);
  }
  return rest.expr();
}

// The first of the dimensions that become one.
std::optional<SizeExpr> flattened(const Call& call, std::size_t dim, const KnownSizes& known) {
  if (operator_name(call.schema()) != "aten::flatten.using_ints") return std::nullopt;
  const Sizes* sizes = sizes_of(call, "self", known);
  if (!sizes) return std::nullopt;
  const auto first = dimension(number_of(call, "start_dim", 0), sizes->size());
  const auto last = dimension(number_of(call, "end_dim", -1), sizes->size());
  if (!first || !last || dim != *first) return std::nullopt;
  Product all;
  for (std::size_t i = *first; i <= *last; ++i) all.multiply((*sizes)[i].expr);
  return all.expr();
}

}  // namespace

std::optional<SizeExpr> said_size(const Node& node, std::size_t dim, const KnownSizes& known) {
  const Call call = call_of(node);
  if (!call) return std::nullopt;
  for (const auto rule : {&resized, &diagonal, &windows, &joined, &viewed, &flattened}) {
    std::optional<SizeExpr> said = rule(call, dim, known);
    if (said && varies(*said)) return said;
  }
  return std::nullopt;
}

}  // namespace fx::pt2
