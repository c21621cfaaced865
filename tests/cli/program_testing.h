// What the tests of the program share: running it, and a folder for its files.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::testing {

namespace fs = std::filesystem;

inline constexpr const char* kModel = "examples/models/demo.pt";

struct Result {
  int code;
  std::string out, err;
};

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* program = std::getenv("FXGRAPH_PROGRAM");
    ASSERT_NE(program, nullptr) << "FXGRAPH_PROGRAM names the program to test";
    program_ = fs::absolute(program).string();
  }

  Result run(const std::string& arguments, const std::string& input = "/dev/null") const {
    return run_command(program_ + " " + arguments, input);
  }
  /// Of the shell.
  Result run_command(const std::string& command, const std::string& input = "/dev/null") const {
    const std::string out = path("stdout"), err = path("stderr");
    const int status = std::system(("{ " + command + "; } <" + input + " >" + out + " 2>" + err).c_str());
    return {WEXITSTATUS(status), file_text(out), file_text(err)};
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    return names;
  }

  std::string program_;
  testing::ScratchFolder folder_;
};

inline constexpr const char* kText =
    "graph():\n"
    "    %x : [num_users=1] = placeholder[target=x]\n"
    "    %y : [num_users=1] = placeholder[target=y]\n"
    "    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {})\n"
    "    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {})\n"
    "    return relu\n";

}  // namespace fx::testing
