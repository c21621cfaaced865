// Sizes of what operators make of two sizes that vary: each is written as an expression that holds at other sizes,
// which is compared with what the program gives there, with what it gives once it is read again, and in Python.
#include <ATen/ATen.h>
#include <fxgraph/fx.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/pt2/damaged.h"
#include "tests/pt2/kept_archive.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::size_rules_test {

using at::Tensor;
using testing::Json;

constexpr const char* kHead = "graph():\n%x = placeholder[target=x]\n";

Json program_in(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  const auto [data, size] = reader.getRecord("models/model.json");
  return Json::parse(std::string(static_cast<const char*>(data.get()), size));
}

// What the archive says of the size of `value` at these sizes of x.
std::int64_t said_size(const Json& program, const std::string& value, std::size_t dim, const Tensor& x) {
  const Json& values = program["graph_module"]["graph"]["tensor_values"];
  const auto expr_of = [&](const Json& size) {
    return size.contains("as_int") ? SizeExpr::integer(size["as_int"].get<std::int64_t>())
                                   : SizeExpr::parse(size["as_expr"]["expr_str"].get<std::string>());
  };
  std::map<std::string, std::int64_t> symbols;
  for (std::int64_t i = 0; i < x.dim(); ++i) {
    const SizeExpr expr = expr_of(values["x"]["sizes"][static_cast<std::size_t>(i)]);
    if (expr.is_symbol()) symbols[expr.name()] = x.size(i);
  }
  return expr_of(values[value]["sizes"][dim]).evaluate(symbols).value_or(-1);
}

