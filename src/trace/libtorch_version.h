// What tracing asks of LibTorch that differs between its versions (1.13 to 2.x). Everything else is one source.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/version.h>

#define FX_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace fx::internal {

/// On a proxy: its operators come to the tracer before autograd and before composite kernels see them.
inline constexpr c10::DispatchKey kProxyKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
/// In a thread that traces: operators without a proxy among their arguments (factories, parameters) come there, too.
inline constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
inline constexpr c10::DispatchKeySet kTraceKeys = c10::DispatchKeySet({kProxyKey, kModeKey});

/// The type that tells a dtype from an int; LibTorch passes both as ints.
inline const c10::TypePtr& precise_type(const c10::Argument& argument) { return argument.real_type(); }

}  // namespace fx::internal
