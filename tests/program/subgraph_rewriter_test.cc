// torch.fx's test/fx/test_subgraph_rewriter.py: its cases about submodules and tensors, each by its name there. The
// other cases are in tests/rewriter/subgraph_rewriter_test.cc.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/short_graph.h"

namespace fx::subgraph_rewriter_test {

using testing::calls_of;
using testing::graph_of;

GraphModule::Attributes modules(std::initializer_list<std::pair<const char*, torch::nn::AnyModule>> given) {
  GraphModule::Attributes all;
  for (const auto& [path, module] : given) all.emplace_back(path, module.ptr());
  return all;
}

// Upstream keeps the model's own `submod` and drops the replacement's without a word, whatever the two compute. Here
// the replacement's gets a path of its own, and those that nothing calls any more go.
TEST(SubgraphRewriter, test_subgraph_rewriter_replaces_referenced_submodules) {
  using torch::nn::AnyModule;
  GraphModule model(modules({{"sigmoid", AnyModule(torch::nn::Sigmoid())}, {"submod", AnyModule(torch::nn::ReLU())}}),
                    graph_of(R"(
    add = aten::add.Tensor(%x, 1)
    s = call_module[target=sigmoid](%add)
    r = call_module[target=submod](%s)
    return r)"));
  const Graph pattern = graph_of("s = call_module[target=sigmoid](%x)\nr = call_module[target=submod](%s)\nreturn r");
  const GraphModule replacement(
      modules({{"tanh", AnyModule(torch::nn::Tanh())}, {"submod", AnyModule(torch::nn::ReLU())}}),
      graph_of("t = call_module[target=tanh](%x)\nr = call_module[target=submod](%t)\nreturn r"));
  EXPECT_EQ(replace_pattern(model, pattern, replacement).applied, 1u);
  model.graph().lint();
  EXPECT_EQ(calls_of(model.graph()), "add = aten::add.Tensor(x, 1)\nt = tanh(add)\nr_1 = submod_1(t)\nreturn r_1\n");
  const torch::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(model.forward(x), torch::relu(torch::tanh(x + 1))));
  EXPECT_TRUE(model.find_submodule("tanh"));
  EXPECT_FALSE(model.find_submodule("sigmoid"));
  EXPECT_FALSE(model.find_submodule("submod"));
  EXPECT_EQ(model.module_type("submod_1"), "ReLU");
}

struct AddSub : torch::nn::Module {
  torch::Tensor a{register_buffer("a", torch::tensor({1}))};
  torch::Tensor b{register_buffer("b", torch::tensor({2}))};
  torch::Tensor forward(torch::Tensor x) { return x + a - b; }
};

struct AttributePattern : torch::nn::Module {
  torch::Tensor a{register_buffer("a", torch::tensor({1}))};
  torch::Tensor forward(torch::Tensor x) { return x + a; }
};

struct AttributeReplacement : torch::nn::Module {
  torch::Tensor c{register_buffer("c", torch::tensor({3}))};
  torch::Tensor forward(torch::Tensor x) { return x - c; }
};

TEST(SubgraphRewriter, test_replacement_with_attrs) {
  const auto gm = symbolic_trace(std::make_shared<AddSub>());
  const auto pattern = symbolic_trace(std::make_shared<AttributePattern>());
  const auto replacement = symbolic_trace(std::make_shared<AttributeReplacement>());
  EXPECT_EQ(replace_pattern(*gm, pattern->graph(), *replacement).applied, 1u) << print_graph(gm->graph());
  gm->graph().lint();
  EXPECT_EQ(calls_of(gm->graph()),
            "c = c()\nsub_1 = aten::sub.Tensor(x, c)\nb = b()\nsub = aten::sub.Tensor(sub_1, b)\nreturn sub\n");
  EXPECT_TRUE(torch::equal(gm->forward(torch::tensor({10})), torch::tensor({5})));
}

}  // namespace fx::subgraph_rewriter_test
