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
#include <torch/nn/modules/batchnorm.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/pt2/archives.h"
#include "tests/support/error_of.h"
#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::save_test {

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

TEST(SavedArchives, WhatIsNotDenseIsRefusedByName) {
  GraphModule gm(parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=part.w]\n%y = "
                             "call_function[target=aten::_sparse_mm](args = (%w, %x))\nreturn y"),
                 "M");
  gm.set_buffer("part.w", at::eye(3).to_sparse());
  const ScratchFolder folder;
  const std::string file = (folder / "sparse.pt2").string();
  const std::string why = one_line_error_of([&] { save_exported(gm, file, {.inputs = {at::ones({3, 3})}}); });
  EXPECT_THAT(why, HasSubstr("'part.w' is no dense tensor (Sparse), for which .pt2 has no words; make it dense"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(SavedArchives, StatisticsOfAnUnusedNormAreNotForgotten) {
  torch::nn::BatchNorm2d norm(2);
  GraphModule gm({{"norm", std::shared_ptr<torch::nn::Module>(norm.ptr())}},
                 parse_graph("graph():\n%x = placeholder[target=x]\n%n = call_module[target=norm](args = (%x,))\n"
                             "return x"));
  const ScratchFolder folder;
  const at::Tensor x = at::rand({2, 2, 2, 2});
  const std::string why = one_line_error_of([&] { save_exported(gm, folder / "a.pt2", {.inputs = {x}}); });
  EXPECT_THAT(why, HasSubstr("norm at %n"));
  norm->eval();
  save_exported(gm, folder / "a.pt2", {.inputs = {x}});
  EXPECT_TRUE(load(folder / "a.pt2")->forward(x).equal(x));
}

// Calls that no row knows the sizes of are tried alone.
TEST(SavedArchives, SavingLeavesTheProgramAsItWas) {
  const at::Tensor w = at::arange(1, 5, at::kChar);
  GraphModule gm({{"w", w}}, parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n%c = "
                                         "call_function[target=aten::cumsum_](args = (%w, 0))\nreturn x"));
  const ScratchFolder folder;
  save_exported(gm, folder / "a.pt2", {.inputs = {at::rand({2})}});
  EXPECT_TRUE(w.equal(at::arange(1, 5, at::kChar))) << w;
}

TEST(SavedArchives, TwoThatAreAlikeAreNotOne) {
  const at::Tensor whole = at::rand({2, 3});
  GraphModule gm({{"a", whole[0]}, {"b", whole[0]}},
                 parse_graph("graph():\n%a = get_attr[target=a]\n%b = get_attr[target=b]\n%c = "
                             "call_function[target=aten::unsqueeze_](args = (%a, 0))\nreturn b"));
  const ScratchFolder folder;
  EXPECT_THAT(one_line_error_of([&] { save_exported(gm, folder / "a.pt2"); }),
              HasSubstr("the tensors 'a', 'b' are alike"));
}

TEST(SavedArchives, AnExampleMayBeOneRowAgainAndAgain) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::neg](args = (%x,"
                  "))\nreturn y"));
  const ScratchFolder folder;
  const at::Tensor x = at::rand({1, 3}).expand({4, 3});
  save_exported(gm, folder / "a.pt2", {.inputs = {x}});
  EXPECT_TRUE(load(folder / "a.pt2")->forward(x).equal(-x));
}

// Nobody said of `n` that it is a number; the example does.
TEST(SavedArchives, AWholeNumberVaries) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%n = placeholder[target=n]\n%s = "
                  "call_function[target=operator.add](args = "
                  "(%n, 1))\n%z = call_function[target=aten::new_ones](args = (%x, (%s, 2)))\nreturn z"));
  const ScratchFolder folder;
  const at::Tensor x = at::rand({4, 3});
  save_exported(gm, folder / "fixed.pt2", {.inputs = {x, 5}});
  EXPECT_THAT(one_line_error_of([&] { load(folder / "fixed.pt2")->run({x, 7}); }), HasSubstr("n must be 5"));
  save_exported(gm, folder / "a.pt2", {.inputs = {x, 5}, .sizes = ExportedSizes::found});
  for (const std::int64_t n : {5, 7, 2})
    EXPECT_TRUE(load(folder / "a.pt2")->forward(x, n).equal(at::ones({n + 1, 2}))) << n;
}

