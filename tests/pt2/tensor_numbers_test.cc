// Sizes as torch.jit.trace and torch.jit.script write them, in tensors without dimensions and in lists: an archive
// computes with numbers, and gives what the program gives at other sizes, here and in Python.
#include <ATen/ATen.h>
#include <fxgraph/fx.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pt2/kept_archive.h"
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"

namespace fx::tensor_numbers_test {

using at::Tensor;

struct Case {
  const char* name;
  const char* body;  ///< of %x, whose sizes 0 and 1 vary, and %c, a 2 that the trace put in
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

#define ATEN_CALL(name, target, args) "%" name " = call_function[target=torch.ops.aten." target "](args = " args ")\n"
#define CALL(name, target, args) "%" name " = call_function[target=" target "](args = " args ")\n"
#define SIZE_TENSOR(name, dim)                         \
  ATEN_CALL(name "_size", "size.int", "(%x, " dim ")") \
  CALL(name, "torch.ops.prim.NumToTensor.Scalar", "(%" name "_size,)")
#define FILLED(size) ATEN_CALL("y", "new_zeros.default", "(%x, [" size "])") "return y"

GraphModule module_of(const char* body) {
  return {GraphModule::Attributes{{"_tensor_constant0", at::scalar_tensor(2, at::kLong)}},
          parse_graph(std::string("graph():\n%x = placeholder[target=x]\n"
                                  "%c = get_attr[target=_tensor_constant0]\n") +
                      body)};
}

const Case kCases[] = {
    {"view", SIZE_TENSOR("n", "0") ATEN_CALL("i", "Int.Tensor", "(%n,)")
                 ATEN_CALL("y", "view.default", "(%x, [%i, -1])") "return y"},
    {"arithmetic", SIZE_TENSOR("n", "0") SIZE_TENSOR("m", "1") ATEN_CALL("a", "mul.Tensor", "(%n, %m)")
                       ATEN_CALL("b", "add.Scalar", "(%a, 3)") ATEN_CALL("d", "rsub.Scalar", "(%b, 9000)")
                           ATEN_CALL("e", "pow.Tensor_Scalar", "(%m, 2)") ATEN_CALL("f", "sub.Tensor", "(%d, %e)")
                               ATEN_CALL("i", "Int.Tensor", "(%f,)") FILLED("%i")},
    // Downwards.
    {"quotient",
     SIZE_TENSOR("n", "0") ATEN_CALL("a", "sub.Scalar", "(%n, 40)") ATEN_CALL("q", "floor_divide.default", "(%a, %c)")
         ATEN_CALL("r", "add.Scalar", "(%q, 40)") ATEN_CALL("i", "Int.Tensor", "(%r,)") FILLED("%i")},
    {"rest",
     SIZE_TENSOR("n", "0") ATEN_CALL("a", "rsub.Scalar", "(%n, 3)") ATEN_CALL("r", "remainder.Scalar", "(%a, 4)")
         ATEN_CALL("s", "add.Tensor", "(%r, %c)") ATEN_CALL("i", "Int.Tensor", "(%s,)") FILLED("%i")},
    // Towards zero.
    {"whole_part",
     SIZE_TENSOR("n", "0") ATEN_CALL("a", "sub.Scalar", "(%n, 40)") ATEN_CALL("q", "div.Tensor", "(%a, %c)")
         ATEN_CALL("p", "Int.Tensor", "(%q,)") CALL("i", "torch.ops.aten.add.int", "(%p, 40)") FILLED("%i")},
    {"rounded", SIZE_TENSOR("n", "0") ATEN_CALL("a", "rsub.Scalar", "(%n, 7)") ATEN_CALL("q", "mul.Scalar", "(%a, 1.5)")
                    ATEN_CALL("u", "ceil.default", "(%q,)") ATEN_CALL("d", "floor.default", "(%q,)")
                        ATEN_CALL("v", "Int.Tensor", "(%u,)") ATEN_CALL("w", "Int.Tensor", "(%d,)")
                            CALL("p", "torch.ops.aten.sub.int", "(%v, %w)")
                                CALL("i", "torch.ops.aten.add.int", "(%p, 1)") FILLED("%i")},
    {"root", SIZE_TENSOR("n", "0") ATEN_CALL("a", "pow.Tensor_Scalar", "(%n, 0.5)")
                 ATEN_CALL("i", "Int.Tensor", "(%a,)") FILLED("%i")},
    {"count", SIZE_TENSOR("m", "1") ATEN_CALL("d", "mul.Scalar", "(%m, 2)") ATEN_CALL(
                  "i", "ScalarImplicit.default", "(%d,)") ATEN_CALL("y", "arange.default", "(%i,)") "return y"},
    {"in_place", SIZE_TENSOR("n", "0") ATEN_CALL("a", "add.Scalar", "(%n, 1)") ATEN_CALL("b", "add_.Tensor", "(%a, %c)")
                     ATEN_CALL("i", "Int.Tensor", "(%b,)") ATEN_CALL("j", "Int.Tensor", "(%n,)") FILLED("%i, %j")},
    {"rounded_in_place",
     SIZE_TENSOR("n", "0") ATEN_CALL("q", "div.Tensor", "(%n, %c)") ATEN_CALL("a", "neg_.default", "(%q,)")
         ATEN_CALL("b", "floor_.default", "(%a,)") ATEN_CALL("d", "neg_.default", "(%b,)")
             ATEN_CALL("i", "Int.Tensor", "(%d,)") FILLED("%i")},
    // As a tensor, which does not change the element type of one with dimensions.
    {"scaled", SIZE_TENSOR("n", "0") ATEN_CALL("p", "pow.Tensor_Scalar", "(%n, -0.5)") ATEN_CALL(
                   "h", "to.dtype", "(%x, torch.float16)") ATEN_CALL("y", "mul.Tensor", "(%h, %p)") "return y"},
    {"divided", SIZE_TENSOR("n", "0") SIZE_TENSOR("m", "1") ATEN_CALL("a", "mul.Tensor", "(%n, %m)")
                    ATEN_CALL("i", "Int.Tensor", "(%a,)") ATEN_CALL("z", "reshape.default", "(%x, [%i, 4])")
                        ATEN_CALL("y", "div.Tensor", "(%z, %a)") "return y"},
    {"whole_tensor", SIZE_TENSOR("n", "0") ATEN_CALL("h", "to.dtype", "(%x, torch.int32)")
                         ATEN_CALL("y", "mul.Tensor", "(%h, %n)") "return y"},
    {"alone", SIZE_TENSOR("n", "0") ATEN_CALL("y", "add.Scalar", "(%n, 1)") "return y"},
    {"tensor_of_a_number", ATEN_CALL("n", "size.int", "(%x, 0)") ATEN_CALL("t", "tensor.int", "(%n,)")
                               ATEN_CALL("y", "mul.Tensor", "(%x, %t)") "return y"},
    // Lists.
    {"element",
     ATEN_CALL("s", "size.default", "(%x,)") CALL("n", "operator.getitem", "(%s, 0)")
         CALL("k", "operator.getitem", "(%s, -1)") ATEN_CALL("y", "view.default", "(%x, [%n, -1, %k])") "return y"},
    {"whole_list", ATEN_CALL("s", "size.default", "(%x,)") ATEN_CALL("y", "new_zeros.default", "(%x, %s)") "return y"},
    {"joined_lists", ATEN_CALL("s", "size.default", "(%x,)") ATEN_CALL("h", "slice.t", "(%s, None, 2, 1)")
                         ATEN_CALL("r", "mul.left_t", "([2], 2)") ATEN_CALL("l", "add.t", "(%h, %r)")
                             ATEN_CALL("y", "view.default", "(%x, %l)") "return y"},
    {"stepped_list",
     ATEN_CALL("s", "size.default", "(%x,)") ATEN_CALL("h", "slice.t", "(%s, -3, 9223372036854775807, 2)")
         ATEN_CALL("l", "list.t", "(%h,)") ATEN_CALL("y", "new_zeros.default", "(%x, %l)") "return y"},
    {"length_of_list", ATEN_CALL("s", "size.default", "(%x,)") ATEN_CALL("k", "len.t", "(%s,)")
                           ATEN_CALL("y", "mul.Tensor", "(%x, %k)") "return y"},
};

class TracedSizes : public ::testing::TestWithParam<Case> {};

TEST_P(TracedSizes, HoldAtOthers) {
  const GraphModule module = module_of(GetParam().body);
  testing::KeptArchive archive(std::string("traced_") + GetParam().name);
  save_exported(module, archive.path(),
                {.inputs = {at::rand({6, 5, 4})}, .dynamic = {{0, 0, {2, 300}}, {0, 1, {2, 30}}}});
  const auto again = load_exported(archive.path());
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 7}, {5, 30}, {9, 9}, {17, 6}, {36, 3}, {289, 2}}) {
    const Tensor x = at::rand({rows, columns, 4}) * 10;
    const Tensor wanted = module.clone_graph_module()->forward(x);
    const Tensor got = again->forward(x);
    EXPECT_TRUE(at::equal(got, wanted)) << x.sizes();
    EXPECT_EQ(got.scalar_type(), wanted.scalar_type());
    archive.gives({x}, wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(ForPython, TracedSizes, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string refusal(const char* body) {
  const testing::ScratchFolder scratch;
  const GraphModule module = module_of(body);
  return testing::error_of([&] {
    save_exported(module, scratch / "a.pt2", {.inputs = {at::rand({6, 5, 4})}, .dynamic = {{0, 0, {2, 300}}}});
  });
}

// 10 * 0.7f is 7 in 32 bits, and less than 7 in 64.
TEST(TracedSizes, ThatRoundAsFloatsDoAreRefusedByName) {
  EXPECT_THAT(refusal(SIZE_TENSOR("n", "0") ATEN_CALL("q", "mul.Scalar", "(%n, 0.7)")
                          ATEN_CALL("f", "floor.default", "(%q,)") ATEN_CALL("i", "Int.Tensor", "(%f,)") FILLED("%i")),
              ::testing::HasSubstr("%i reads a number that torch.ops.aten.mul.Scalar at %q makes of sizes"));
  EXPECT_THAT(refusal(SIZE_TENSOR("n", "0") ATEN_CALL("q", "div.Scalar", "(%n, 3)") ATEN_CALL(
                  "i", "ScalarImplicit.default", "(%q,)") ATEN_CALL("y", "mul.Scalar", "(%x, %i)") "return y"),
              ::testing::HasSubstr("torch.ops.aten.div.Scalar at %q makes of sizes"));
}

// The number that is read is not the one that was made.
TEST(TracedSizes, ThatAreWrittenWhereOthersSeeItAreRefused) {
  EXPECT_THAT(refusal(SIZE_TENSOR("n", "0") ATEN_CALL("a", "add_.Scalar", "(%n, 1)")
                          ATEN_CALL("i", "Int.Tensor", "(%n,)") ATEN_CALL("j", "Int.Tensor", "(%a,)") FILLED("%i, %j")),
              ::testing::HasSubstr("torch.ops.prim.NumToTensor.Scalar at %n makes of sizes"));
}

}  // namespace fx::tensor_numbers_test
