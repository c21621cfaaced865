// Convolutions, pooling, interpolation, padding: windows over the last dimensions of images.
#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace window_rows {
namespace {

struct Convolution {
  const TensorType &input, &weight;
  std::size_t count;  // of dimensions of a window
  bool batched;
  SizeExpr groups;
  Sizes stride, dilation;

  SizeExpr batch() const { return batched ? input.sizes[0] : SizeExpr(1); }
  const SizeExpr& channels() const { return input.sizes[batched ? 1 : 0]; }
  const SizeExpr& size(std::size_t i) const { return input.sizes[input.sizes.size() - count + i]; }
  const SizeExpr& kernel(std::size_t i) const { return weight.sizes[2 + i]; }
};

bool has_none(const Sizes& sizes, std::size_t first = 0) {
  return std::find(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end(), SizeExpr(0)) != sizes.end();
}

Convolution read(SizeCall& c) {
  const TensorType &input = c.tensor("input"), &weight = c.tensor("weight");
  if (input.dtype != weight.dtype) SizeCall::refuse_types(weight.dtype, input.dtype);
  c.require(weight.sizes.size() >= 3, "a weight of a window");
  const std::size_t count = weight.sizes.size() - 2, named = c.rank_of_name();
  c.require(named == 0 || named == count, "a weight of as many dimensions as the operator's name says");
  c.require(input.sizes.size() == count + 2 || (input.sizes.size() == count + 1 && named > 0),
            "an image, or a batch of them");
  Convolution made{input,
                   weight,
                   count,
                   input.sizes.size() == count + 2,
                   c.number("groups"),
                   c.numbers("stride", count),
                   c.numbers("dilation", count)};
  SizeCall::float_type(input);
  // What is refused of nothing is another thing for each kernel.
  if (has_none(weight.sizes) || has_none(input.sizes, made.batched ? 1 : 0) ||
      (has_none(input.sizes) && !weight.strides))
    SizeCall::give_up("an image or a weight without elements");
  if (made.batched && weight.strides && c.answer({SizeRelation::at_least, input.sizes[0], 1}) != Answer::yes) {
    // Of no images the weight is viewed as one row.
    const ViewStrides row = view_strides(c, weight, {weight.numel()});
    if (!row.strides && row.is_decided) c.require_at_least(input.sizes[0], 1);
    if (!row.strides && !row.is_decided) c.leave_unsaid("whether a weight of these strides can be viewed as one row");
  }
  c.require_at_least(made.groups, 1);
  for (const SizeExpr& each : made.stride) c.require_at_least(each, 1);
  for (const SizeExpr& each : made.dilation) c.require_at_least(each, 1);
  return made;
}

void require_bias(SizeCall& c, const SizeExpr& channels, DType dtype) {
  if (!c.given("bias")) return;
  const TensorType& bias = c.tensor("bias");
  c.require(bias.sizes.size() == 1, "a bias that is a vector");
  c.require_equal(bias.sizes[0], channels);
  SizeCall::require_type(bias, dtype);
}

/// Kernels write pixel by pixel only where the input or the weight has room for that: channels within the window, that
/// within the batch.
bool may_lie_by_pixels(const TensorType& tensor, std::size_t count) {
  const std::size_t window = tensor.sizes.size() - count;
  std::vector<std::size_t> innermost_first = {window - 1};
  for (std::size_t dim = tensor.sizes.size(); dim-- > window;) innermost_first.push_back(dim);
  if (window == 2) innermost_first.push_back(0);
  std::int64_t least = 0;
  for (const std::size_t dim : innermost_first) {
    if (!tensor.strides || !(*tensor.strides)[dim].is_integer() || !tensor.sizes[dim].is_integer()) return true;
    const std::int64_t stride = (*tensor.strides)[dim].value();
    if (stride < least) return false;
    least = stride * tensor.sizes[dim].value();
  }
  return true;
}

void give_image(SizeCall& c, const Convolution& conv, const SizeExpr& channels, const Sizes& image) {
  TensorType made{conv.input.dtype, {}, {}};
  if (conv.batched) made.sizes.push_back(conv.input.sizes[0]);
  made.sizes.push_back(channels);
  made.sizes.insert(made.sizes.end(), image.begin(), image.end());
  if (!may_lie_by_pixels(conv.input, conv.count) && !may_lie_by_pixels(conv.weight, conv.count))
    made.strides = contiguous_strides(made.sizes);
  c.give(std::move(made));
}

/// As many as the weight asks for. What is made of none kernels tell.
void require_channels(SizeCall& c, const Convolution& conv, const SizeExpr& channels) {
  c.require_equal(conv.channels(), channels);
  if (c.answer({SizeRelation::at_least, channels, 1}) != Answer::yes) SizeCall::give_up("no channels");
}

/// An image without rows is taken where there is none at all.
void require_images(SizeCall& c, const Convolution& conv) {
  for (std::size_t i = 0; i < conv.count; ++i) c.require_at_least(conv.kernel(i), 1);
  for (std::size_t i = 0; i < conv.count; ++i) {
    c.require_any({{SizeRelation::at_least, conv.size(i), 1}, {SizeRelation::equal, conv.batch(), 0}});
  }
}

void convolve(SizeCall& c, const Sizes& padding) {
  const Convolution conv = read(c);
  require_channels(c, conv, conv.weight.sizes[1] * conv.groups);
  c.require_at_least(conv.weight.sizes[0], 1);
  c.require({SizeRelation::multiple, conv.weight.sizes[0], conv.groups});
  require_bias(c, conv.weight.sizes[0], conv.input.dtype);
  Sizes image;
  for (std::size_t i = 0; i < conv.count; ++i) {
    c.require_at_least(padding[i], 0);
    const SizeExpr room = conv.size(i) + 2 * padding[i] - conv.dilation[i] * (conv.kernel(i) - 1) - 1;
    c.require_at_least(room, 0);
    image.push_back(floor_div(room, conv.stride[i]) + 1);
  }
  require_images(c, conv);
  give_image(c, conv, conv.weight.sizes[0], image);
}

void convolve_transposed(SizeCall& c, const Sizes& padding) {
  const Convolution conv = read(c);
  const Sizes more = c.numbers("output_padding", conv.count);
  const SizeExpr channels = conv.weight.sizes[1] * conv.groups;
  require_channels(c, conv, conv.weight.sizes[0]);
  c.require({SizeRelation::multiple, conv.weight.sizes[0], conv.groups});
  require_bias(c, channels, conv.input.dtype);
  Sizes image;
  for (std::size_t i = 0; i < conv.count; ++i) {
    c.require_at_least(padding[i], 0);
    c.require_at_least(more[i], 0);
    c.require({SizeRelation::less, more[i], max(conv.stride[i], conv.dilation[i])});
    const SizeExpr size =
        (conv.size(i) - 1) * conv.stride[i] - 2 * padding[i] + conv.dilation[i] * (conv.kernel(i) - 1) + more[i] + 1;
    c.require_at_least(size, 0);
    c.require_any({{SizeRelation::at_least, size, 1}, {SizeRelation::equal, conv.batch(), 0}});
    image.push_back(size);
  }
  require_images(c, conv);
  give_image(c, conv, channels, image);
}

std::size_t window_rank(const SizeCall& c) { return c.tensor("weight").sizes.size() - 2; }

void convolution(SizeCall& c) {
  c.require(c.tensor("weight").sizes.size() >= 3, "a weight of a window");
  if (const Argument* words = c.argument("padding").literal(); words && words->is_string()) {
    if (words->as_string() == "valid") return convolve(c, Sizes(window_rank(c), 0));
    const Convolution conv = read(c);
    require_channels(c, conv, conv.weight.sizes[1] * conv.groups);
    require_images(c, conv);
    for (std::size_t i = 0; i < conv.count; ++i) c.require_at_least(conv.size(i), 1);
    c.require(words->as_string() == "same", "a padding of 'same' or 'valid'");
    for (const SizeExpr& each : conv.stride) c.require_equal(each, 1);
    c.require({SizeRelation::multiple, conv.weight.sizes[0], conv.groups});
    require_bias(c, conv.weight.sizes[0], conv.input.dtype);
    Sizes image;
    for (std::size_t i = 0; i < conv.count; ++i) image.push_back(conv.size(i));
    return give_image(c, conv, conv.weight.sizes[0], image);
  }
  convolve(c, c.numbers("padding", window_rank(c)));
}

void transposed_convolution(SizeCall& c) {
  c.require(c.tensor("weight").sizes.size() >= 3, "a weight of a window");
  convolve_transposed(c, c.numbers("padding", window_rank(c)));
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, …)
void any_convolution(SizeCall& c) {
  for (const SizeExpr& each : c.numbers("output_padding")) c.require_at_least(each, 0);
  c.flag("transposed") ? transposed_convolution(c) : convolution(c);
}

// Packed weights are what they were packed from.
void packed(SizeCall& c) { c.give(AbstractValue::List(c.arguments().begin(), c.arguments().end())); }

/// (X, packed weights): as what was packed computes, behind the input.
void run_packed(SizeCall& c) {
  const AbstractValue::List* from = c.arguments()[1].list();
  if (!from) SizeCall::give_up("nothing is known of the packed weights");
  const PackedKernel& kernel = *find_packed_kernel(c.schema().target);
  AbstractValue::List given = {c.arguments()[0]};
  for (const std::size_t argument : kernel.given) given.push_back((*from)[argument]);
  c.give_as(Symbol(kernel.computes), given);
}

template <bool takes_dilation>
void pool(SizeCall& c) {
  const std::size_t count = c.rank_of_name();
  const TensorType& self = c.image(count);
  const Sizes window = c.numbers("kernel_size", count), padding = c.numbers("padding", count);
  const Sizes stride = c.numbers("stride").empty() ? window : c.numbers("stride", count);
  const Sizes dilation = takes_dilation ? c.numbers("dilation", count) : Sizes(count, 1);
  const bool rounds_up = c.flag("ceil_mode");
  Sizes sizes = self.sizes;
  for (std::size_t i = 0; i < count; ++i) {
    SizeExpr& size = sizes[sizes.size() - count + i];
    c.require_at_least(window[i], 1);
    c.require_at_least(stride[i], 1);
    c.require_at_least(dilation[i], 1);
    c.require_at_least(padding[i], 0);
    c.require_at_least(window[i], 2 * padding[i]);
    const SizeExpr room = size + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1;
    const SizeExpr before = size;
    size = floor_div(room + (rounds_up ? stride[i] - 1 : SizeExpr(0)), stride[i]) + 1;
    // The last window begins inside of the input, or its padding before.
    if (rounds_up) size = min(size, ceil_div(before + padding[i], stride[i]));
    if (takes_dilation && count == 1 && c.answer({SizeRelation::at_least, room, 0}) == Answer::no)
      SizeCall::give_up("no window, which is refused where gradients are taken");
    c.require_at_least(rounds_up ? size : room + 1, 1);
    if (rounds_up && c.answer({SizeRelation::at_least, room, 0}) != Answer::yes) SizeCall::give_up("a cut window");
    // avg_pool3d wants whole windows of the input.
    if (!takes_dilation && count == 3) c.require_at_least(before, window[i]);
  }
  const DType dtype = SizeCall::float_type(self);
  c.give(sizes, dtype);
  if (c.schema().returns.size() == 2) c.give(std::move(sizes), DType::int64);
}

void adaptive_pool(SizeCall& c) {
  const std::size_t count = c.rank_of_name();
  const bool averages = packet_of(c.schema().target.view()).find("avg") != std::string_view::npos;
  if (averages && c.self().sizes.size() == count) SizeCall::give_up("an image without channels");
  const TensorType& self = c.image(count, averages && count < 3 ? c.tensor("self").sizes.size() - count : 1);
  const Sizes wanted = c.written_out("output_size", count);
  c.require(wanted.size() == count, "as many sizes as dimensions");
  Sizes sizes = self.sizes;
  for (std::size_t i = 0; i < count; ++i) {
    if (c.answer({SizeRelation::at_least, wanted[i], 1}) != Answer::yes) SizeCall::give_up("a size of 0");
    sizes[sizes.size() - count + i] = wanted[i];
  }
  c.give(sizes, SizeCall::float_type(self));
  if (c.schema().returns.size() == 2) c.give(std::move(sizes), DType::int64);
}

// (self, kernel_size, dilation, padding, stride)
void im2col(SizeCall& c) {
  const TensorType& self = c.image(2);
  const Sizes window = c.written_out("kernel_size", 2), dilation = c.written_out("dilation", 2),
              padding = c.written_out("padding", 2), stride = c.written_out("stride", 2);
  const std::size_t first = self.sizes.size() - 3;
  SizeExpr blocks = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    c.require_at_least(window[i], 1);
    c.require_at_least(stride[i], 1);
    c.require_at_least(dilation[i], 1);
    c.require_at_least(padding[i], 0);
    const SizeExpr room = self.sizes[first + 1 + i] + 2 * padding[i] - dilation[i] * (window[i] - 1) - 1;
    c.require_at_least(room, 0);
    blocks = blocks * (floor_div(room, stride[i]) + 1);
  }
  Sizes sizes(self.sizes.begin(), self.sizes.begin() + static_cast<std::ptrdiff_t>(first));
  sizes.push_back(self.sizes[first] * window[0] * window[1]);
  sizes.push_back(blocks);
  c.give(std::move(sizes), SizeCall::float_type(self));
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"conv1d conv2d conv3d", convolution, {}, cost::convolution},
    {"conv_transpose1d conv_transpose2d conv_transpose3d", transposed_convolution, {}, cost::convolution},
    {"convolution _convolution", any_convolution, {}, cost::convolution},
    {"prepacked::conv2d_clamp_prepack prepacked::conv2d_transpose_clamp_prepack prepacked::linear_clamp_prepack "
     "mkldnn_prepacked::conv2d_prepack",
     packed},
    {"prepacked::conv2d_clamp_run prepacked::conv2d_transpose_clamp_run", run_packed},
    {"prepacked::linear_clamp_run", run_packed, gives_contiguous},
    {"mkldnn_prepacked::conv2d_run", run_packed, differs_by_strides},
    {"max_pool1d max_pool3d max_pool2d_with_indices", pool<true>, {}, cost::pooling},
    {"max_pool2d", pool<true>, keeps_type | keeps_channels_last, cost::pooling},
    {"fxgraph::max_pool2d", pool<true>, keeps_channels_last, cost::pooling},
    {"max_pool1d_with_indices max_pool3d_with_indices", pool<true>},
    {"avg_pool1d avg_pool3d", pool<false>, {}, cost::pooling},
    {"avg_pool2d", pool<false>, keeps_type | keeps_channels_last, cost::pooling},
    {"adaptive_avg_pool1d adaptive_avg_pool3d _adaptive_avg_pool2d adaptive_max_pool2d",
     adaptive_pool,
     {},
     cost::each_input<1>},
    {"adaptive_avg_pool2d", adaptive_pool, keeps_type | keeps_channels_last, cost::each_input<1>},
    {"_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool3d", adaptive_pool},
    {"im2col", im2col},
};

}  // namespace
}  // namespace window_rows

std::span<const OperatorRecord> window_operators() { return window_rows::kRows; }

}  // namespace fx::internal