TEST(SavedArchives, AWholeNumberInATupleVaries) {
  GraphModule gm(parse_graph(
      "graph():\n%v = placeholder[target=v]\n%x = call_function[target=operator.getitem](args = (%v, 0))\n%n = "
      "call_function[target=operator.getitem](args = (%v, 1))\n%y = call_function[target=aten::repeat](args = (%x, "
      "(%n, "
      "1)))\nreturn y"));
  const ScratchFolder folder;
  const at::Tensor x = at::rand({4, 3});
  const auto both = [&](std::int64_t n) { return c10::ivalue::Tuple::create({x, n}); };
  save_exported(gm, folder / "a.pt2", {.inputs = {both(3)}, .sizes = ExportedSizes::found});
  load(folder / "a.pt2")->save(folder / "b.pt");  // whose types are those of the archive
  for (const char* name : {"a.pt2", "b.pt"}) {
    for (const std::int64_t n : {3, 5})
      EXPECT_TRUE(load(folder / name)->run({both(n)}).toTensor().equal(x.repeat({n, 1}))) << name << n;
  }
}

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

INSTANTIATE_TEST_SUITE_P(OfPython, SavedArchive, ::testing::ValuesIn(archives()), archive_test_name);

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

// As Python writes them: run_decompositions() finds the same expressions when it computes the sizes anew.
TEST(SaveExported, WhatIsResizedByAFactorHasTheSizesThatPythonWrites) {
  const GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=torch.ops.aten.upsample_nearest2d.vec](args = (%x, None, [2.5, 0.7]))
    %z = call_function[target=torch.ops.aten.relu.default](args = (%y,))
    %flat = call_function[target=torch.ops.aten.flatten.using_ints](args = (%z, 1))
    return (z, flat)
)"));
  const Written written;
  const std::string path = written("resized");
  save_exported(module, path, {.inputs = {at::rand({2, 3, 5, 10})}, .dynamic = {{0, 2, {2, 99}}, {0, 3, {2, 99}}}});
  const std::string bytes = testing::file_text(path);
  EXPECT_THAT(bytes, HasSubstr("TruncToInt(Mul(Float('2.5', precision=53), ToFloat(Symbol("));
  EXPECT_THAT(bytes, HasSubstr("TruncToInt(Mul(Float('0.69999999999999996', precision=53), ToFloat(Symbol("));
  const auto again = load_exported(path);
  for (const auto& [height, width] : {std::pair{7, 30}, std::pair{4, 99}}) {
    const auto results = again->run({at::rand({2, 3, height, width})}).toTupleRef().elements();
    EXPECT_EQ(results[0].toTensor().size(2), static_cast<std::int64_t>(2.5 * height));
    EXPECT_EQ(results[0].toTensor().size(3), static_cast<std::int64_t>(0.7 * width));
  }
}

// ── Sizes found by trying ────────────────────────────────────────────────────────────────────────────────────────────

TEST(SizesFoundByTrying, EachRunFindsTheProgramAsTheFirstDid) {
  const at::Tensor weight = at::rand({2, 3});
  const GraphModule::Attributes attributes = {{"w", weight}};
  const GraphModule module(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %unread = placeholder[target=unread]
    %w = get_attr[target=w]
    %t = call_function[target=torch.ops.aten.t_.default](args = (%w,))
    %y = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %t))
    return y
)"));
  const Written written;
  const std::string path = written("reshaped_weight");
  const std::vector<c10::IValue> inputs = {at::rand({3, 2}), at::rand({2, 4, 1, 3})};
  save_exported(module, path, {.inputs = inputs, .sizes = ExportedSizes::found});
  EXPECT_EQ(weight.sizes(), at::IntArrayRef({2, 3}));
  const at::Tensor expected = inputs[0].toTensor() + weight.t();
  EXPECT_TRUE(load_exported(path)->run(inputs).toTensor().equal(expected));
}

// While sizes vary one of one is written as two, which Python does not take for a constant.
TEST(SizesFoundByTrying, ASizeOfOneThatHasNoExpressionStaysOne) {
  const GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=torch.ops.aten.combinations.default](args = (%x, 3))
    return y
)"));
  const Written written;
  const std::string path = written("one");
  save_exported(module, path, {.inputs = {at::rand({1})}, .sizes = ExportedSizes::found});
  const auto again = load_exported(path);
  EXPECT_EQ(again->forward(at::rand({1})).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_THAT(error_of([&] { again->forward(at::rand({2})); }), HasSubstr("must be 1"));
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

}  // namespace fx::save_test
