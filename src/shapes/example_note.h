// A note on placeholders: the shape and type of the example that the program was traced with. Written by tracing, read
// by what needs an example and is given none (export/save.h). FX's `tensor_meta`.
#pragma once

namespace fx::meta_key {

inline constexpr const char* kTensorMeta = "tensor_meta";  ///< TensorInfo

}  // namespace fx::meta_key
