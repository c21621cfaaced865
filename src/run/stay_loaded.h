// What LibTorch is given for good must stay: kernels, which its dispatcher calls until the process ends.
#pragma once

namespace fx::internal {

/// Keeps the shared library or module that this code is linked into in memory until the process ends, whoever calls
/// dlclose(). Does nothing in a program. Thread-safe.
void stay_loaded();

}  // namespace fx::internal
