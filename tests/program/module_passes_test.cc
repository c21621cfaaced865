// Passes of programs know what their modules do: by their rows, options and modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>

#include <fxgraph/fx.h>

namespace fx::module_passes_test {

using ::testing::ElementsAre;

struct Root : torch::nn::Module {
  explicit Root(const std::shared_ptr<torch::nn::Module>& module) { register_module("m", module); }
};

struct UntoldImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x * 2; }
};

struct DescribedImpl : torch::nn::Module {
  explicit DescribedImpl(bool writes) : writes(writes) {}
  torch::Tensor forward(torch::Tensor x) { return writes ? x.add_(1) : x + 1; }
  bool writes;
};

// A type of one's own that says what calling it does is known to every pass; one that does not, to none.
TEST(ModulePasses, KnowWhatRowsAndModesSay) {
  register_module_type<UntoldImpl>("mine.Untold");
  register_module_type<DescribedImpl>(
      "mine.Described",
      {.effects =
           [](const DescribedImpl& module) { return NodeEffects{.writes = module.writes, .may_alias = module.writes}; },
       .follows_mode = [](const DescribedImpl&) { return false; }});
  const auto twice_of = [](std::shared_ptr<torch::nn::Module> module) {
    return std::make_unique<GraphModule>(
        Root(module), parse_graph("graph():\n%x = placeholder[target=x]\n%a = call_module[target=m](args = (%x,))\n"
                                  "%b = call_module[target=m](args = (%x,))\n%c = "
                                  "call_function[target=aten::add.Tensor](args = (%a, %b))\n%d = "
                                  "call_module[target=m](args = (%b,))\nreturn c"));
  };
  struct Case {
    std::shared_ptr<torch::nn::Module> module;
    std::size_t dead, merged;
  };
  for (const bool training : {false, true}) {
    const Case cases[] = {{std::make_shared<DescribedImpl>(false), 1, 1},
                          {std::make_shared<DescribedImpl>(true), 0, 0},
                          {std::make_shared<UntoldImpl>(), 0, 0},
                          {torch::nn::Dropout().ptr(), training ? 0u : 1u, training ? 0u : 1u},
                          {torch::nn::ELU(torch::nn::ELUOptions().inplace(true)).ptr(), 0, 0},
                          {torch::nn::Sequential(torch::nn::ELU(torch::nn::ELUOptions().inplace(true))).ptr(), 0, 0},
                          {torch::nn::CELU().ptr(), 1, 1},
                          {torch::nn::RReLU().ptr(), training ? 0u : 1u, training ? 0u : 1u}};
    for (const Case& c : cases) {
      c.module->train(training);
      const auto dead = twice_of(c.module), merged = twice_of(c.module);
      EXPECT_EQ(eliminate_dead_code(*dead), c.dead) << c.module->name() << training;
      merged->graph().eliminate_dead_code();
      EXPECT_EQ(eliminate_common_subexpressions(*merged), c.merged) << c.module->name() << training;
    }
  }
}

// Analyses that are made of a program know its modules; those of its graph alone do not.
TEST(ModulePasses, AnalysesOfPrograms) {
  torch::nn::BatchNorm1d norm(3);
  GraphModule gm(Root(norm.ptr()),
                 parse_graph("graph():\n%x = placeholder[target=x]\n%mean = get_attr[target=m.running_mean]\n"
                             "%y = call_module[target=m](args = (%x,))\n%unused = call_module[target=m](args = "
                             "(%x,))\nreturn (y, mean)"));
  const Node &unused = *gm.graph().find("unused"), &mean = *gm.graph().find("mean");
  EXPECT_TRUE(Effects(gm).write_between(mean, mean, *gm.graph().output_node()));
  EXPECT_FALSE(Effects(gm.graph()).write_between(mean, mean, *gm.graph().output_node()));
  EXPECT_FALSE(DeadCode(gm).is_dead(unused));
  EXPECT_TRUE(DeadCode(gm.graph()).is_dead(unused));
  const Shapes shapes = propagate_shapes(gm, std::vector<TensorInfo>{TensorInfo{.sizes = {4, 3}}});
  gm.eval();
  EXPECT_EQ(Cost(gm, shapes).num_unknown(), 0u);
  EXPECT_EQ(Cost(gm.graph(), shapes).num_unknown(), 2u);
  EXPECT_EQ(Liveness(gm, shapes).storages().size(), 4u);
  EXPECT_EQ(get_node_target(gm, unused), "BatchNorm1d");
  EXPECT_THAT(count_operators(gm), ElementsAre(OperatorCount{"BatchNorm1d", Op::call_module, 2}));
  EXPECT_EQ(find(gm, "call_module<BatchNorm1d>(x)").size(), 2u);
  EXPECT_TRUE(matches(gm, "call_module<BatchNorm1d>(x)", unused));
  EXPECT_THROW(find(gm.graph(), "call_module<BatchNorm1d>(x)"), Error);
}

struct ReturnsStateImpl : torch::nn::Module {
  ReturnsStateImpl() : held(register_parameter("held", torch::ones({2, 3}))) {}
  torch::Tensor forward(const torch::Tensor&) { return held; }
  torch::Tensor held;
};

// What a module holds others see, whatever it was given: nobody writes to it or hands it out instead of something else.
TEST(ModulePasses, ModulesThatReturnTheirStateOwnNothing) {
  register_module_type<ReturnsStateImpl>("mine.ReturnsState");
  const auto nested = std::make_shared<GraphModule>(
      GraphModule::Attributes{{"held", torch::ones({2, 3})}},
      parse_graph("graph():\n%x = placeholder[target=x]\n%b = get_attr[target=held]\nreturn b"));
  struct Case {
    const char *last, *pattern, *replacement;
  };
  for (const Case& c :
       {Case{"aten::add_.Tensor", "aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)"},
        Case{"aten::relu", "aten::relu(x)", "aten::relu_(x)"}, Case{"aten::clone", "aten::clone(x)", "x"},
        Case{"aten::clone", "aten::clone(x)", "aten::contiguous(x)"}}) {
    for (const std::shared_ptr<torch::nn::Module>& module :
         {std::shared_ptr<torch::nn::Module>(nested),
          std::shared_ptr<torch::nn::Module>(std::make_shared<ReturnsStateImpl>())}) {
      const std::string more = std::string(c.last) == "aten::add_.Tensor" ? ", %x" : "";
      GraphModule gm(Root(module), parse_graph("graph():\n%x = placeholder[target=x]\n%n = "
                                               "call_function[target=aten::neg](args = (%x,))\n%m = "
                                               "call_module[target=m](args = (%n,))\n%r = call_function[target=" +
                                               std::string(c.last) + "](args = (%m" + more + "))\nreturn r"));
      EXPECT_EQ(replace_pattern(gm, c.pattern, c.replacement).applied, 0u) << c.pattern << " " << module->name();
    }
  }
}

}  // namespace fx::module_passes_test
