// Random networks of images, for tests of what lowers them: writes, views, strides and sizes that stand in the way.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::testing {

/// A program of one input (kImage) and two results, of as many calls.
std::shared_ptr<GraphModule> random_image_program(std::uint64_t seed, std::size_t operators);

/// What it takes; other batches do, too.
extern const std::vector<TensorInfo> kImage;

/// An image of that batch; `last`: channels last; `part`: an image of several in a film.
at::Tensor image(std::int64_t batch, bool last, bool part = false);

}  // namespace fx::testing
