// Running graphs: every kind of target, conversions, lifetimes and errors.
#include <fxgraph/run/plan.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include "tests/support/error_of.h"

namespace fx::plan_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A module from lines of FX text; `attributes` are its tensors.
GraphModule module_of(const std::string& lines, const GraphModule::Attributes& attributes = {}) {
  return GraphModule(attributes, parse_graph("graph():\n" + lines));
}

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

std::string error_of(GraphModule& module, std::vector<c10::IValue> inputs) {
  return testing::one_line_error_of([&] { module.run(std::move(inputs)); });
}

struct Case {
  const char* name;
  const char* lines;
  torch::Tensor (*expected)(const torch::Tensor& x);
};

const Case kCases[] = {
    {"overload",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %x), kwargs = "
     "{alpha: 2})\nreturn y",
     [](const torch::Tensor& x) { return x + 2 * x; }},
    {"packet", "%x = placeholder[target=x]\n%y = call_function[target=aten::mul](args = (%x, 3))\nreturn y",
     [](const torch::Tensor& x) { return x * 3; }},
    {"torch_function", "%x = placeholder[target=x]\n%y = call_function[target=torch.relu](args = (%x,))\nreturn y",
     [](const torch::Tensor& x) { return x.relu(); }},
    {"torch_keyword_input",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.sum](args = (), kwargs = {input: %x, dim: "
     "1})\nreturn y",
     [](const torch::Tensor& x) { return x.sum(1); }},
    {"functional",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.nn.functional.relu](args = (%x,), kwargs = {inplace: "
     "False})\nreturn y",
     [](const torch::Tensor& x) { return x.relu(); }},
    {"functional_softmax",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.nn.functional.softmax](args = (%x,), kwargs = {dim: "
     "1, _stacklevel: 3, dtype: torch.float64})\nreturn y",
     [](const torch::Tensor& x) { return x.softmax(1, torch::kDouble); }},
    {"functional_dropout",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.nn.functional.dropout](args = (%x, 0.5, False))\n"
     "return y",
     [](const torch::Tensor& x) { return x; }},
    {"functional_layer_norm",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.nn.functional.layer_norm](args = (%x, [4]), kwargs = "
     "{eps: 0.5})\nreturn y",
     [](const torch::Tensor& x) { return torch::layer_norm(x, {4}, {}, {}, 0.5); }},
    {"functional_pool",
     "%x = placeholder[target=x]\n%u = call_method[target=unsqueeze](args = (%x, 0))\n%y = "
     "call_function[target=torch.nn.functional.max_pool1d](args = (%u, 2), kwargs = {stride: 1, return_indices: "
     "False})\nreturn y",
     [](const torch::Tensor& x) { return torch::max_pool1d(x.unsqueeze(0), 2, 1); }},
    {"by_its_last_name",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.special.expm1](args = (%x,))\nreturn y",
     [](const torch::Tensor& x) { return x.expm1(); }},
    {"python_operator",
     "%x = placeholder[target=x]\n%y = call_function[target=operator.truediv](args = (%x, 2))\n%z = "
     "call_function[target=operator.neg](args = (%y,))\nreturn z",
     [](const torch::Tensor& x) { return -(x / 2); }},
    {"reflected_number",
     "%x = placeholder[target=x]\n%y = call_function[target=operator.sub](args = (1, %x))\nreturn y",
     [](const torch::Tensor& x) { return 1 - x; }},
    {"method",
     "%x = placeholder[target=x]\n%y = call_method[target=clamp](args = (%x,), kwargs = {min: 0.0, max: 1.0})\nreturn "
     "y",
     [](const torch::Tensor& x) { return x.clamp(0.0, 1.0); }},
    {"method_varargs",
     "%x = placeholder[target=x]\n%y = call_method[target=view](args = (%x, 2, -1))\n%z = "
     "call_method[target=permute](args = (%y, 1, 0))\nreturn z",
     [](const torch::Tensor& x) {
       return x.view({2, -1}).permute({1, 0});
     }},
    {"method_in_python", "%x = placeholder[target=x]\n%y = call_method[target=double](args = (%x,))\nreturn y",
     [](const torch::Tensor& x) { return x.to(torch::kDouble); }},
    {"size_then_view",
     "%x = placeholder[target=x]\n%s = call_method[target=size](args = (%x, 0))\n%n = "
     "call_function[target=operator.mul](args = (%s, 2))\n%y = call_method[target=view](args = (%x, %n, 2))\nreturn y",
     [](const torch::Tensor& x) {
       return x.view({6, 2});
     }},
    {"shape_attribute",
     "%x = placeholder[target=x]\n%s = call_function[target=builtins.getattr](args = (%x, 'shape'))\n%n = "
     "call_function[target=operator.getitem](args = (%s, -1))\n%y = call_function[target=operator.add](args = (%x, "
     "%n))\nreturn y",
     [](const torch::Tensor& x) { return x + 4; }},
    {"index_slice",
     "%x = placeholder[target=x]\n%y = call_function[target=operator.getitem](args = (%x, (slice(None, None, 2), None, "
     "Ellipsis, -1)))\nreturn y",
     [](const torch::Tensor& x) {
       return x.index({torch::indexing::Slice(torch::indexing::None, torch::indexing::None, 2), torch::indexing::None,
                       torch::indexing::Ellipsis, -1});
     }},
    {"index_dynamic_slice",
     "%x = placeholder[target=x]\n%n = call_method[target=size](args = (%x, 0))\n%m = "
     "call_function[target=operator.sub](args = (%n, 1))\n%y = call_function[target=operator.getitem](args = (%x, "
     "slice(0, %m, None)))\nreturn y",
     [](const torch::Tensor& x) { return x.slice(0, 0, 2); }},
    {"list_of_tensors",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.relu](args = (%x,))\n%z = "
     "call_function[target=torch.ops.aten.cat.default](args = ([%x, %y, %x], 1))\nreturn z",
     [](const torch::Tensor& x) {
       return torch::cat({x, x.relu(), x}, 1);
     }},
    {"optional_tensor_list",
     "%x = placeholder[target=x]\n%i = call_function[target=torch.ops.aten.argmax.default](args = (%x, 1))\n%y = "
     "call_function[target=torch.ops.aten.index.Tensor](args = (%x, [None, %i]))\nreturn y",
     [](const torch::Tensor& x) {
       return x.index({torch::indexing::Slice(), x.argmax(1)});
     }},
    {"several_results",
     "%x = placeholder[target=x]\n%t = call_function[target=torch.ops.aten.topk.default](args = (%x, 2))\n%v = "
     "call_function[target=operator.getitem](args = (%t, 0))\n%i = call_function[target=operator.getitem](args = (%t, "
     "-1))\n%y = call_function[target=torch.ops.aten.mul.Tensor](args = (%v, %i))\nreturn y",
     [](const torch::Tensor& x) { return std::get<0>(x.topk(2)) * std::get<1>(x.topk(2)); }},
    {"list_result",
     "%x = placeholder[target=x]\n%c = call_method[target=chunk](args = (%x, 2), kwargs = {dim: 1})\n%y = "
     "call_function[target=operator.getitem](args = (%c, 1))\nreturn y",
     [](const torch::Tensor& x) { return x.chunk(2, 1)[1]; }},
    {"int_for_float",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.ops.aten.leaky_relu.default](args = (%x, 2))\n%z = "
     "call_function[target=torch.ops.aten.hardtanh.default](args = (%y, -1, 3))\nreturn z",
     [](const torch::Tensor& x) { return torch::hardtanh(torch::leaky_relu(x, 2), -1, 3); }},
    {"int_for_int_list",
     "%x = placeholder[target=x]\n%u = call_method[target=unsqueeze](args = (%x, 0))\n%y = "
     "call_function[target=torch.ops.aten.max_pool2d.default](args = (%u, 2))\nreturn y",
     [](const torch::Tensor& x) { return torch::max_pool2d(x.unsqueeze(0), 2); }},
    {"number_for_tensor",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, 2))\nreturn y",
     [](const torch::Tensor& x) { return x * 2; }},
    {"in_place",
     "%x = placeholder[target=x]\n%c = call_method[target=clone](args = (%x,))\n%y = "
     "call_function[target=operator.iadd](args = (%c, 1))\n%z = call_function[target=torch.ops.aten.add.Tensor](args = "
     "(%c, %y))\nreturn z",
     [](const torch::Tensor& x) { return 2 * (x + 1); }},
    {"setitem",
     "%x = placeholder[target=x]\n%c = call_method[target=clone](args = (%x,))\n%s = "
     "call_function[target=operator.setitem](args = (%c, 0, 7))\nreturn c",
     [](const torch::Tensor& x) {
       auto y = x.clone();
       y[0] = 7;
       return y;
     }},
    {"assertion_holds",
     "%x = placeholder[target=x]\n%d = call_method[target=dim](args = (%x,))\n%c = "
     "call_function[target=operator.eq](args = (%d, 2))\n%a = call_function[target=torch._assert](args = (%c, "
     "'rank'))\nreturn x",
     [](const torch::Tensor& x) { return x; }},
    {"script_operators",
     "%x = placeholder[target=x]\n%n = call_function[target=aten::size.int](args = (%x, 1))\n%m = "
     "call_function[target=aten::floordiv.int](args = (%n, 3))\n%y = call_function[target=aten::add.Scalar](args = "
     "(%x, %m))\nreturn y",
     [](const torch::Tensor& x) { return x + 1; }},
    {"dtype_argument",
     "%x = placeholder[target=x]\n%y = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%x, [0]), kwargs = "
     "{dtype: torch.float64})\nreturn y",
     [](const torch::Tensor& x) { return x.sum({0}, false, torch::kDouble); }},
};