struct Case {
  const char* name;
  const char* body;  ///< of %x, whose sizes 0 and 1 vary
  at::IntArrayRef sizes;
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

#define ATEN_CALL(name, target, args) "%" name " = call_function[target=torch.ops.aten." target "](args = " args ")\n"
constexpr std::int64_t kSequence[] = {3, 12, 8}, kMatrix[] = {5, 9};

const Case kCases[] = {
    {"diagonal", ATEN_CALL("y", "diagonal.default", "(%x, 0, 0, 1)") "return y", kSequence},
    {"diagonal_above", ATEN_CALL("y", "diagonal.default", "(%x, 2, 0, 1)") "return y", kMatrix},
    {"diagonal_below", ATEN_CALL("y", "diagonal.default", "(%x, -3, -2, -1)") "return y", kMatrix},
    {"steps",
     ATEN_CALL("s", "slice.Tensor", "(%x, 0, 1, 9223372036854775807, 2)")
         ATEN_CALL("y", "slice.Tensor", "(%s, 1, 0, -1, 3)") "return y",
     kSequence},
    {"steps_in_rows",
     ATEN_CALL("s", "slice.Tensor", "(%x, 1, 0, 9223372036854775807, 5)")
         ATEN_CALL("y", "reshape.default", "(%s, [-1, 8])") "return y",
     kSequence},
    {"windows",
     ATEN_CALL("v", "unsqueeze.default", "(%x, 1)")
         ATEN_CALL("y", "im2col.default", "(%v, [3, 2], [1, 1], [1, 0], [2, 1])") "return y",
     kSequence},
    {"windows_and_back",
     ATEN_CALL("v", "unsqueeze.default", "(%x, 1)")
         ATEN_CALL("u", "im2col.default", "(%v, [2, 8], [1, 1], [0, 0], [1, 1])") ATEN_CALL("n", "size.int", "(%x, 1)")
             ATEN_CALL("y", "col2im.default", "(%u, [%n, 8], [2, 8], [1, 1], [0, 0], [1, 1])") "return y",
     kSequence},
    {"windows_both_ways",
     ATEN_CALL("v", "unsqueeze.default", "(%x, 0)") ATEN_CALL("w", "unsqueeze.default", "(%v, 0)")
         ATEN_CALL("y", "im2col.default", "(%w, [2, 3], [1, 2], [1, 0], [1, 2])") "return y",
     kMatrix},
    {"pairs", ATEN_CALL("v", "select.int", "(%x, 0, 0)") ATEN_CALL("y", "pdist.default", "(%v, 2.0)") "return y",
     kSequence},
    {"lower_triangle",
     ATEN_CALL("n", "size.int", "(%x, 1)") ATEN_CALL("y", "tril_indices.default", "(%n, %n)") "return y", kSequence},
    {"upper_triangle",
     ATEN_CALL("n", "size.int", "(%x, 1)") ATEN_CALL("y", "triu_indices.default", "(%n, %n, 1)") "return y", kSequence},
    {"padded_together",
     ATEN_CALL("a", "select.int", "(%x, 0, 0)") ATEN_CALL("s", "select.int", "(%x, 0, 1)")
         ATEN_CALL("b", "slice.Tensor", "(%s, 0, 2, 5)")
             ATEN_CALL("y", "pad_sequence.default", "([%a, %b], True, 0.0)") "return y",
     kSequence},
    {"cropped", ATEN_CALL("y", "constant_pad_nd.default", "(%x, [0, 0, -2, -1])") "return y", kSequence},
    {"blocks_of_a_multiple",
     ATEN_CALL("f", "flatten.using_ints", "(%x, 1)") ATEN_CALL("y", "unfold.default", "(%f, 1, 16, 3)") "return y",
     kSequence},
    // Calls that have no row.
    {"half_a_spectrum", ATEN_CALL("f", "fft_rfft.default", "(%x,)") ATEN_CALL("y", "real.default", "(%f,)") "return y",
     kMatrix},
    {"kronecker", ATEN_CALL("y", "kron.default", "(%x, %x)") "return y", kMatrix},
    {"vandermonde",
     ATEN_CALL("v", "select.int", "(%x, 0, 0)") ATEN_CALL("n", "size.int", "(%x, 1)")
         ATEN_CALL("m", "vander.default", "(%v, 4)") ATEN_CALL("y", "mul.Scalar", "(%m, %n)") "return y",
     kMatrix},
};

class SizesOf : public ::testing::TestWithParam<Case> {};

TEST_P(SizesOf, HoldAtOthers) {
  const GraphModule module(parse_graph(std::string(kHead) + GetParam().body));
  testing::KeptArchive archive(std::string("sizes_") + GetParam().name);
  const std::string& path = archive.path();
  const at::Tensor example = at::rand(GetParam().sizes);
  save_exported(module, path, {.inputs = {example}, .dynamic = {{0, 0, {2, 300}}, {0, 1, {3, 300}}}});
  const Json program = program_in(path);
  const auto again = load_exported(path);
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 7}, {5, 31}, {9, 9}, {17, 6}, {40, 64}, {7, 129}}) {
    std::vector<std::int64_t> sizes = GetParam().sizes.vec();
    sizes[0] = rows, sizes[1] = columns;
    const Tensor x = at::rand(sizes);
    const Tensor wanted = module.clone_graph_module()->forward(x);
    EXPECT_TRUE(at::equal(again->forward(x), wanted)) << x.sizes();
    archive.gives({x}, wanted);
    for (std::int64_t dim = 0; dim < wanted.dim(); ++dim)
      EXPECT_EQ(said_size(program, "y", static_cast<std::size_t>(dim), x), wanted.size(dim)) << x.sizes() << " " << dim;
  }
}

