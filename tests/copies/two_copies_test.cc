// Several plugins in one process, each with a copy of fxgraph: files that are copied, so that the loader takes them for
// different ones.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/support/scratch_folder.h"

namespace fx::two_copies_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Plugin {
 public:
  Plugin(const testing::ScratchFolder& folder, const std::string& name) : saved_(folder / (name + ".pt")) {
    const std::filesystem::path file = folder / (name + ".so");
    std::filesystem::copy_file(std::getenv("FXGRAPH_TEST_PLUGIN"), file);
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw std::runtime_error(dlerror());
  }

  std::string use_programs() { return function<const char*(const char*)>("use_programs")(saved_.c_str()); }
  std::string trace_program() { return function<const char*()>("trace_program")(); }
  void unload() { dlclose(handle_); }

 private:
  template <typename Function>
  Function* function(const char* name) {
    void* found = dlsym(handle_, name);
    if (!found) throw std::runtime_error(dlerror());
    return reinterpret_cast<Function*>(found);
  }

  std::string saved_;
  void* handle_;
};

// One test, for a process has only one first copy.
TEST(TwoCopies, WorkInOneProcessAndOneTraces) {
  if (!std::getenv("FXGRAPH_TEST_PLUGIN")) GTEST_SKIP() << "FXGRAPH_TEST_PLUGIN names no plugin";
  const testing::ScratchFolder folder;
  Plugin first(folder, "first"), second(folder, "second");
  EXPECT_EQ(first.use_programs(), "");
  EXPECT_EQ(second.use_programs(), "");
  EXPECT_EQ(second.trace_program(), "");

  const std::string refused = first.trace_program();
  EXPECT_THAT(refused, AllOf(StartsWith("tracing: another copy of fxgraph"), HasSubstr("fxgraph::shared")));
  EXPECT_THAT(refused, Not(HasSubstr("\n")));
  EXPECT_EQ(first.trace_program(), refused);
  EXPECT_EQ(first.use_programs(), "");
  EXPECT_EQ(second.trace_program(), "");

  // The first has registered the operators, the second what traces.
  first.unload();
  EXPECT_EQ(second.use_programs(), "");
  second.unload();
  Plugin third(folder, "third");
  EXPECT_EQ(third.use_programs(), "");
  EXPECT_EQ(third.trace_program(), refused);
}

}  // namespace fx::two_copies_test
