// Archives of torch.export: what loading one costs beside reading its file. Of a length, as many weights and calls as a
// ResNet-50 has.
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "bench/harness.h"
#include "tests/support/scratch_folder.h"

namespace fx::bench {
namespace {

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

// As a program would that needs all of it: into memory of its own.
bool read_all(const std::string& path) {
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  const auto bytes = std::make_unique_for_overwrite<char[]>(size);
  std::ifstream file(path, std::ios::binary);
  return static_cast<bool>(file.read(bytes.get(), static_cast<std::streamsize>(size)));
}

template <typename Work>
void time_archive(benchmark::State& state, Work work) {
  const testing::ScratchFolder folder;
  const std::string path = (folder / "layers.pt2").string();
  save_exported(*layers(160, 400), path, {.inputs = {at::rand({2, 400})}});
  for (auto _ : state) benchmark::DoNotOptimize(work(path));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

void BM_LoadExported(benchmark::State& state) {
  time_archive(state, [](const auto& path) { return load_exported(path); });
}
void BM_ReadArchive(benchmark::State& state) { time_archive(state, read_all); }

BENCHMARK(BM_LoadExported)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ReadArchive)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fx::bench