INSTANTIATE_TEST_SUITE_P(ForPython, SizesOf, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#define CALL(name, target, args) "%" name " = call_function[target=" target "](args = " args ")\n"
#define SIZE ATEN_CALL("n", "size.int", "(%x, 0)")

// Far from the example.
const Case kNumbers[] = {
    {"chosen",
     SIZE CALL("c", "operator.gt", "(%n, 200)") CALL("d", "operator.mul", "(%n, 2)")
         CALL("e", "operator.add", "(%n, 12)") CALL("i", "torch.sym_ite", "(%c, %d, %e)")
             ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"chosen_float",
     SIZE CALL("c", "operator.gt", "(%n, 200)") CALL("d", "operator.mul", "(%n, 0.5)")
         CALL("e", "torch.sym_float", "(%n,)") CALL("i", "torch.sym_ite", "(%c, %d, %e)")
             ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"not_chosen",
     SIZE CALL("b", "operator.gt", "(%n, 200)") CALL("l", "operator.lt", "(%n, 280)") CALL(
         "a", "operator.and_", "(%b, %l)") CALL("c", "torch.sym_not", "(%a,)") CALL("e", "operator.add", "(%n, 12)")
         CALL("i", "torch.sym_ite", "(%c, %n, %e)") ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"least", SIZE CALL("i", "torch.sym_min", "(%n, 250)") ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"most", SIZE CALL("i", "torch.sym_max", "(%n, 250.5)") ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"shifted",
     SIZE CALL("a", "operator.lshift", "(%n, 2)") CALL("i", "operator.rshift", "(%a, 1)")
         ATEN_CALL("y", "mul.Tensor", "(%x, %i)") "return y",
     kMatrix},
    {"power_of_what_is_chosen",
     SIZE CALL("c", "operator.gt", "(%n, 200)") CALL("f", "torch.sym_float", "(%n,)")
         CALL("g", "operator.mul", "(%f, 0.5)") CALL("i", "torch.sym_ite", "(%c, %f, %g)")
             CALL("j", "operator.pow", "(%i, 2.0)") CALL("k", "operator.mul", "(%j, %i)")
                 ATEN_CALL("y", "mul.Tensor", "(%x, %k)") "return y",
     kMatrix},
    {"root",
     SIZE CALL("f", "torch.sym_float", "(%n,)") CALL("i", "torch._sym_sqrt", "(%f,)")
         CALL("j", "operator.pow", "(%i, -0.5)") ATEN_CALL("y", "mul.Tensor", "(%x, %j)") "return y",
     kMatrix},
};

class NumbersOf : public ::testing::TestWithParam<Case> {};

TEST_P(NumbersOf, HoldAtOtherSizes) {
  const GraphModule module(parse_graph(std::string(kHead) + GetParam().body));
  testing::KeptArchive archive(std::string("numbers_") + GetParam().name);
  save_exported(module, archive.path(), {.inputs = {at::rand(GetParam().sizes)}, .dynamic = {{0, 0, {2, 9000}}}});
  const auto again = load_exported(archive.path());
  for (const std::int64_t rows : {2, 5, 199, 200, 201, 249, 250, 251, 279, 280, 4000}) {
    const Tensor x = at::rand({rows, 9});
    const Tensor wanted = module.clone_graph_module()->forward(x);
    EXPECT_TRUE(at::allclose(again->forward(x), wanted)) << rows;
    archive.gives({x}, wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(ForPython, NumbersOf, ::testing::ValuesIn(kNumbers),
                         [](const auto& info) { return std::string(info.param.name); });

// A number that data decide, with a point, and the whole one that is made of it: neither is what it was in the example.
TEST(NumbersOfData, AreMadeWhole) {
  const GraphModule module(parse_graph(
      std::string(kHead) + ATEN_CALL("m", "max.default", "(%x,)") ATEN_CALL("f", "item.default", "(%m,)")
                               CALL("i", "math.trunc", "(%f,)") CALL("g", "torch.sym_max", "(%f, 2.0)") ATEN_CALL(
                                   "z", "mul.Tensor", "(%x, %i)") ATEN_CALL("y", "mul.Tensor", "(%z, %g)") "return y"));
  const testing::ScratchFolder scratch;
  const std::string path = scratch / "whole.pt2";
  save_exported(module, path, {.inputs = {at::rand({2, 3})}});
  const auto again = load_exported(path);
  for (const double by : {0.5, 3.0, 100.0}) {
    const Tensor x = at::rand({2, 3}) * by;
    EXPECT_TRUE(at::allclose(again->forward(x), module.clone_graph_module()->forward(x))) << by;
  }
}

}  // namespace fx::size_rules_test
