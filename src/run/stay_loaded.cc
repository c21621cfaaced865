#include <fxgraph/run/stay_loaded.h>

#include <dlfcn.h>

namespace fx::internal {
namespace {

const char kHere = 0;  // a function of a shared library may be that of another one

}  // namespace

void stay_loaded() {
  Dl_info library;
  if (!dladdr(&kHere, &library)) return;
  // Found by the name that it was loaded by: the file may be gone, and a program has none.
  dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace fx::internal
