// What loading costs beside reading the file.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace fx::cost_test {

using fx::testing::ScratchFolder;

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// As a program would that needs all of it: into memory of its own.
void read_all(const std::string& path) {
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  const auto bytes = std::make_unique_for_overwrite<char[]>(size);
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.read(bytes.get(), static_cast<std::streamsize>(size)));
}

// And without memory: piece by piece to one place.
void read_through(const std::string& path) {
  std::vector<char> piece(1 << 20);
  std::ifstream file(path, std::ios::binary);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
  }
}

// As many weights and calls as a ResNet-50 has.
std::shared_ptr<GraphModule> layers(int count, std::int64_t width) {
  const auto made = std::make_shared<GraphModule>();
  GraphModule& module = *made;
  Node* value = &module.graph().placeholder("x");
  for (int i = 0; i < count; ++i) {
    const std::string name = "w" + std::to_string(i);
    module.set_parameter(name, at::empty({width, width}).uniform_(-0.01, 0.01));
    value = &module.graph().call_function("aten::linear", {*value, module.graph().get_attr(Symbol(name))});
    value = &module.graph().call_function("aten::relu", {*value});
  }
  module.graph().output(*value);
  return made;
}

// The best of several turns, each of all: a busy machine slows any. FXGRAPH_TEST_PT2_COST names an archive to measure
// instead.
TEST(ExportedCostSlow, LoadingIsNoMoreThanTwiceReading) {
  const ScratchFolder folder;
  const char* given = std::getenv("FXGRAPH_TEST_PT2_COST");
  const std::string path = given ? given : (folder / "layers.pt2").string();
  if (!given) save_exported(*layers(160, 400), path, {.inputs = {at::rand({2, 400})}});
  double first = 0, load = 1e9, read = 1e9, through = 1e9;
  for (int turn = 0; turn < 7; ++turn) {
    const double loaded = seconds_of([&] { load_exported(path); });
    if (turn == 0) first = loaded;
    load = std::min(load, loaded);
    read = std::min(read, seconds_of([&] { read_all(path); }));
    through = std::min(through, seconds_of([&] { read_through(path); }));
  }
  RecordProperty("seconds", std::to_string(load) + " to load (" + std::to_string(first) + " at first), " +
                                std::to_string(read) + " to read, " + std::to_string(through) + " to read through");
  EXPECT_LT(load, 2 * read) << std::filesystem::file_size(path) << " bytes";
}

}  // namespace fx::cost_test
