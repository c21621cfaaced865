// ShapeProp: runs a module on example inputs and notes shape, dtype, strides and device of every node's value.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "ir/tensor_info.h"
#include "module/graph_module.h"

namespace fx {

/// Runs `module` on `inputs` and returns what each node's value was. Random numbers are drawn and buffers written as in
/// any run.
Shapes propagate_shapes(GraphModule& module, std::vector<c10::IValue> inputs);

/// The same on zeros of the given shapes (sizes, dtype and device are read).
Shapes propagate_shapes(GraphModule& module, const std::vector<TensorInfo>& inputs);

/// Zeros of that shape, dtype and device.
at::Tensor zeros_like_info(const TensorInfo& info);

}  // namespace fx
