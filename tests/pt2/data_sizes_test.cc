// Sizes and numbers that data decide are written as u0, u1, …, and what was written does what the program did, at data
// that it never saw.
#include <ATen/ATen.h>
#include <fxgraph/export/save.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/pt2/archives.h"
#include "tests/pt2/damaged.h"
#include "tests/pt2/kept_archive.h"
#include "tests/support/scratch_folder.h"

namespace fx::data_sizes_test {

using ::testing::HasSubstr;
using testing::Json;

constexpr const char* kHead = "graph():\n%x = placeholder[target=x]\n%i = placeholder[target=i]\n";

GraphModule module_of(const std::string& lines) { return GraphModule(parse_graph(kHead + lines)); }

std::vector<c10::IValue> example() { return {at::randn({6, 3}), at::tensor({3, 2, 4, 5})}; }

// All, none, one, some rows; small and large numbers.
std::vector<std::vector<c10::IValue>> further() {
  at::manual_seed(1);
  std::vector<std::vector<c10::IValue>> calls;
  for (const at::Tensor& x : {at::ones({6, 3}), -at::ones({6, 3}), at::eye(6, 3) - 0.5, at::randn({6, 3})}) {
    for (const at::Tensor& i : {at::tensor({3, 1, 4, 2}), at::tensor({5, 5, 5, 5}), at::tensor({1, 2, 6, 1})})
      calls.push_back({x, i});
  }
  return calls;
}

/// What save_exported writes, as JSON and as it is loaded again.
class Written {
 public:
  explicit Written(const GraphModule& module, const std::string& name = "data",
                   const SaveExportedOptions& options = {.inputs = example()})
      : archive_(name) {
    save_exported(module, archive_.path(), options);
    caffe2::serialize::PyTorchStreamReader reader(archive_.path());
    const auto [data, size] = reader.getRecord("models/model.json");
    json_ = Json::parse(std::string(static_cast<const char*>(data.get()), size));
    loaded_ = load_exported(archive_.path());
  }
  const Json& json() const { return json_; }
  GraphModule& loaded() { return *loaded_; }
  testing::KeptArchive& archive() { return archive_; }
  std::string range(const std::string& symbol) const { return json_["range_constraints"][symbol].dump(); }

