// The machine that LibTorch computes on: which BLAS, how many threads.
//
// Thread-safety: set_threads is for the start of a program; the others may be called from any thread.
#pragma once

#include <string>

namespace fx {

/// `OpenBLAS`, `MKL`, `BLIS`, `ATLAS`, `reference BLAS`; `unknown BLAS` when its library does not say. Of the library
/// that is loaded.
std::string blas_name();

/// One line when LibTorch computes several times slower than it need, and what to install: with the reference BLAS, or
/// with several threads and an OpenBLAS that has threads of its own. Else empty.
std::string slow_blas_notice();

/// How many threads one operator may use.
int threads();

/// Sets that for LibTorch, and for its BLAS where that has threads of its own.
void set_threads(int count);

}  // namespace fx
