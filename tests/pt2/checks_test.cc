// Sizes are checked at the input; programs that were loaded train.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "tests/pt2/damaged.h"

namespace fx::checks_test {

using ::testing::HasSubstr;

std::shared_ptr<GraphModule> loaded(const std::string& name) {
  return load_exported("tests/corpus/pt2/" + name + ".pt2");
}

std::string refusal(GraphModule& module, std::vector<c10::IValue> inputs) {
  try {
    module.run(std::move(inputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ExportedSizes, AreCheckedAtTheInput) {
  const auto gm = loaded("mlp");
  for (const std::int64_t batch : {1, 2, 64}) EXPECT_EQ(gm->forward(at::rand({batch, 8})).size(0), batch);
  EXPECT_THAT(refusal(*gm, {at::rand({65, 8})}), HasSubstr("dimension 0 must be at most 64"));
  EXPECT_THAT(refusal(*gm, {at::rand({0, 8})}), HasSubstr("dimension 0 must be at least 1"));
  EXPECT_THAT(refusal(*gm, {at::rand({2, 9})}), HasSubstr("dimension 1 must be 8"));
  EXPECT_THAT(refusal(*gm, {at::rand({2, 2, 8})}), HasSubstr("must have 2 dimensions"));
}

// Export writes "2 or more" for every size that is neither none nor one in its example.
TEST(ExportedSizes, OfTwoOrMoreMayBeOne) {
  for (const std::int64_t least : {2, 3}) {
    testing::Json program = testing::program_of("mlp");
    for (auto& [symbol, range] : program["range_constraints"].items()) range["min_val"] = least;
    const testing::ScratchFolder folder;
    const std::string path = folder / "mlp.pt2";
    std::ofstream(path, std::ios::binary) << testing::rewritten("mlp", {{"models/model.json", program.dump()}});
    const auto gm = load_exported(path), of_one = loaded("mlp");
    EXPECT_THAT(refusal(*gm, {at::rand({65, 8})}), HasSubstr("at most 64"));
    const at::Tensor x = at::rand({1, 8});
    if (least == 2) {
      EXPECT_TRUE(at::equal(gm->forward(x), of_one->forward(x)));
    } else {
      EXPECT_THAT(refusal(*gm, {x}), HasSubstr("dimension 0 must be at least 3"));
    }
  }
}

TEST(ExportedProgram, Trains) {
  const auto gm = loaded("mlp");
  torch::optim::SGD sgd(gm->parameters(), 0.05);
  const at::Tensor x = at::rand({16, 8}), wanted = at::rand({16, 4});
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    sgd.zero_grad();
    const at::Tensor loss = at::mse_loss(gm->forward(x), wanted);
    loss.backward();
    sgd.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, 0.7 * first);
}

TEST(ExportedProgram, WritesItsBuffers) {
  for (const char* name : {"buffer_mutation", "buffer_mutation.core"}) {
    const auto gm = loaded(name);
    const at::Tensor before = gm->attribute("n").clone(), x = at::rand({3, 4});
    gm->forward(x);
    gm->forward(x);
    EXPECT_TRUE(at::allclose(gm->attribute("n"), before + 2 * x.sum(0))) << name;
  }
}

TEST(ExportedProgram, TiedWeightsAreOneTensor) {
  const auto gm = loaded("tied");
  EXPECT_TRUE(gm->attribute("e.weight").is_same(gm->attribute("o.weight")));
}

TEST(ExportedProgram, CoreSpellingsAreLifted) {
  const std::string text = print_graph(loaded("mlp.core")->graph());
  EXPECT_THAT(text, HasSubstr("torch.ops.aten.linear.default"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("aten.addmm")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("aten.permute")));
}

TEST(ExportedProgram, CopiesAreIndependent) {
  for (const char* name : {"cond", "mlp", "pytree"}) {
    const auto gm = loaded(name);
    const auto copy = gm->clone_graph_module();
    EXPECT_EQ(print_graph(copy->graph()), print_graph(gm->graph())) << name;
  }
  EXPECT_TRUE(at::equal(loaded("cond")->clone_graph_module()->forward(at::ones({3})), at::ones({3}).sin()));
}

}  // namespace fx::checks_test
