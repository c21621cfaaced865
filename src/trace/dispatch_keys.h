// Where the tracer hooks into LibTorch's dispatcher: the one place that names the two keys.
//
// A library can register its own fallback for few keys, and those that see every operator before autograd does, and
// that LibTorch itself leaves free in every version from 1.8 to 2.14, are the two that it keeps for tests of wrappers
// and modes. Nothing in a released LibTorch registers anything there. Each key has room for one fallback in a process:
// the first trace takes both, for good, and a trace by a second copy of fxgraph (or by another library that had the
// same idea) is an Error; see install_dispatch(). What runs, loads and saves programs needs neither.
#pragma once

#include <c10/core/DispatchKeySet.h>

namespace fx::internal {

/// On a proxy: its operators come to the tracer before autograd and before composite kernels see them.
inline constexpr c10::DispatchKey kProxyKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
/// In a thread that traces: operators without a proxy among their arguments (factories, parameters) come there, too.
inline constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
inline constexpr c10::DispatchKeySet kTraceKeys = c10::DispatchKeySet({kProxyKey, kModeKey});

}  // namespace fx::internal
