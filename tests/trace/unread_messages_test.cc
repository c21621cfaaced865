// What a program refuses follows from what its assertions compute: with other messages it refuses the same.
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::unread_messages_test {

using testing::error_of;
using ::testing::HasSubstr;
using torch::Tensor;

struct Net : torch::nn::Module {
  Net() : fc(register_module("fc", torch::nn::Linear(2, 3))) {}
  Tensor forward(Tensor x, Tensor y) { return fc(x.view({x.size(0), x.size(1) / 2, 2}).sum(1)) + y; }
  torch::nn::Linear fc;
};

TEST(UnreadMessages, ChangeNothingThatIsRefused) {
  const auto traced = symbolic_trace(Net(), {torch::rand({4, 6}), torch::rand({4, 3})});
  const std::string contract = traced->contract().str();
  EXPECT_THAT(contract, HasSubstr("x[1] must be a multiple of 2\n"));
  EXPECT_THAT(contract, HasSubstr("y[1] must be 3\n"));
  for (Node* node : traced->graph().find_nodes(Op::call_function, "torch._assert")) node->update_arg(1, "x");
  EXPECT_EQ(traced->contract().str(), contract);
  const testing::ScratchFolder folder;
  for (const char* name : {"net.pt", "net.pt2"}) {
    const std::string file = (folder.path() / name).string();
    traced->save(file);
    const auto loaded = load(file);
    const auto refusal = [&](std::vector<std::int64_t> x, std::vector<std::int64_t> y) {
      return error_of([&] { loaded->run({torch::rand(x), torch::rand(y)}); });
    };
    EXPECT_THAT(loaded->contract().str(), HasSubstr("must be a multiple of 2\n")) << name;
    EXPECT_EQ(refusal({3, 10}, {3, 3}), "no error") << name;
    EXPECT_THAT(refusal({3, 9}, {3, 3}), HasSubstr("must be a multiple of 2, but is 9")) << name;
    EXPECT_THAT(refusal({3, 8}, {3, 4}), HasSubstr("must be 3, but is 4")) << name;
  }
  const std::string text = print_graph(traced->graph());
  EXPECT_EQ(Contract(parse_graph(text)).str(), contract);
  EXPECT_THAT(SizeReport(parse_graph(text)).str(), HasSubstr("y[1] must be 3: x\n"));
}

}  // namespace fx::unread_messages_test
