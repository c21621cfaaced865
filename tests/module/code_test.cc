// A module as source: what it holds comes along, and what it calls is there.
#include <fxgraph/module/code.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/text/parse.h>
#include "tests/support/error_of.h"
#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::code_test {

TEST(Code, CompiledCodeCallsWhatThisLibTorchHas) {
  const GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::squeeze.dims](args = (%x, "
                  "[0]))\nreturn y"));
  if (!missing_operator_body("aten::squeeze.dims")) GTEST_SKIP() << "LibTorch has it";
  EXPECT_THAT(testing::one_line_error_of([&] { code(gm, Language::cpp); }),
              ::testing::HasSubstr("has no aten::squeeze.dims, so compiled code could not call it"));
  EXPECT_NE(code(gm, Language::python).find("squeeze"), std::string::npos);
}

TEST(Code, AFolderHoldsTensorsThatNothingReads) {
  torch::nn::Module root;
  root.register_parameter("w", torch::ones({2}));
  GraphModule gm(root, parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\nreturn (x, w)"));
  gm.register_parameter("spare", torch::ones({3}), /*requires_grad=*/false);
  gm.register_buffer("steps", torch::zeros({}));
  const testing::ScratchFolder folder;
  to_folder(gm, folder / "net", "Net");
  const std::string source = testing::file_text(folder / "net/module.py");
  EXPECT_THAT(source, ::testing::HasSubstr("self._add_parameter('spare', weights['spare'], requires_grad=False)"));
  EXPECT_THAT(source, ::testing::HasSubstr("self._add_buffer('steps', weights['steps'])"));
}

}  // namespace fx::code_test
