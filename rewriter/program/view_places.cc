#include <fxgraph/rewriter/program/view_places.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/ir/number_list.h>
#include <fxgraph/ops/call.h>

namespace fx {
namespace {

/// Views of all elements from the same first one on; sizes and strides are those of the result.
constexpr std::string_view kSameStart[] = {
    "aten::view",    "aten::t",           "aten::transpose.int", "aten::permute", "aten::expand",  "aten::unsqueeze",
    "aten::squeeze", "aten::squeeze.dim", "aten::alias",         "aten::detach",  "aten::view_as", "aten::numpy_T",
    "aten::mT",      "aten::mH",          "aten::movedim.int"};

struct Scatter {
  std::string_view target, view;
};
constexpr Scatter kScatters[] = {{"aten::slice_scatter", "aten::slice.Tensor"},
                                 {"aten::select_scatter", "aten::select.int"},
                                 {"aten::diagonal_scatter", "aten::diagonal"},
                                 {"aten::as_strided_scatter", "aten::as_strided"}};

std::vector<std::int64_t> strides_of(const TensorInfo& tensor) {
  return tensor.strides.empty() ? ViewPlace::contiguous(nullptr, 0, tensor.sizes).strides : tensor.strides;
}

std::optional<std::int64_t> integer(const Argument& argument) {
  return argument.is_int() ? std::optional(argument.as_int()) : std::nullopt;
}

/// Nothing when there is no such dimension.
std::optional<std::size_t> dimension(const ViewPlace& of, const Argument& argument) {
  const std::int64_t count = static_cast<std::int64_t>(of.sizes.size());
  const auto dim = integer(argument);
  if (!dim || *dim < -count || *dim >= count) return std::nullopt;
  return static_cast<std::size_t>(*dim < 0 ? *dim + count : *dim);
}

using View = std::optional<ViewPlace> (*)(ViewPlace of, const std::vector<Argument>& args);

std::optional<ViewPlace> slice(ViewPlace of, const std::vector<Argument>& args) {
  const auto dim = dimension(of, args.at(0));
  const auto step = integer(args.at(3));
  const bool is_literal = (args[1].is_none() || args[1].is_int()) && (args[2].is_none() || args[2].is_int());
  if (!dim || !step || *step < 1 || !is_literal) return std::nullopt;
  const std::int64_t size = of.sizes[*dim];
  const auto bound = [&](const Argument& argument, std::int64_t otherwise) {
    const std::int64_t at = integer(argument).value_or(otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t start = bound(args[1], 0), end = std::max(bound(args[2], size), start);
  of.offset += start * of.strides[*dim];
  of.sizes[*dim] = (end - start + *step - 1) / *step;
  of.strides[*dim] *= *step;
  return of;
}

std::optional<ViewPlace> select(ViewPlace of, const std::vector<Argument>& args) {
  const auto dim = dimension(of, args.at(0));
  const auto index = integer(args.at(1));
  if (!dim || !index || *index < -of.sizes[*dim] || *index >= of.sizes[*dim]) return std::nullopt;
  of.offset += (*index < 0 ? *index + of.sizes[*dim] : *index) * of.strides[*dim];
  of.sizes.erase(of.sizes.begin() + static_cast<std::ptrdiff_t>(*dim));
  of.strides.erase(of.strides.begin() + static_cast<std::ptrdiff_t>(*dim));
  return of;
}

std::optional<ViewPlace> diagonal(ViewPlace of, const std::vector<Argument>& args) {
  const auto offset = integer(args.at(0));
  const auto first = dimension(of, args.at(1)), second = dimension(of, args.at(2));
  if (!offset || !first || !second || *first == *second) return std::nullopt;
  const std::int64_t rows = of.sizes[*first] + std::min<std::int64_t>(*offset, 0),
                     columns = of.sizes[*second] - std::max<std::int64_t>(*offset, 0);
  const std::int64_t size = std::max<std::int64_t>(std::min(rows, columns), 0);
  const std::int64_t stride = of.strides[*first] + of.strides[*second];
  if (size > 0) of.offset += *offset >= 0 ? *offset * of.strides[*second] : -*offset * of.strides[*first];
  for (const std::size_t dim : {std::max(*first, *second), std::min(*first, *second)}) {
    of.sizes.erase(of.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    of.strides.erase(of.strides.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  of.sizes.push_back(size);
  of.strides.push_back(stride);
  return of;
}

std::optional<ViewPlace> as_strided(ViewPlace of, const std::vector<Argument>& args) {
  const auto sizes = integers_of(args.at(0)), strides = integers_of(args.at(1));
  if (!sizes || !strides || sizes->size() != strides->size()) return std::nullopt;
  if (!args.at(2).is_none() && !args[2].is_int()) return std::nullopt;
  of.offset = integer(args[2]).value_or(of.offset);
  of.sizes = *sizes;
  of.strides = *strides;
  return of;
}

View view_of(std::string_view target) {
  if (target == "aten::slice.Tensor") return &slice;
  if (target == "aten::select.int") return &select;
  if (target == "aten::diagonal") return &diagonal;
  if (target == "aten::as_strided") return &as_strided;
  return nullptr;
}

/// The arguments from `first` on, defaults filled in; nothing when one is missing.
std::optional<std::vector<Argument>> arguments_from(const Call& call, std::size_t first) {
  std::vector<Argument> args;
  for (std::size_t i = first; i < call.schema().arguments.size(); ++i) {
    const Argument* value = call.argument(i);
    if (!value) return std::nullopt;
    args.push_back(*value);
  }
  return args;
}

/// What the result is a view of, or is; null when it is neither.
const Node* base_of(const Call& call) {
  if (!call || call.schema().arguments.empty()) return nullptr;
  const Argument* first = call.schema().traits.view || writes_first(call.schema()) ? call.argument(0) : nullptr;
  return first ? first->node_or_null() : nullptr;
}

}  // namespace

ViewPlace ViewPlace::contiguous(const Node* root, std::int64_t offset, const std::vector<std::int64_t>& sizes) {
  ViewPlace place{root, offset, sizes, std::vector<std::int64_t>(sizes.size(), 1)};
  for (std::size_t i = sizes.size(); i-- > 1;)
    place.strides[i - 1] = place.strides[i] * std::max<std::int64_t>(sizes[i], 1);
  return place;
}

bool ViewPlace::is_same(const ViewPlace& other) const {
  if (root != other.root || offset != other.offset || sizes != other.sizes) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && strides[i] != other.strides[i]) return false;
  }
  return true;
}

std::optional<ViewPlace> ViewPlaces::of(const Node& node) {
  // Along the views to one that is known, and back: a chain may be long.
  std::vector<const Node*> chain;
  for (const Node* at = &node; at && !asked_[*at]; at = base_of(call_of(*at))) {
    chain.push_back(at);
    asked_[*at] = true;
  }
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) known_[**at] = find(**at);
  return known_[node];
}

std::optional<ViewPlace> ViewPlaces::find(const Node& node) {
  const TensorInfo* tensor = info(node);
  const Call call = call_of(node);
  if (!tensor || !call) return std::nullopt;
  const Node* base = base_of(call);
  if (!base) {
    // A tensor of its own, unless it may be what it was given.
    const bool is_own = !effects_of(node).may_alias;
    return is_own ? std::optional(ViewPlace{&node, 0, tensor->sizes, strides_of(*tensor)}) : std::nullopt;
  }
  if (!known_[*base]) return std::nullopt;
  if (writes_first(call.schema())) return known_[*base];
  const std::string_view name = operator_name(call.schema()).view();
  if (const View view = view_of(name)) {
    const auto args = arguments_from(call, 1);
    return args ? view(*known_[*base], *args) : std::nullopt;
  }
  if (std::ranges::find(kSameStart, name) == std::end(kSameStart)) return std::nullopt;
  ViewPlace place = *known_[*base];
  place.sizes = tensor->sizes;
  place.strides = strides_of(*tensor);
  return place;
}

std::optional<ScatterView> ViewPlaces::scatter_view(const Node& node) {
  const Call call = call_of(node);
  if (!call) return std::nullopt;
  const auto* scatter = std::ranges::find(kScatters, call.schema().target.view(), &Scatter::target);
  if (scatter == std::end(kScatters)) return std::nullopt;
  const Argument *base = call.argument(0), *source = call.argument(1);
  Node *written = base ? base->node_or_null() : nullptr, *read = source ? source->node_or_null() : nullptr;
  const auto args = arguments_from(call, 2);
  const TensorInfo* tensor = written ? info(*written) : nullptr;
  if (!tensor || !read || !args) return std::nullopt;
  const ViewPlace alone{written, 0, tensor->sizes, strides_of(*tensor)};
  const std::optional<ViewPlace> place = view_of(scatter->view)(of(*written).value_or(alone), *args);
  if (!place) return std::nullopt;
  return ScatterView{Symbol(scatter->view), written, read, *args, *place};
}

}  // namespace fx
