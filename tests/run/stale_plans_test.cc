// Plans notice what was done to a module behind their back: each row changes a module that has run, and its next result
// must be that of a module that has never run.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/text/parse.h>

namespace fx::stale_plans_test {

/// Owns a nested GraphModule, a Sequential, C++ modules with options and a plain module with a buffer.
struct Parts : torch::nn::Module {
  Parts() {
    torch::manual_seed(0);
    inner_tensor = torch::randn({4});
    inner = register_module(
        "inner",
        std::make_shared<GraphModule>(GraphModule::Attributes{{"w", inner_tensor}},
                                      parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n%y = "
                                                  "call_function[target=torch.ops.aten.mul.Tensor](args = (%x, "
                                                  "%w))\nreturn y\n")));
    chain = register_module("chain", torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::ReLU()));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
    leaky = register_module("leaky", torch::nn::Hardtanh());
    dropout = register_module("dropout", torch::nn::Dropout(0.0));
    holder = register_module("holder", std::make_shared<Holder>());
    holder->register_buffer("b", torch::randn({4}));
  }
  torch::Tensor inner_tensor;
  std::shared_ptr<GraphModule> inner;
  torch::nn::Sequential chain{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Hardtanh leaky{nullptr};
  torch::nn::Dropout dropout{nullptr};
  std::shared_ptr<torch::nn::Module> holder;
};

constexpr const char* kProgram = R"(graph():
%x = placeholder[target=x]
%inner = call_module[target=inner](args = (%x,))
%chain = call_module[target=chain](args = (%inner,))
%norm = call_module[target=norm](args = (%chain,))
%leaky = call_module[target=leaky](args = (%norm,))
%dropout = call_module[target=dropout](args = (%leaky,))
%b = get_attr[target=holder.b]
%sum = call_function[target=torch.ops.aten.add.Tensor](args = (%dropout, %b))
return sum
)";

struct Change {
  const char* name;
  std::function<void(GraphModule& gm, Parts& parts)> make;
};

const Change kChanges[] = {
    {"nested_set_attribute", [](GraphModule&, Parts& p) { p.inner->set_attribute("w", torch::ones({4}) * 3); }},
    {"nested_set_graph",
     [](GraphModule&, Parts& p) {
       p.inner->set_graph(
           parse_graph("graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n%y = "
                       "call_function[target=torch.ops.aten.sub.Tensor](args = (%x, %w))\nreturn y\n"));
     }},
    {"nested_graph_assigned",
     [](GraphModule&, Parts& p) {
       p.inner->graph() = parse_graph(
           "graph():\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n%y = "
           "call_function[target=torch.ops.aten.add.Tensor](args = (%x, %w))\nreturn y\n");
     }},
    {"nested_edit",
     [](GraphModule&, Parts& p) {
       for (Node& node : p.inner->graph().nodes()) {
         if (node.is(Op::call_function)) node.set_target("aten::add.Tensor");
       }
     }},
    {"submodule_replaced",
     [](GraphModule& gm, Parts&) { gm.replace_submodule("leaky", std::make_shared<torch::nn::ReLUImpl>()); }},
    {"module_replaced_by_torch",
     [](GraphModule& gm, Parts&) { gm.torch::nn::Module::replace_module("leaky", torch::nn::ReLU().ptr()); }},
    {"layer_of_a_sequential_replaced",
     [](GraphModule&, Parts& p) { p.chain->replace_module("1", torch::nn::Sigmoid().ptr()); }},
    {"sequential_grows", [](GraphModule&, Parts& p) { p.chain->push_back(torch::nn::Sigmoid()); }},
    {"options_set", [](GraphModule&, Parts& p) { p.norm->options.eps(0.5); }},
    {"options_of_another_type_set", [](GraphModule&, Parts& p) { p.leaky->options.max_val(0.25).min_val(-0.25); }},
    {"mode_of_one_module",
     [](GraphModule&, Parts& p) {
       p.dropout->options.p(1.0);
       p.dropout->train();
     }},
    {"buffer_registered_anew", [](GraphModule& gm, Parts&) { gm.set_buffer("holder.b", torch::full({4}, 2.0)); }},
    {"tensor_written", [](GraphModule&, Parts& p) { p.holder->named_buffers()["b"].fill_(7); }},
    {"top_graph_assigned",
     [](GraphModule& gm, Parts&) {
       gm.graph() = parse_graph(
           "graph():\n%x = placeholder[target=x]\n%norm = call_module[target=norm](args = "
           "(%x,))\nreturn norm\n");
     }},
};

class StalePlans : public ::testing::TestWithParam<Change> {};

TEST_P(StalePlans, AreMadeAgain) {
  const torch::NoGradGuard no_grad;
  Parts parts;
  parts.eval();
  GraphModule gm(parts, parse_graph(kProgram));
  gm.eval();
  const torch::Tensor x = torch::randn({3, 4});
  const torch::Tensor before = gm.forward(x);
  EXPECT_TRUE(gm.plan()->is_current(gm));
  EXPECT_EQ(gm.plan(), gm.plan()) << "nothing changed, nothing is made again";

  GetParam().make(gm, parts);
  const torch::Tensor expected = Plan::compile(gm)->run(gm, {x}).toTensor();
  EXPECT_TRUE(gm.forward(x).equal(expected));
  EXPECT_FALSE(expected.equal(before)) << "the change must show, or the row proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Changes, StalePlans, ::testing::ValuesIn(kChanges),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(StalePlans, AModuleThatIsGoneIsAnError) {
  Parts parts;
  GraphModule gm(parts, parse_graph(kProgram));
  gm.eval();
  gm.forward(torch::randn({3, 4}));
  gm.delete_submodule("norm");
  EXPECT_THROW(gm.forward(torch::randn({3, 4})), Error);
}

}  // namespace fx::stale_plans_test
