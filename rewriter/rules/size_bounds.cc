#include <fxgraph/rewriter/rules/size_bounds.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>

namespace fx::rules {

namespace {

// Their results have the sizes of what they are given first. Packets.
constexpr auto kSameSizes = std::to_array<std::string_view>(
    {"aten::alias", "aten::batch_norm", "aten::contiguous", "aten::detach", "aten::dropout", "aten::feature_dropout",
     "aten::group_norm", "aten::instance_norm", "aten::layer_norm", "aten::prelu", "aten::softmax", "aten::to"});

// They keep all dimensions but the last two, of which something is left, or they refuse. Packets.
constexpr auto kImageToImage = std::to_array<std::string_view>(
    {"aten::adaptive_avg_pool2d", "aten::adaptive_max_pool2d", "aten::avg_pool2d", "aten::max_pool2d",
     "fxgraph::max_pool2d", "aten::upsample_bicubic2d", "aten::upsample_bilinear2d", "aten::upsample_nearest2d"});

// Lists of tensors alike but in one dimension. Packets.
constexpr auto kPieces = std::to_array<std::string_view>(
    {"aten::chunk", "aten::split", "aten::split_with_sizes", "aten::unsafe_chunk", "aten::unsafe_split"});

ArgumentSpan elements_of(const Argument* argument) { return argument ? argument->elements() : ArgumentSpan(); }

/// The literal `argument` of a call along one dimension: one number stands for all.
std::optional<std::int64_t> along(const Argument* argument, std::size_t dim) {
  if (!argument) return std::nullopt;
  if (argument->is_int()) return argument->as_int();
  const ArgumentSpan each = argument->elements();
  if (each.empty()) return std::nullopt;
  const Argument& number = each[std::min(dim, each.size() - 1)];
  return number.is_int() ? std::optional(number.as_int()) : std::nullopt;
}

/// A dimension that a literal names, from behind too.
std::optional<std::size_t> dim_of(const Argument* argument, std::size_t rank) {
  if (!argument || !argument->is_int()) return std::nullopt;
  const std::int64_t dim = argument->as_int(), count = static_cast<std::int64_t>(rank);
  if (dim < -count || dim >= count) return std::nullopt;
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

Extent common(const Extent& a, const Extent& b) {
  const Extent both{std::max(a.least, b.least), std::min(a.most, b.most)};
  return both.least <= both.most ? both : a;
}

/// Of the result's dimension where two are broadcast.
Extent broadcast(const Extent& a, const Extent& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.least > 1 && b.least > 1) return common(a, b);
  if (a.least > 1) return a;
  if (b.least > 1) return b;
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}

/// Of as many elements as both have together; unbounded where a product could be too large to be written.
Extent times(const Extent& a, const Extent& b) {
  constexpr std::int64_t kMost = 1 << 30;
  if (a.least > kMost || b.least > kMost) return {};
  const bool bounded = a.most <= kMost && b.most <= kMost;
  return {a.least * b.least, bounded ? a.most * b.most : Extent::kAny};
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

std::int64_t ConvolutionSizes::least(std::size_t dim) const {
  const Dim& at = dims[dim];
  const std::int64_t reach = at.dilation * (at.kernel - 1);
  if (transposed) return 1 + divide_up(2 * at.padding - reach - at.output_padding, at.stride);
  return std::max<std::int64_t>(1, reach + 1 - 2 * at.padding);
}

std::int64_t ConvolutionSizes::made(std::size_t dim, std::int64_t size) const {
  if (size == Extent::kAny) return size;
  const Dim& at = dims[dim];
  const std::int64_t reach = at.dilation * (at.kernel - 1);
  if (transposed) return (size - 1) * at.stride - 2 * at.padding + reach + at.output_padding + 1;
  return (size + 2 * at.padding - reach - 1) / at.stride + 1;
}

SizeBounds::SizeBounds(const GraphModule& module) : module_(module), known_(module.graph()) {
  for (const Node& node : module.graph().nodes()) restructures_ |= effects_of(node).restructures;
}

void SizeBounds::visit(const Node& node) {
  if (node.is_call(python::kAssert)) return learn_from(node);
  known_[node] = of(node);
}

void SizeBounds::learn_rank(const Node& value, std::size_t rank) {
  if (!restructures_ && !known_[value]) known_[value] = std::vector<Extent>(rank);
}

void SizeBounds::learn(const Node& value, std::int64_t dim, const Extent& extent) {
  Extents& known = known_[value];
  if (restructures_ || !known) return;
  const Argument named(dim);
  if (const auto at = dim_of(&named, known->size())) (*known)[*at] = common((*known)[*at], extent);
}

/// `size(x, d) == n`, `size(x, d) >= n`, `dim(x) == n`.
void SizeBounds::learn_from(const Node& assertion) {
  const Node* check = assertion.args().empty() ? nullptr : assertion.arg(0).node_or_null();
  if (!check || check->args().size() != 2 || !check->arg(1).is_int()) return;
  const bool equal = check->is_call(python::kEqual) || check->is_call("aten::eq.int");
  if (!equal && !check->is_call(python::kAtLeast) && !check->is_call("aten::ge.int")) return;
  const Node* size = check->arg(0).node_or_null();
  const Call asked = size ? call_of(*size) : Call();
  const Node* value = asked.args().empty() ? nullptr : asked.args()[0].node_or_null();
  if (!value) return;
  const std::int64_t number = check->arg(1).as_int();
  const Symbol question = asked.schema().target;
  if (question == "aten::dim" && equal && number >= 0) learn_rank(*value, static_cast<std::size_t>(number));
  if (question == "aten::size.int" && asked.args().size() == 2 && asked.args()[1].is_int())
    learn(*value, asked.args()[1].as_int(), {number, equal ? number : Extent::kAny});
}

Extents SizeBounds::of(const Node& node) const {
  if (restructures_) return std::nullopt;
  if (node.is(Op::get_attr)) {
    const at::Tensor tensor = module_.find_attribute(path_of(node));
    if (!tensor.defined() || tensor.is_sparse()) return std::nullopt;
    std::vector<Extent> sizes;
    for (const std::int64_t size : tensor.sizes()) sizes.push_back({size, size});
    return sizes;
  }
  if (node.is_call(python::kGetItem)) {  // of a list whose tensors are alike, as split makes it
    const Node* list = node.arg(0).node_or_null();
    const bool alike = list && is_one_of(kPieces, operator_of(*list)) && node.arg(1).is_int();
    return alike ? known_[*list] : std::nullopt;
  }
  return of_operator(node);
}

Extents SizeBounds::at(const Call& call, std::string_view argument) const {
  const Argument* given = call.argument(argument);
  const Node* value = given ? given->node_or_null() : nullptr;
  return value ? known_[*value] : std::nullopt;
}

Extents SizeBounds::weight_of_linear(const Node& node) const {
  const Node* pack = is_xnnpack_linear(node) && node.args().size() == 2 ? node.arg(1).node_or_null() : nullptr;
  return pack ? at(call_of(*pack), "W") : at(call_of(node), "weight");
}

Extents SizeBounds::of_operator(const Node& node) const {
  const Call call = call_of(node);
  if (!call || call.kwargs().find(Symbol("out"))) return std::nullopt;
  const Symbol target = operator_name(call.schema());
  const std::string_view packet = packet_of(target.view());
  const bool is_packed = is_packed_convolution(node);
  if (is_packed || packet == "aten::conv2d" || packet == "aten::conv_transpose2d") {
    const auto convolved = is_packed ? convolution(node) : plain_convolution(call);
    return convolved ? made_by(call, *convolved) : std::nullopt;
  }
  if (packet == "aten::cat") return cat(call);
  if (packet == "aten::view_as") return at(call, "other");
  if (packet == "aten::view" || packet == "aten::reshape") {
    const Argument* sizes = call.argument(packet == "aten::view" ? "size" : "shape");
    if (!sizes || !sizes->is_sequence()) return std::nullopt;
    std::vector<Extent> made;
    for (const Argument& size : sizes->elements())
      made.push_back(size.is_int() && size.as_int() >= 0 ? Extent{size.as_int(), size.as_int()} : Extent{});
    return made;
  }
  if (call.schema().traits.pointwise) return broadcast(node);
  const Node* first = call.args().empty() ? nullptr : call.args()[0].node_or_null();
  Extents sizes = first ? known_[*first] : std::nullopt;
  if (!sizes) return std::nullopt;
  if (is_one_of(kSameSizes, target)) {
    const Extents mean = packet == "aten::batch_norm" ? at(call, "running_mean") : std::nullopt;
    if (mean && mean->size() == 1 && sizes->size() > 1) (*sizes)[1] = common((*sizes)[1], (*mean)[0]);
    return sizes;
  }
  const std::size_t rank = sizes->size();
  if (is_one_of(kImageToImage, target)) {
    if (rank < 3 || call.schema().returns.size() != 1) return std::nullopt;
    (*sizes)[rank - 1] = (*sizes)[rank - 2] = {1};
    return sizes;
  }
  if (packet == "aten::linear" || is_xnnpack_linear(node)) {
    const Extents weight = weight_of_linear(node);
    if (!weight || weight->size() != 2 || rank == 0) return std::nullopt;
    sizes->back() = (*weight)[0];
    return sizes;
  }
  return rearranged(call, std::move(*sizes));
}

/// Of operators that move, cut or add dimensions of what has these sizes.
Extents SizeBounds::rearranged(const Call& call, std::vector<Extent> sizes) {
  const Symbol target = operator_name(call.schema());
  const std::string_view packet = packet_of(target.view());
  const std::size_t rank = sizes.size();
  if (packet == "aten::permute") {
    const ArgumentSpan order = elements_of(call.argument("dims"));
    std::vector<Extent> made;
    for (const Argument& dim : order) {
      const auto from = dim_of(&dim, rank);
      if (!from || order.size() != rank) return std::nullopt;
      made.push_back(sizes[*from]);
    }
    return made;
  }
  if (packet == "aten::transpose") {
    const auto a = dim_of(call.argument("dim0"), rank), b = dim_of(call.argument("dim1"), rank);
    if (!a || !b) return std::nullopt;
    std::swap(sizes[*a], sizes[*b]);
    return sizes;
  }
  if (packet == "aten::flatten") {
    const auto first = dim_of(call.argument("start_dim"), rank), last = dim_of(call.argument("end_dim"), rank);
    if (!first || !last || *first > *last) return std::nullopt;
    Extent all{1, 1};
    for (std::size_t i = *first; i <= *last; ++i) all = times(all, sizes[i]);
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*first),
                sizes.begin() + static_cast<std::ptrdiff_t>(*last));
    sizes[*first] = all;
    return sizes;
  }
  if (packet == "aten::unsqueeze") {
    const auto dim = dim_of(call.argument("dim"), rank + 1);
    if (!dim) return std::nullopt;
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(*dim), Extent{1, 1});
    return sizes;
  }
  if (target == "aten::squeeze.dim") {
    const auto dim = dim_of(call.argument("dim"), rank);
    if (!dim || (!sizes[*dim].is(1) && sizes[*dim].least < 2)) return std::nullopt;
    if (sizes[*dim].is(1)) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*dim));
    return sizes;
  }
  if (packet == "aten::slice" || is_one_of(kPieces, target)) {
    const auto dim = dim_of(call.argument("dim"), rank);
    if (!dim) return std::nullopt;
    const std::int64_t size = sizes[*dim].least;
    const Argument* pieces = packet == "aten::chunk" ? call.argument("chunks") : nullptr;
    const bool even =
        pieces && pieces->is_int() && pieces->as_int() > 0 && sizes[*dim].is(size) && size % pieces->as_int() == 0;
    sizes[*dim] = even ? Extent{size / pieces->as_int(), size / pieces->as_int()} : Extent{};
    return sizes;
  }
  if (packet == "aten::constant_pad_nd") {
    const ArgumentSpan pads = elements_of(call.argument("pad"));
    for (std::size_t i = 0; i + 1 < pads.size() && i / 2 < rank; i += 2) {
      Extent& size = sizes[rank - 1 - i / 2];
      const bool grows = pads[i].is_int() && pads[i + 1].is_int() && pads[i].as_int() >= 0 && pads[i + 1].as_int() >= 0;
      size = grows ? Extent{size.least + pads[i].as_int() + pads[i + 1].as_int()} : Extent{};
    }
    return sizes;
  }
  if (target == "aten::mean.dim" || target == "aten::sum.dim_IntList") {
    const Argument *keeps = call.argument("keepdim"), *dims = call.argument("dim");
    if (!keeps || !keeps->is_bool() || !keeps->as_bool() || !dims || dims->elements().empty()) return std::nullopt;
    for (const Argument& each : dims->elements()) {
      const auto dim = dim_of(&each, rank);
      if (!dim) return std::nullopt;
      sizes[*dim] = {1, 1};
    }
    return sizes;
  }
  return std::nullopt;
}

