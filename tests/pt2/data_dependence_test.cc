// Programs whose sizes or numbers depend on data, and have no symbol for it, are refused by the names of the calls,
// before they run.
#include <ATen/ATen.h>
#include <fxgraph/export/save.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/scratch_folder.h"

namespace fx::data_dependence_test {

using ::testing::HasSubstr;

GraphModule module_of(const std::string& lines) {
  return GraphModule(parse_graph("graph():\n%x = placeholder[target=x]\n%i = placeholder[target=i]\n" + lines));
}

// What save_exported says of the program on a tensor of floats and one of indices; empty when it is written.
std::string refusal(const GraphModule& module) {
  const testing::ScratchFolder folder;
  try {
    save_exported(module, (folder / "m.pt2").string(), {.inputs = {at::rand({4, 3}), at::arange(4)}});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    return error.message();
  }
  return "";
}

struct Case {
  const char* name;
  const char* call;
};

class OfData : public ::testing::TestWithParam<Case> {};

TEST_P(OfData, IsRefusedByName) {
  const std::string said =
      refusal(module_of("%y = call_function[target=" + std::string(GetParam().call) + "\nreturn y"));
  EXPECT_THAT(said, HasSubstr("sizes or numbers depend on data: ")) << GetParam().call;
  EXPECT_THAT(said, HasSubstr(" at %y")) << GetParam().call;
}

INSTANTIATE_TEST_SUITE_P(
    All, OfData,
    ::testing::Values(Case{"classes", "torch.ops.aten.one_hot.default](args = (%i,))"},
                      Case{"split", "torch.ops.aten.tensor_split.tensor_indices_or_sections](args = (%x, %i))"},
                      Case{"equal", "torch.ops.aten.equal.default](args = (%x, %x))"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OfDataButNot, WhatTheCallSaysItself) {
  EXPECT_EQ(refusal(module_of("%y = call_function[target=torch.ops.aten.one_hot.default](args = (%i, 4))\nreturn y")),
            "");
  EXPECT_EQ(refusal(module_of("%m = call_function[target=torch.ops.aten.gt.Scalar](args = (%x, 0))\n"
                              "%y = call_function[target=torch.ops.aten.where.self](args = (%m, %x, %x))\nreturn y")),
            "");
  EXPECT_EQ(refusal(module_of("%y = call_function[target=torch.ops.aten.repeat_interleave.self_Tensor](args = "
                              "(%x, %i, 0), kwargs = {output_size: 6})\nreturn y")),
            "");
}

// The assertion beside it would not hold at the sizes at which a program is tried: that is not what is wrong.
TEST(OfDataAtOnce, BeforeTheProgramRuns) {
  const std::string said =
      refusal(module_of("%s = call_function[target=torch.ops.aten.sum.default](args = (%i,))\n"
                        "%n = call_function[target=torch.ops.aten.item.default](args = (%s,))\n"
                        "%c = call_function[target=operator.ge](args = (%n, 1000))\n"
                        "%a = call_function[target=torch._assert](args = (%c, 'too few'))\n"
                        "%y = call_function[target=torch.ops.aten.one_hot.default](args = (%i,))\n"
                        "%z = call_function[target=torch.ops.aten.equal.default](args = (%x, %x))\nreturn (y, z, n)"));
  EXPECT_THAT(said, HasSubstr("torch.ops.aten.one_hot.default at %y, torch.ops.aten.equal.default at %z"));
}

TEST(OfDataAtOnce, InGraphsThatTheProgramCalls) {
  const auto branch = std::make_shared<GraphModule>(
      parse_graph("graph():\n%v = placeholder[target=v]\n"
                  "%u = call_function[target=torch.ops.aten.nonzero.default](args = (%v,))\n"
                  "%w = call_function[target=torch.ops.aten.sum.default](args = (%u,))\nreturn (w,)"));
  const GraphModule outer({{"left", std::shared_ptr<torch::nn::Module>(branch)}},
                          parse_graph("graph():\n%x = placeholder[target=x]\n%i = placeholder[target=i]\n"
                                      "%g = get_attr[target=left]\n"
                                      "%s = call_function[target=torch.ops.aten.sum.default](args = (%x,))\n"
                                      "%p = call_function[target=torch.ops.aten.gt.Scalar](args = (%s, 0))\n"
                                      "%y = call_function[target=torch.ops.higher_order.cond](args = (%p, %g, %g, "
                                      "(%x,)))\nreturn y"));
  EXPECT_THAT(refusal(outer), HasSubstr("depend on data: torch.ops.aten.nonzero.default at %u"));
}

}  // namespace fx::data_dependence_test
