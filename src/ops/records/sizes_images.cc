// Images that are resized, padded and rearranged.
#include <algorithm>
#include <cmath>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {
namespace image_rows {
namespace {

/// `TruncToInt(2.5*ToFloat(n))`, at least 1.
SizeExpr scaled(SizeCall& c, const SizeExpr& size, const AbstractValue& factor) {
  const Argument* literal = factor.literal();
  if (!literal || !literal->is_float()) SizeCall::give_up("a factor that is not known");
  constexpr double kLeast = 1e-9;
  c.require(literal->as_float() > kLeast, "a factor of which something is left");
  double least = std::max(1.0, std::floor(1 / literal->as_float()));
  if (least * literal->as_float() < 1) ++least;
  c.require_at_least(size, static_cast<std::int64_t>(least));
  return SizeExpr::call(
             "TruncToInt",
             {SizeExpr::call("Mul", {SizeExpr::real(literal->as_float()), SizeExpr::call("ToFloat", {size})})})
      .simplified();
}

// (input, output_size, …, scale_factors) or (self, output_size, …, scales_…)
void upsample(SizeCall& c) {
  const std::size_t count = c.rank_of_name();
  const TensorType& self = c.tensor(c.schema().index_of(Symbol("self")) >= 0 ? "self" : "input");
  c.require(self.sizes.size() == count + 2, "a batch of images");
  c.require(c.given("output_size") != c.given("scale_factors"), "sizes or factors");
  Sizes wanted;
  if (c.given("output_size")) {
    wanted = c.numbers("output_size");
  } else if (const AbstractValue::List* factors = c.argument("scale_factors").list()) {
    c.require(factors->size() == count, "as many factors as dimensions");
    for (std::size_t i = 0; i < count; ++i) wanted.push_back(scaled(c, self.sizes[2 + i], (*factors)[i]));
  }
  c.require(wanted.size() == count, "as many sizes as dimensions");
  Sizes sizes = self.sizes;
  for (std::size_t i = 0; i < count; ++i) {
    if (!wanted[i].is_call("TruncToInt")) c.require_at_least(wanted[i], 1);
    sizes[2 + i] = wanted[i];
  }
  for (std::size_t i = 1; i < self.sizes.size(); ++i) c.require_at_least(self.sizes[i], 1);
  c.give(std::move(sizes), SizeCall::float_type(self));
}

/// (self, pairs from the last dimension on, …)
void padded(SizeCall& c, const TensorType& self, std::string_view mode, const Sizes& pad) {
  c.require(pad.size() % 2 == 0 && pad.size() / 2 <= self.sizes.size(), "a pair for each padded dimension");
  Sizes sizes = self.sizes;
  std::vector<SizeCondition> some;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    SizeExpr& size = sizes[sizes.size() - 1 - i];
    const SizeExpr &before = pad[2 * i], &after = pad[2 * i + 1];
    const SizeExpr had = size;
    size = had + before + after;
    if (mode == "constant") {
      c.require_at_least(had + min(before, 0) + min(after, 0), 0);
      if (c.is_certainly(size, 0)) SizeCall::give_up("nothing, which some releases refuse");
      continue;
    }
    c.require_at_least(size, mode == "circular" ? 1 : 0);
    if (mode != "circular") some.push_back({SizeRelation::at_least, size, 1});
    if (mode == "reflect") {
      c.require({SizeRelation::less, before, had});
      c.require({SizeRelation::less, after, had});
    } else if (mode == "circular") {
      c.require_at_least(had, before);
      c.require_at_least(had, after);
    }
  }
  if (!some.empty()) c.require_any(some);
  c.give(std::move(sizes), self.dtype);
}

/// An image without channels is refused where its elements are repeated, and some where they are mirrored.
const TensorType& padded_image(SizeCall& c, std::size_t count, std::string_view mode) {
  const TensorType& image = c.image(count, mode == "circular" ? 2 : 1);
  if (mode == "replicate" || (mode == "reflect" && count == 3))
    c.require_at_least(image.sizes[image.sizes.size() - count - 1], 1);
  return image;
}

void pad(SizeCall& c, std::string_view mode) {
  const TensorType& self = c.self();
  const Sizes pairs = c.numbers("pad");
  if (mode == "constant") return padded(c, self, mode, pairs);
  const std::size_t count = pairs.size() / 2;
  if (count == 0 || count > 3 || c.given("value")) SizeCall::give_up("an uncommon padding");
  const TensorType& image = padded_image(c, count, mode);
  if (mode == "circular") c.require(image.sizes.size() == count + 2, "a batch of images");
  SizeCall::float_type(image);
  padded(c, image, mode, pairs);
}
void pad(SizeCall& c) { pad(c, c.text("mode")); }
// The mode as a number.
void pad_enum(SizeCall& c) {
  constexpr const char* kModes[] = {"reflect", "replicate", "circular", "constant"};
  const std::int64_t mode = c.literal("mode");
  c.require(mode >= 0 && mode < 4, "a mode of padding");
  pad(c, kModes[mode]);
}
void constant_pad(SizeCall& c) { padded(c, c.self(), "constant", c.numbers("pad")); }
void image_pad(SizeCall& c) {
  const char* const mode = c.schema().target.view().find("reflect") != std::string_view::npos ? "reflect" : "replicate";
  const std::size_t count = c.rank_of_name();
  const TensorType& self = padded_image(c, count, mode);
  SizeCall::float_type(self);
  const Sizes pairs = c.numbers("padding");
  if (pairs.size() > 2 * count) SizeCall::give_up("more pairs than dimensions");
  c.require(pairs.size() == 2 * count, "a pair for each dimension");
  padded(c, self, mode, pairs);
}

// (self, upscale_factor)
void pixel_shuffle(SizeCall& c) {
  const TensorType& self = c.self();
  const SizeExpr factor = c.number("upscale_factor");
  const std::size_t rank = self.sizes.size();
  c.require(rank >= 3, "an image");
  c.require_at_least(factor, 1);
  Sizes sizes = self.sizes;
  c.require({SizeRelation::multiple, sizes[rank - 3], factor * factor});
  sizes[rank - 3] = floor_div(sizes[rank - 3], factor * factor);
  sizes[rank - 2] = sizes[rank - 2] * factor;
  sizes[rank - 1] = sizes[rank - 1] * factor;
  c.give(std::move(sizes), self.dtype);
}
void pixel_unshuffle(SizeCall& c) {
  const TensorType& self = c.self();
  const SizeExpr factor = c.number("downscale_factor");
  if (std::ranges::find(self.sizes, SizeExpr(0)) != self.sizes.end()) SizeCall::give_up("an image without elements");
  const std::size_t rank = self.sizes.size();
  c.require(rank >= 3, "an image");
  c.require_at_least(factor, 1);
  Sizes sizes = self.sizes;
  for (const std::size_t i : {rank - 2, rank - 1}) {
    c.require({SizeRelation::multiple, sizes[i], factor});
    sizes[i] = floor_div(sizes[i], factor);
  }
  sizes[rank - 3] = sizes[rank - 3] * factor * factor;
  c.give(std::move(sizes), self.dtype);
}

// (input, grid, …)
void grid_sample(SizeCall& c) {
  const TensorType &input = c.tensor("input"), &grid = c.tensor("grid");
  const std::size_t rank = input.sizes.size();
  c.require((rank == 4 || rank == 5) && grid.sizes.size() == rank,
            "a batch of images and a grid of as many dimensions");
  SizeCall::require_type(grid, SizeCall::float_type(input));
  c.require_equal(input.sizes[0], grid.sizes[0]);
  c.require(rank == 4 || c.literal("interpolation_mode") != 2, "images of two dimensions for bicubic interpolation");
  c.require_equal(grid.sizes.back(), static_cast<std::int64_t>(rank) - 2);
  for (std::size_t i = 2; i < rank; ++i) c.require_at_least(input.sizes[i], 1);
  Sizes sizes = {input.sizes[0], input.sizes[1]};
  sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
  c.give(std::move(sizes), input.dtype);
}

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"upsample_nearest1d upsample_nearest3d upsample_linear1d upsample_bicubic2d upsample_trilinear3d "
     "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa "
     "_upsample_bicubic2d_aa",
     upsample},
    {"upsample_nearest2d upsample_bilinear2d", upsample, keeps_channels_last},
    {"pad", pad, {}, cost::each_output<0>},
    {"_pad_enum", pad_enum},
    {"constant_pad_nd", constant_pad, keeps_channels_last, cost::each_output<0>},
    {"reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d",
     image_pad},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_unshuffle},
    {"grid_sampler", grid_sample},
};

}  // namespace
}  // namespace image_rows

std::span<const OperatorRecord> image_operators() { return image_rows::kRows; }

}  // namespace fx::internal