class PlanCases : public ::testing::TestWithParam<Case> {};

// One resolver of calls: what a plan runs, the Interpreter runs.
TEST_P(PlanCases, RunsNodeByNodeTheSame) {
  GraphModule module = module_of(GetParam().lines);
  const torch::Tensor got = Interpreter(module).run({sample()}).toTensor();
  const torch::Tensor expected = GetParam().expected(sample());
  EXPECT_TRUE(got.equal(expected)) << got << "\n" << expected;
  EXPECT_EQ(got.scalar_type(), expected.scalar_type());
}

TEST_P(PlanCases, ComputesWhatTheOperatorsCompute) {
  GraphModule module = module_of(GetParam().lines);
  for (int run = 0; run < 2; ++run) {
    const torch::Tensor got = module.forward(sample());
    const torch::Tensor expected = GetParam().expected(sample());
    EXPECT_TRUE(got.equal(expected)) << got << "\n" << expected;
    EXPECT_EQ(got.scalar_type(), expected.scalar_type());
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanCases, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(Plan, ReturnsWhateverTheGraphReturns) {
  GraphModule module = module_of(
      "%x = placeholder[target=x]\n%y = call_function[target=torch.relu](args = (%x,))\nreturn (y, [x, y], {'a': x}, "
      "3, None)");
  const auto result = module.run({sample()}).toTuple();
  ASSERT_EQ(result->elements().size(), 5u);
  EXPECT_TRUE(result->elements()[1].isTensorList());
  EXPECT_TRUE(result->elements()[2].toGenericDict().at("a").toTensor().equal(sample()));
  EXPECT_EQ(result->elements()[3].toInt(), 3);
  EXPECT_THAT([&] { module.forward(sample()); }, ::testing::ThrowsMessage<Error>(HasSubstr("call run()")));
}

TEST(Plan, InputsHaveDefaultsAndAreCounted) {
  GraphModule module = module_of(
      "%x = placeholder[target=x]\n%k = placeholder[target=k](default=2)\n%y = call_function[target=aten::mul](args = "
      "(%x, %k))\nreturn y");
  EXPECT_TRUE(module.forward(sample()).equal(sample() * 2));
  EXPECT_TRUE(module.forward(sample(), 5).equal(sample() * 5));
  EXPECT_THAT(error_of(module, {}), HasSubstr("input 'x' is missing"));
  EXPECT_THAT(error_of(module, {sample(), 1, 1}), HasSubstr("takes 2 inputs, got 3"));
}

TEST(Plan, OneCallSiteTakesValuesOfChangingKinds) {
  GraphModule module = module_of(
      "%a = placeholder[target=a]\n%b = placeholder[target=b]\n%y = call_function[target=operator.add](args = (%a, "
      "%b))\nreturn y");
  EXPECT_EQ(module.run({1, 2}).toInt(), 3);
  EXPECT_EQ(module.run({1.5, 2}).toDouble(), 3.5);
  EXPECT_TRUE(module.run({sample(), 1}).toTensor().equal(sample() + 1));
  EXPECT_EQ(module.run({1, 2}).toInt(), 3);
  EXPECT_THAT(error_of(module, {1, "x"}),
              AllOf(HasSubstr("while running %y = operator.add(%a, %b)"), HasSubstr("(int, str)")));
}

TEST(Plan, ValuesAreFreedAtTheirLastUse) {
  // The chain needs one slot, whatever its length.
  std::string lines = "%x = placeholder[target=x]\n%v0 = call_function[target=aten::relu](args = (%x,))\n";
  for (int i = 1; i < 100; ++i) {
    lines +=
        "%v" + std::to_string(i) + " = call_function[target=aten::neg](args = (%v" + std::to_string(i - 1) + ",))\n";
  }
  GraphModule module = module_of(lines + "return v99");
  EXPECT_EQ(module.plan()->num_slots(), 1u);
  EXPECT_EQ(module.plan()->num_steps(), 100u);

  // While the third node runs, the first one's value must be gone: only its two users held it.
  GraphModule watched = module_of(
      "%x = placeholder[target=x]\n%a = call_function[target=aten::relu](args = (%x,))\n"
      "%b = call_function[target=aten::neg](args = (%a,))\n%c = call_function[target=aten::abs](args = (%b,))\nreturn "
      "c");
  std::vector<c10::weak_intrusive_ptr<at::TensorImpl>> seen;
  const auto plan = Plan::compile(watched, {.observe = true});
  std::vector<bool> first_alive;
  plan->run(watched, {sample()}, [&](const Node& node, const c10::IValue& value) {
    if (node.is(Op::placeholder)) return;
    seen.emplace_back(value.toTensor().getIntrusivePtr());
    first_alive.push_back(!seen[0].expired());
  });
  EXPECT_EQ(first_alive, (std::vector<bool>{true, false, false}));
}

TEST(Plan, UnusedResultsAndRepeatedOperandsAreNoTrouble) {
  GraphModule module = module_of(
      "%x = placeholder[target=x]\n%unused = placeholder[target=unused]\n%d = call_function[target=aten::relu](args = "
      "(%x,))\n"
      "%y = call_function[target=aten::cat](args = ([%x, %x], 0))\n%z = call_function[target=aten::add.Tensor](args = "
      "(%y, %y))\nreturn (z, z)");
  const auto result = module.run({sample(), 1}).toTuple();
  EXPECT_TRUE(result->elements()[0].toTensor().equal(2 * torch::cat({sample(), sample()})));
  EXPECT_TRUE(result->elements()[1].toTensor().equal(result->elements()[0].toTensor()));
}

TEST(Plan, ErrorsNameTheNode) {
  GraphModule module = module_of(
      "%x = placeholder[target=x]\n%w = get_attr[target=w]\n%bad = call_function[target=aten::matmul](args = (%x, "
      "%w))\nreturn bad",
      {{"w", torch::ones({7, 2})}});
  EXPECT_THAT(error_of(module, {sample()}),
              AllOf(HasSubstr("while running %bad = aten::matmul(%x, %w): "), HasSubstr("3x4 and 7x2")));
  try {
    module.forward(sample());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::execution);
    EXPECT_EQ(error.node(), "bad");
  }
  GraphModule failing = module_of(
      "%x = placeholder[target=x]\n%c = call_function[target=aten::gt.Scalar](args = (%x, 100))\n%m = "
      "call_method[target=any](args = (%c,))\n%a = call_function[target=torch._assert](args = (%m, 'too "
      "small'))\nreturn x");
  EXPECT_THAT(error_of(failing, {sample()}), ::testing::StrEq("%a: too small"));
}

TEST(Plan, CompilingReportsWhatCannotRun) {
  const auto error = [](const std::string& lines) {
    GraphModule module(parse_graph("graph():\n%x = placeholder[target=x]\n" + lines + "\nreturn y"));
    try {
      module.recompile();
      return std::string("no error");
    } catch (const Error& error) {
      EXPECT_EQ(error.node(), "y");
      return std::string(error.what());
    }
  };
  EXPECT_THAT(error("%y = call_function[target=aten::no_such_op](args = (%x,))"),
              HasSubstr("there is no operator 'aten::no_such_op'"));
  EXPECT_THAT(error("%y = call_function[target=my.function](args = (%x,))"), HasSubstr("my.function"));
  EXPECT_THAT(error("%y = call_method[target=no_such](args = (%x,))"), HasSubstr("no method 'no_such'"));
  EXPECT_THAT(error("%y = call_module[target=conv](args = (%x,))"), HasSubstr("no module 'conv'"));
  EXPECT_THAT(error("%y = get_attr[target=a.b]"), HasSubstr("no parameter or buffer 'a.b'"));
  EXPECT_THAT(error("%y = call_function[target=aten::relu](args = (%x, 1))"),
              HasSubstr("takes 1 positional argument, got 2"));
  EXPECT_THAT(error("%y = call_function[target=aten::add.Tensor](args = (%x, %x), kwargs = {beta: 1})"),
              HasSubstr("no argument 'beta'"));
  EXPECT_THAT(error("%y = call_function[target=aten::add.Tensor](args = (%x, %x), kwargs = {other: 1})"),
              HasSubstr("'other' is given twice"));
  EXPECT_THAT(error("%y = call_function[target=aten::add.Tensor](args = (%x,))"),
              HasSubstr("needs the argument 'other'"));
}

TEST(Plan, FollowsEdits) {
  GraphModule module =
      module_of("%x = placeholder[target=x]\n%y = call_function[target=aten::relu](args = (%x,))\nreturn y");
  EXPECT_TRUE(module.forward(sample()).equal(sample().relu()));
  const auto before = module.plan();
  EXPECT_EQ(module.plan(), before);
  module.graph().find("y")->set_target("aten::neg");
  EXPECT_TRUE(module.forward(sample()).equal(-sample()));
  EXPECT_NE(module.plan(), before);
}

TEST(Plan, AnotherGraphOfTheSameRevisionIsNoticed) {
  const auto graph = [](const char* target) {
    Graph made;
    Node& x = made.placeholder("x");
    made.output(made.call_function(target, {x}));
    return made;
  };
  GraphModule module(graph("aten::relu"));
  EXPECT_TRUE(module.forward(sample()).equal(sample().relu()));
  module.graph() = graph("aten::neg");
  EXPECT_TRUE(module.forward(sample()).equal(-sample()));
}

TEST(Plan, SeveralThreadsRunOneModule) {
  GraphModule module = module_of(
      "%x = placeholder[target=x]\n%y = call_function[target=operator.add](args = (%x, 1))\n%z = "
      "call_function[target=operator.mul](args = (%y, %y))\nreturn z");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const torch::Tensor x = torch::full({8}, t);
      for (int i = 0; i < 200; ++i) wrong += !module.forward(x).equal((x + 1) * (x + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Plan, LongChainsNeedNoRecursion) {
  Graph graph;
  Node* at = &graph.placeholder("x");
  for (int i = 0; i < 100000; ++i) at = &graph.call_function("aten::neg", {at});
  graph.output(at);
  GraphModule module(std::move(graph));
  EXPECT_TRUE(module.forward(sample()).equal(sample()));
  EXPECT_EQ(module.plan()->num_slots(), 1u);
}

TEST(Plan, DirectCallsTakeNumbersForTensorsAndFreeTheirInputs) {
  GraphModule gm(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = placeholder[target=y]
    %add = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y))
    %twice = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %add))
    %clipped = call_function[target=torch.ops.aten.where.self](args = (%twice, %twice, %add))
    return clipped)"));
  const torch::Tensor x = torch::tensor({1.0, 2.0});
  EXPECT_THAT([&] { gm.forward(x, x); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("while running %clipped")));
  gm.graph().output_node()->set_args({*gm.graph().find("twice")});
  gm.graph().erase_node(*gm.graph().find("clipped"));
  EXPECT_TRUE(torch::equal(gm.forward(x, torch::ones({2})), torch::tensor({4.0, 9.0})));
  EXPECT_TRUE(torch::equal(gm.forward(x, 1), torch::tensor({4.0, 9.0})));  // converted, so through the stack
  torch::Tensor gone = torch::ones({2});
  const c10::weak_intrusive_ptr<c10::TensorImpl> watch(gone.getIntrusivePtr());
  std::vector<c10::IValue> inputs{std::move(gone), x};
  gm.run(std::move(inputs));
  EXPECT_EQ(watch.use_count(), 0u);
}

}  // namespace fx::plan_test
