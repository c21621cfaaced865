// The machine that LibTorch computes on: which BLAS, how many threads.
//
// Thread-safety: set_threads and keep_freed_memory are for the start of a program; the others may be called from any
// thread.
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

/// Lets malloc keep what is freed for what comes next, of blocks of up to 32 MiB and 64 MiB in all. By itself it gives
/// the memory of a run's values back to the system, which hands it out again page by page in the next run: a mnasnet
/// takes half as long again. For all of the process; does nothing without glibc's malloc.
void keep_freed_memory();

}  // namespace fx
