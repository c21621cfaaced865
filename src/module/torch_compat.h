// What differs between the LibTorch versions that fxgraph builds on (1.13 to 2.x). Everything else is one source.
#pragma once

#include <ATen/core/ivalue.h>

#include <utility>

namespace fx {

/// The optional of LibTorch's time: its own up to 2.1, the standard one after.
template <typename T>
using TorchOptional = decltype(std::declval<c10::IValue>().toOptional<T>());

/// What torch::nn::Module::clone takes.
using TorchDeviceOption = TorchOptional<c10::Device>;

}  // namespace fx
