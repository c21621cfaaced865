// Where the tracer hooks into LibTorch's dispatcher.
#pragma once

#include <c10/core/DispatchKeySet.h>

namespace fx::internal {

/// On a proxy: its operators come to the tracer before autograd and before composite kernels see them.
inline constexpr c10::DispatchKey kProxyKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
/// In a thread that traces: operators without a proxy among their arguments (factories, parameters) come there, too.
inline constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
inline constexpr c10::DispatchKeySet kTraceKeys = c10::DispatchKeySet({kProxyKey, kModeKey});

}  // namespace fx::internal
