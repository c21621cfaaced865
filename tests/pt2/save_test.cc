// Programs written as archives and read again. FXGRAPH_TEST_PT2_KEEP names a folder where what is written stays, for
// Python to load.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "tests/pt2/archives.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx {
namespace {

using namespace fx::testing;
using ::testing::HasSubstr;

// Files of one test; FXGRAPH_TEST_PT2_KEEP names a folder where they stay.
class Written {
 public:
  std::string operator()(const std::string& name) const {
    const char* keep = std::getenv("FXGRAPH_TEST_PT2_KEEP");
    return (keep ? std::filesystem::path(keep) : scratch_.path()) / (name + ".pt2");
  }

 private:
  ScratchFolder scratch_;
};

class SavedArchive : public ::testing::TestWithParam<std::string> {};

TEST_P(SavedArchive, IsTheProgramThatWasLoaded) {
  const auto gm = load_exported(corpus() + "/" + GetParam() + ".pt2");
  const Written written;
  const std::string path = written(GetParam());
  try {
    save_exported(*gm, path);
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    RecordProperty("refused", error.what());
    return;  // refused by name
  }
  const auto again = load_exported(path);
  again->graph().lint();
  at::manual_seed(0);
  expect_all_equal(again->run(pack_inputs(*again, recorded_inputs(GetParam()))), recorded(GetParam()).outputs);
  for (const auto& item : gm->named_parameters()) {
    EXPECT_TRUE(again->is_parameter(item.key())) << item.key();
    EXPECT_TRUE(at::equal(again->attribute(item.key()), item.value())) << item.key();
  }
  for (const auto& item : gm->named_buffers()) EXPECT_TRUE(again->find_attribute(item.key()).defined()) << item.key();
  // Written once more, it is the same: names, order, structure of the call.
  const std::string second = written(GetParam() + ".again");
  save_exported(*again, second);
  EXPECT_EQ(print_graph(load_exported(second)->graph()), print_graph(again->graph()));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfPython, SavedArchive, ::testing::ValuesIn(archives()), test_name);

TEST(SaveExported, WhatIsTiedStaysTied) {
  const auto gm = load_exported("tests/corpus/pt2/tied.pt2");
  const Written written;
  const std::string path = written("tied_again");
  save_exported(*gm, path);
  const auto again = load_exported(path);
  EXPECT_TRUE(again->attribute("e.weight").is_same(again->attribute("o.weight")));
}

TEST(SaveExported, SizesThatVaryStayFree) {
  const auto gm = load_exported("tests/corpus/pt2/mlp.pt2");
  const Written written;
  const std::string path = written("mlp_again");
  save_exported(*gm, path);
  const auto again = load_exported(path);
  for (const std::int64_t batch : {1, 5, 64}) EXPECT_EQ(again->forward(at::rand({batch, 8})).size(0), batch);
  EXPECT_THROW(again->forward(at::rand({65, 8})), Error);
}

TEST(SaveExported, ShapesMustBeKnown) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::relu", {x}));
  const GraphModule gm(std::move(graph));
  const Written written;
  const std::string path = written("unknown");
  try {
    save_exported(gm, path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the shape of the input 'x' is not known"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  save_exported(gm, path, {.inputs = {at::rand({2, 3})}, .dynamic = {{0, 0, {1, 9}}}});
  const auto again = load_exported(path);
  EXPECT_EQ(again->forward(at::rand({7, 3})).size(0), 7);
  EXPECT_THROW(again->forward(at::rand({10, 3})), Error);
}

// Python finds no entry for them when it reads the archive.
TEST(SaveExported, ValuesWithoutWordsAreRefusedByName) {
  const char* const programs[] = {
      "%s = call_function[target=torch.ops.aten.to_sparse.default](args = (%x,))\n"
      "%y = call_function[target=torch.ops.aten.to_dense.default](args = (%s,))\n"
      "return y",
      "%s = call_function[target=torch.ops.aten.to_mkldnn.default](args = (%x,))\n"
      "%y = call_function[target=torch.ops.aten.to_dense.default](args = (%s,))\n"
      "return y"};
  const Written written;
  for (const char* program : programs) {
    const GraphModule module(parse_graph(std::string("graph():\n%x = placeholder[target=x]\n") + program));
    const std::string path = written("no_words");
    EXPECT_THAT(error_of([&] {
                  save_exported(module, path, {.inputs = {at::rand({3, 4})}});
                }),
                ::testing::AllOf(HasSubstr("at %s"), HasSubstr("strided")));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace
}  // namespace fx
