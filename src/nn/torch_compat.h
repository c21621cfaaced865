// What differs between the LibTorch versions that fxgraph builds on (1.13 to 2.x). Everything else is one source.
#pragma once

#include <ATen/core/ivalue.h>
#if __has_include(<c10/core/SymBool.h>)
#include <c10/core/SymBool.h>
#endif

#include <cstdint>
#include <utility>

namespace fx {

/// The optional of LibTorch's time: its own up to 2.1, the standard one after.
template <typename T>
using TorchOptional = decltype(std::declval<c10::IValue>().toOptional<T>());

/// What torch::nn::Module::clone takes.
using TorchDeviceOption = TorchOptional<c10::Device>;

/// What an index takes for a slice's end that is left open, where that is not the largest number there is.
inline constexpr std::int64_t kOpenEnd = (std::int64_t{1} << 62) - 1;

/// How a tensor answers yes or no about its shape, for the questions that later versions ask (`sym_is_…_custom`).
#if __has_include(<c10/core/SymBool.h>)
using TorchTruth = c10::SymBool;
#else
using TorchTruth = bool;
#endif

}  // namespace fx