Extents SizeBounds::broadcast(const Node& node) const {
  Extents made;
  bool all = true;
  node.for_each_input([&](const Node& input) {
    const Extents& each = known_[input];
    all = all && each.has_value();
    if (!all) return;
    if (!made) {
      made = each;
      return;
    }
    std::vector<Extent> larger = *made, smaller = *each;
    if (larger.size() < smaller.size()) std::swap(larger, smaller);
    const std::size_t more = larger.size() - smaller.size();
    for (std::size_t i = 0; i < smaller.size(); ++i) larger[more + i] = rules::broadcast(larger[more + i], smaller[i]);
    made = std::move(larger);
  });
  return all ? made : std::nullopt;
}

Extents SizeBounds::cat(const Call& call) const {
  const Argument *tensors = call.argument("tensors"), *along_dim = call.argument("dim");
  if (!tensors || tensors->elements().empty()) return std::nullopt;
  Extents made;
  for (const Argument& each : tensors->elements()) {
    const Node* tensor = each.node_or_null();
    const Extents sizes = tensor ? known_[*tensor] : std::nullopt;
    // Vectors of no element go with anything.
    if (!sizes || sizes->size() < 2 || (made && made->size() != sizes->size())) return std::nullopt;
    if (!made) {
      made = sizes;
      continue;
    }
    const auto dim = dim_of(along_dim, sizes->size());
    if (!dim) return std::nullopt;
    for (std::size_t i = 0; i < sizes->size(); ++i) {
      Extent &to = (*made)[i], from = (*sizes)[i];
      const bool unbounded = to.most == Extent::kAny || from.most == Extent::kAny;
      to = i != *dim ? common(to, from) : Extent{to.least + from.least, unbounded ? Extent::kAny : to.most + from.most};
    }
  }
  return made;
}