 private:
  testing::KeptArchive archive_;
  Json json_;
  std::shared_ptr<GraphModule> loaded_;
};

struct Case {
  const char* name;
  const char* lines;
  int symbols;  ///< how many u0, u1, … there are
};

class DataSizesOf : public ::testing::TestWithParam<Case> {};

TEST_P(DataSizesOf, AreSymbols) {
  GraphModule module = module_of(GetParam().lines);
  Written written(module, std::string("data_") + GetParam().name);
  int symbols = 0;
  for (const auto& [name, range] : written.json()["range_constraints"].items()) symbols += name[0] == 'u';
  EXPECT_EQ(symbols, GetParam().symbols) << written.json()["range_constraints"];
  for (const std::vector<c10::IValue>& call : further()) {
    c10::IValue wanted;
    try {
      wanted = module.run(call);
    } catch (const std::exception&) {  // an assertion of the program's, which is in what was written, too
      EXPECT_ANY_THROW(written.loaded().run(call));
      written.archive().refuses(call);
      continue;
    }
    testing::expect_all_equal(written.loaded().run(call), testing::leaves_of(wanted));
    written.archive().gives(call, wanted);
  }
}

#define CALL(name, target, args) "%" name " = call_function[target=" target "](args = " args ")\n"
#define ATEN(name, target, args) CALL(name, "torch.ops.aten." target, args)

INSTANTIATE_TEST_SUITE_P(
    ForPython, DataSizesOf,
    ::testing::Values(
        Case{"nonzero", ATEN("n", "nonzero.default", "(%x,)") ATEN("y", "sum.dim_IntList", "(%n, [1])") "return (n, y)",
             1},
        Case{"kept",
             ATEN("c", "select.int", "(%x, 1, 0)") ATEN("m", "gt.Scalar", "(%c, 0)")
                 ATEN("n", "nonzero.default", "(%m,)") ATEN("k", "squeeze.dim", "(%n, 1)")
                     ATEN("r", "index.Tensor", "(%x, [%k])") ATEN("y", "cat.default", "([%r, %x],)") "return (y, r)",
             1},
        Case{"where",
             ATEN("w", "where.default", "(%x,)") CALL("a", "operator.getitem", "(%w, 0)")
                 CALL("b", "operator.getitem", "(%w, 1)") ATEN("y", "add.Tensor", "(%a, %b)") "return y",
             1},
        Case{"masked_rows",
             ATEN("s", "sum.dim_IntList", "(%x, [1])") ATEN("m", "gt.Scalar", "(%s, 0)")
                 ATEN("r", "index.Tensor", "(%x, [%m])") ATEN("y", "cat.default", "([%r, %x],)") "return (y, r)",
             1},
        Case{"masked_columns",
             ATEN("s", "sum.dim_IntList", "(%x, [0])") ATEN("m", "gt.Scalar", "(%s, 0)")
                 ATEN("r", "index.Tensor", "(%x, [None, %m])") "return r",
             1},
        Case{"one_mask_twice",
             ATEN("m", "gt.Scalar", "(%x, 0)") ATEN("a", "index.Tensor", "(%x, [%m])") ATEN("e", "exp.default", "(%x,)")
                 ATEN("b", "index.Tensor", "(%e, [%m])") ATEN("y", "add.Tensor", "(%a, %b)") "return y",
             1},
        Case{"two_masks",
             ATEN("m", "gt.Scalar", "(%x, 0)") ATEN("k", "lt.Scalar", "(%x, 0)")
                 ATEN("a", "masked_select.default", "(%x, %m)") ATEN("b", "masked_select.default", "(%x, %k)")
                     ATEN("y", "outer.default", "(%a, %b)") ATEN("z", "cat.default", "([%a, %b],)") "return (y, z)",
             2},
        Case{"unique",
             CALL("u", "torch.ops.aten._unique2.default", "(%i, True, True, True)")
                 CALL("a", "operator.getitem", "(%u, 0)") CALL("b", "operator.getitem", "(%u, 1)")
                     CALL("c", "operator.getitem", "(%u, 2)") ATEN("y", "mul.Tensor", "(%a, %c)")
                         ATEN("z", "index.Tensor", "(%y, [%b])") "return (y, z)",
             1},
        Case{"repeats",
             ATEN("r", "repeat_interleave.self_Tensor", "(%i, %i)") ATEN("y", "mul.Tensor", "(%r, 2)") "return y", 1},
        Case{"bins", ATEN("b", "bincount.default", "(%i,)") ATEN("y", "cumsum.default", "(%b, 0)") "return y", 1},
        Case{"number",
             ATEN("s", "max.default", "(%i,)") ATEN("n", "item.default", "(%s,)") CALL("c", "operator.ge", "(%n, 0)")
                 CALL("a", "torch._assert", "(%c, 'negative')") CALL("k", "operator.mul", "(%n, 2)")
                     ATEN("y", "arange.default", "(%k,)")
                         ATEN("z", "zeros.default", "([%n, 3],)") "return (y, z, n, k)",
             1},
        Case{"bounded",
             ATEN("s", "min.default", "(%i,)") ATEN("n", "item.default", "(%s,)") CALL("c", "operator.ge", "(%n, 2)")
                 CALL("a", "torch._assert", "(%c, 'too few')") CALL("d", "operator.le", "(%n, 6)")
                     CALL("b", "torch._assert", "(%d, 'too many')")
                         ATEN("y", "slice.Tensor", "(%x, 0, 0, %n)") "return y",
             1},
        Case{"fraction",
             ATEN("s", "max.default", "(%x,)") ATEN("n", "item.default", "(%s,)")
                 ATEN("y", "mul.Tensor", "(%x, %n)") "return y",
             0}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DataSizes, HaveTheRangesThatAreAsserted) {
  const Written written(
      module_of(ATEN("s", "min.default", "(%i,)") ATEN("n", "item.default", "(%s,)") CALL("c", "operator.ge", "(%n, 2)")
                    CALL("a", "torch._assert", "(%c, 'too few')") ATEN("z", "nonzero.default", "(%x,)")
                        ATEN("y", "ones.default", "([%n],)") "return (y, z)"),
      "ranges", {.inputs = {at::rand({6, 3}), at::tensor({4, 5})}});
  EXPECT_EQ(written.range("u0"), R"({"max_val":null,"min_val":2})");
  EXPECT_EQ(written.range("u1"), R"({"max_val":null,"min_val":0})");
  const Json& graph = written.json()["graph_module"]["graph"];
  EXPECT_EQ(graph["sym_int_values"]["n"].dump(),
            R"json({"as_expr":{"expr_str":"Symbol('u0', integer=True)","hint":null}})json");
  EXPECT_THAT(graph.dump(), HasSubstr("torch.ops.aten._assert_scalar.default"));
}

// An example in which nothing is chosen says nothing of the rows; they are found all the same.
TEST(DataSizes, AreFoundOnAnExampleWithoutRows) {
  GraphModule module =
      module_of(ATEN("m", "gt.Scalar", "(%x, 100)") ATEN("y", "index.Tensor", "(%x, [%m])") "return y");
  Written written(module);
  const at::Tensor x = at::arange(18, at::kFloat).view({6, 3}) * 10;
  EXPECT_TRUE(at::equal(written.loaded().run({x, at::arange(4)}).toTensor(), x.index({x > 100})));
}

// What follows from it need not be an expression: then the value is named that has none.
TEST(DataSizes, WithoutAnExpressionAreRefused) {
  GraphModule module = module_of(ATEN("s", "max.default", "(%i,)") ATEN("n", "item.default", "(%s,)")
                                     ATEN("y", "slice.Tensor", "(%x, 0, 0, %n)") "return y");
  const testing::ScratchFolder folder;
  try {
    save_exported(module, (folder / "m.pt2").string(), {.inputs = example(), .dynamic = {{0, 0, {2, 64}}}});
    ADD_FAILURE() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("%y has a size"));
  }
}

}  // namespace fx::data_sizes_test
