#include <fxgraph/run/machine.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <array>
#include <filesystem>
#include <utility>

namespace fx {

namespace {

/// The file that matrix products come from, links followed; empty when LibTorch has them inside.
std::string blas_file() {
  void* product = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info where{};
  if (!product || !dladdr(product, &where) || !where.dli_fname) return {};
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::canonical(where.dli_fname, failed);
  return failed ? std::string(where.dli_fname) : file.string();
}

/// Whether OpenBLAS starts threads beside those of OpenMP, in which LibTorch computes. Both kinds spin while they wait.
bool blas_has_own_threads() {
  enum { alone, own_threads, openmp };
  using Kind = int (*)();
  const auto kind = reinterpret_cast<Kind>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
  return kind && kind() == own_threads &&
         at::get_parallel_info().find("ATen parallel backend: OpenMP") != std::string::npos;
}

}  // namespace

std::string blas_name() {
  if (at::globalContext().hasMKL()) return "MKL";
  static constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {{
      {"openblas", "OpenBLAS"},
      {"libmkl", "MKL"},
      {"blis", "BLIS"},
      {"atlas", "ATLAS"},
      {"/libblas.so", "reference BLAS"},
  }};
  const std::string file = blas_file();
  for (const auto& [part, name] : kNames) {
    if (file.find(part) != std::string::npos) return name;
  }
  return "unknown BLAS";
}

std::string slow_blas_notice() {
  if (blas_name() == "reference BLAS")
    return "LibTorch computes with the reference BLAS, up to ten times slower than it could: apt-get install "
           "libopenblas0-openmp";
  if (threads() > 1 && blas_has_own_threads())
    return "OpenBLAS has threads of its own, which wait for those of LibTorch, up to ten times slower than it could: "
           "apt-get install libopenblas0-openmp libopenblas0-pthread-";
  return {};
}

int threads() { return at::get_num_threads(); }

void set_threads(int count) {
  at::set_num_threads(count);
  using SetThreads = void (*)(int);
  for (const char* name : {"openblas_set_num_threads", "bli_thread_set_num_threads"}) {
    if (const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, name))) set(count);
  }
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestBlock = 32 << 20;  // more malloc does not allow
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargestBlock);
#endif
}

}  // namespace fx