Extents SizeBounds::made_by(const Call& call, const ConvolutionSizes& convolution) const {
  const Node* image = call.args().empty() ? nullptr : call.args()[0].node_or_null();
  const Extents sizes = image ? known_[*image] : std::nullopt;
  // What is packed takes images of four dimensions alone; others, of which no more is known, do without a batch.
  if (!sizes && convolution.dims.empty()) return std::nullopt;
  std::vector<Extent> made = sizes ? *sizes : std::vector<Extent>(4);
  if (made.size() != 3 && made.size() != 4) return std::nullopt;
  const std::size_t first = made.size() - 2;
  made[first - 1] = {convolution.made_channels, convolution.made_channels};
  for (std::size_t i = 0; i < 2; ++i) {
    const Extent size = made[first + i];
    made[first + i] = {1};  // it refuses what the kernel makes nothing of
    if (convolution.dims.empty()) continue;
    made[first + i] = {std::max<std::int64_t>(1, convolution.made(i, size.least)), convolution.made(i, size.most)};
  }
  return made;
}

std::optional<ConvolutionSizes> SizeBounds::convolution(const Node& node) const {
  const Node* packed = node.args().size() == 2 ? node.arg(1).node_or_null() : nullptr;
  const Call pack = packed ? call_of(*packed) : Call();
  const Extents sizes = at(pack, "W");
  const auto groups = along(pack.argument("groups"), 0);
  if (!sizes || sizes->size() != 4 || !groups) return std::nullopt;
  ConvolutionSizes made;
  made.transposed = node.is_call("prepacked::conv2d_transpose_clamp_run");
  for (const Extent& size : *sizes) {
    if (!size.is(size.least)) return std::nullopt;
  }
  const std::int64_t out = (*sizes)[0].least, in = (*sizes)[1].least;
  made.channels = made.transposed ? out : in * *groups;
  made.made_channels = made.transposed ? in * *groups : out;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto stride = along(pack.argument("stride"), i), padding = along(pack.argument("padding"), i),
               dilation = along(pack.argument("dilation"), i);
    const auto more = made.transposed ? along(pack.argument("output_padding"), i) : 0;
    if (!stride || *stride < 1 || !padding || !dilation || !more) return std::nullopt;
    made.dims.push_back({(*sizes)[2 + i].least, *stride, *padding, *dilation, *more});
  }
  return made;
}

std::optional<ConvolutionSizes> SizeBounds::plain_convolution(const Call& call) const {
  const Extents weight = at(call, "weight");
  const auto groups = along(call.argument("groups"), 0);
  if (!weight || weight->size() != 4 || !groups || !(*weight)[0].is((*weight)[0].least)) return std::nullopt;
  const bool transposed = call.schema().target.view().starts_with("aten::conv_transpose2d");
  ConvolutionSizes made;
  made.made_channels = transposed ? (*weight)[1].least * *groups : (*weight)[0].least;
  return made;
}

}  // namespace fx::rules
