// Why a condition on inputs holds: said by an archive that was written and read again, as often as one likes.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/pt2/damaged.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::reasons_test {

using ::testing::HasSubstr;

std::string call(const char* name, const char* target, const std::string& args) {
  return std::string("%") + name + " = call_function[target=" + target + "](args = (" + args + "))\n";
}

std::string assertion(const char* name, const char* condition, const char* why) {
  return call(name, "torch._assert", std::string("%") + condition + ", \"" + why + "\"");
}

// Of x: four dimensions, the batch that of y, at least 3 rows, columns by the eight.
const std::string kProgram =
    "graph():\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n" + call("d", "aten::dim", "%x") +
    call("is_image", "operator.eq", "%d, 4") + assertion("a0", "is_image", "images have channels") +
    call("b", "aten::size.int", "%x, 0") + call("by", "aten::size.int", "%y, 0") +
    call("is_batch", "operator.eq", "%b, %by") + assertion("a1", "is_batch", "a label for each image") +
    call("h", "aten::size.int", "%x, 2") + call("is_high", "operator.ge", "%h, 3") +
    assertion("a2", "is_high", "a kernel of three rows") + call("w", "aten::size.int", "%x, 3") +
    call("rest", "operator.mod", "%w, 8") + call("is_wide", "operator.eq", "%rest, 0") +
    assertion("a3", "is_wide", "windows are eight wide") + call("n", "aten::neg", "%x") +
    call("m", "aten::mul.Scalar", "%y, 2") + "return (n, m)";

TEST(Reasons, OutliveTheArchive) {
  const testing::ScratchFolder folder;
  auto gm = std::make_shared<GraphModule>(parse_graph(kProgram));
  const std::vector<c10::IValue> example = {at::rand({4, 3, 6, 16}), at::rand({4})};
  const struct {
    std::vector<std::int64_t> x, y;
    const char* why;
  } kRefused[] = {{{4, 3, 6}, {4}, "images have channels"},
                  {{4, 3, 6, 16}, {5}, "a label for each image"},
                  {{4, 3, 2, 16}, {4}, "a kernel of three rows"},
                  {{4, 3, 6, 12}, {4}, "windows are eight wide"}};
  for (const char* name : {"a.pt2", "b.pt2", "c.fx", "d.pt2", "e.pt"}) {  // each of the one before
    if (std::string_view(name).ends_with(".pt2")) {
      save_exported(*gm, folder / name, {.inputs = example, .sizes = ExportedSizes::found});
    } else {
      gm->save(folder / name);
    }
    gm = load(folder / name);
    for (const auto& [x, y, why] : kRefused)
      EXPECT_THAT(testing::error_of([&, &x = x, &y = y] {
                    gm->run({at::rand(x), at::rand(y)});
                  }),
                  HasSubstr(why))
          << name;
    gm->run({at::rand({7, 3, 3, 8}), at::rand({7})});
    EXPECT_EQ(gm->contract().conditions().size(), 5u) << name << "\n" << gm->contract().str();
  }
}

// A program that Python exported has none; what it says of sizes is said as before.
TEST(Reasons, AreNoneWhereNobodyGaveAny) {
  const auto gm = load_exported("tests/corpus/pt2/mlp.pt2");
  EXPECT_THAT(testing::error_of([&] { gm->run({at::rand({65, 8})}); }), HasSubstr("dimension 0 must be at most 64"));
}

TEST(Reasons, ThatAreDamagedAreRefused) {
  const testing::ScratchFolder folder;
  for (const char* reasons : {"[", "[1]", "[[\"a\"]]", "{}"}) {
    testing::Json program = testing::program_of("mlp");
    program["graph_module"]["metadata"]["fxgraph_reasons"] = reasons;
    const std::string path = folder / "mlp.pt2";
    std::ofstream(path, std::ios::binary) << testing::rewritten("mlp", {{"models/model.json", program.dump()}});
    EXPECT_THAT(testing::one_line_error_of([&] { load_exported(path); }), HasSubstr("mlp.pt2")) << reasons;
  }
}

// Such a text says that something is asked, and not what.
TEST(Reasons, ChecksThatAreNotThereAreNoChecks) {
  const testing::ScratchFolder folder;
  const GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%g = call_module[target=_guards_fn](args = (%x,))\n" +
                  call("n", "aten::neg", "%x") + "return n"));
  EXPECT_THAT(testing::one_line_error_of([&] { save_exported(gm, folder / "a.pt2", {.inputs = {at::ones({2})}}); }),
              HasSubstr("has no '_guards_fn'"));
}

TEST(Reasons, ListsOfOperatorsComeBackAsLists) {
  const testing::ScratchFolder folder;
  const GraphModule gm(parse_graph("graph():\n%x = placeholder[target=x]\n" + call("s", "aten::split.Tensor", "%x, 2") +
                                   call("m", "aten::max.dim", "%x, 0") + "return (s, m)"));
  save_exported(gm, folder / "a.pt2", {.inputs = {at::rand({4, 3})}});
  const c10::IValue result = load(folder / "a.pt2")->run({at::rand({4, 3})});
  EXPECT_TRUE(result.toTupleRef().elements()[0].isList());
  EXPECT_TRUE(result.toTupleRef().elements()[1].isTuple());
}

}  // namespace fx::reasons_test
