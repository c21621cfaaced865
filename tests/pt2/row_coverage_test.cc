// Nearly every operator of the models of the tests has a row of sizes.
#include <fxgraph/export/load.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/size_inference.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace fx::row_coverage_test {

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RowCoverage, IsThatOfTheModelsOfTheTests) {
  struct Counted {
    bool has_row = false;
    int calls = 0;
  };
  std::map<std::string, Counted> operators;
  int calls = 0, calls_with = 0, files = 0;
  const auto count = [&](const Graph& graph) {
    ++files;
    for (const Node& node : graph.nodes()) {
      const Call call = node.is_callable() ? call_of(node) : Call();
      if (!call || !call.schema().returns_tensors()) continue;
      Counted& counted = operators[std::string(packet_of(call.schema().target.view()))];
      counted.has_row = has_size_row(call.schema());
      ++counted.calls;
      ++calls;
      calls_with += counted.has_row;
    }
  };
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/corpus")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".fx")) count(parse_graph(text_of(entry.path())));
    if (path.ends_with(".pt2")) count(load_exported(path)->graph());
    if (path.ends_with(".pt")) count(load(path)->graph());
  }
  int with = 0;
  std::string without;
  for (const auto& [name, counted] : operators) {
    with += counted.has_row;
    if (!counted.has_row) without += "\n  " + name + ", called " + std::to_string(counted.calls) + " times";
  }
  std::cout << files << " programs: " << with << " of " << operators.size() << " operators, " << calls_with << " of "
            << calls << " calls; without a row:" << without << "\n";
  EXPECT_GT(files, 50);
  EXPECT_GE(with * 100, static_cast<int>(operators.size()) * 95) << without;
  EXPECT_GE(calls_with * 1000, calls * 995) << without;
}

}  // namespace fx::row_coverage_test
