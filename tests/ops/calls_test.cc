// What nodes call, in whatever words, and the table of it that follows edits.
#include <fxgraph/ops/call_on_kinds.h>

#include <gtest/gtest.h>

#include <fxgraph/ops/element.h>
#include "tests/support/night.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace fx::calls_test {

std::string text_of(const Call& call) {
  if (!call) return "nothing";
  std::string text = call.schema().target.str() + "(";
  for (const Argument& arg : call.args()) text += to_string(arg) + ", ";
  for (const auto& [name, value] : call.kwargs()) text += name.str() + "=" + to_string(value) + ", ";
  return text + ")";
}

class CallOf : public ::testing::Test {
 protected:
  std::string of(Op op, const char* target, std::vector<Argument> args, std::vector<NamedArgument> kwargs = {}) {
    return text_of(call_of(graph.create_node(op, target, args, kwargs)));
  }
  std::string function(const char* target, std::vector<Argument> args, std::vector<NamedArgument> kwargs = {}) {
    return of(Op::call_function, target, std::move(args), std::move(kwargs));
  }

  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& w = graph.placeholder("w");
};

TEST_F(CallOf, ArgumentsAreInTheOperatorsOrder) {
  EXPECT_EQ(function("torch.nn.functional.embedding", {x, w}), "aten::embedding(%w, %x, )");
  EXPECT_EQ(function("operator.sub", {2, x}), "aten::rsub.Scalar(%x, 2, )");
  EXPECT_EQ(function("torch.nn.functional.relu", {x}, {{"inplace", true}}), "aten::relu_(%x, )");
  EXPECT_EQ(function("torch.nn.functional.max_pool2d", {x, 2}, {{"stride", Argument()}}),
            "aten::max_pool2d(%x, [2, 2], )");
  EXPECT_EQ(function("torch.nn.functional.cross_entropy", {x, y}, {{"reduction", "sum"}}),
            "aten::cross_entropy_loss(%x, %y, None, 2, )");
  EXPECT_EQ(function("torch.nn.functional.interpolate", {x}, {{"size", 8}, {"mode", "bilinear"}}),
            "aten::upsample_bilinear2d.vec(%x, [8, 8], False, None, )");
  EXPECT_EQ(function("torch.nn.functional.grid_sample", {x, y}, {{"padding_mode", "border"}}),
            "aten::grid_sampler(%x, %y, 0, 1, False, )");
}

TEST_F(CallOf, FunctionsOfPythonWithOrdersOfTheirOwn) {
  EXPECT_EQ(function("torch.functional.norm", {x}), "aten::frobenius_norm.dim(%x, [], )");
  EXPECT_EQ(function("torch.functional.norm", {x}, {{"p", 2}, {"dim", 1}}), "aten::norm.ScalarOpt_dim(%x, 2, [1], )");
  EXPECT_EQ(function("torch.norm", {x, "nuc"}, {{"keepdim", true}}), "aten::nuclear_norm(%x, True, )");
  EXPECT_EQ(of(Op::call_method, "norm", {x, 1}, {{"dtype", DType::float64}}),
            "aten::norm.ScalarOpt_dim_dtype(%x, 1, [], False, dtype=torch.float64, )");
  EXPECT_EQ(function("torch.functional.tensordot", {x, y}), "aten::tensordot(%x, %y, [-2, -1], [0, 1], )");
  EXPECT_EQ(function("torch.tensordot", {x, y, Argument::tuple({Argument::list({1}), Argument::list({0})})}),
            "aten::tensordot(%x, %y, [1], [0], )");
  EXPECT_EQ(function("torch.functional.cdist", {x, y}, {{"compute_mode", "use_mm_for_euclid_dist"}}),
            "aten::cdist(%x, %y, 2.0, 1, )");
  EXPECT_EQ(function("torch.functional.atleast_2d", {x}), "aten::atleast_2d(%x, )");
  EXPECT_EQ(function("torch.functional.atleast_2d", {x, y}), "aten::atleast_2d.Sequence([%x, %y], )");
  EXPECT_EQ(function("torch.functional.stft", {x, 16}, {{"center", false}}),
            "aten::stft.center(%x, 16, None, None, None, False, )");
  EXPECT_EQ(function("torch.istft", {x, 16}), "aten::istft(%x, 16, )");
  EXPECT_EQ(of(Op::call_method, "half", {x}, {{"memory_format", MemoryFormat{"channels_last"}}}),
            "aten::to.dtype(%x, torch.float16, False, False, torch.channels_last, )");
  EXPECT_EQ(of(Op::call_method, "half", {x}), "aten::to.dtype(%x, torch.float16, )");
}

TEST_F(CallOf, NumbersMayComeFirst) {
  EXPECT_EQ(function("torch.add", {x, 2, y}), "aten::add.Tensor(%x, %y, alpha=2, )");
  EXPECT_EQ(function("torch.addcmul", {x, 0.5, y, w}), "aten::addcmul(%x, %y, %w, value=0.5, )");
  EXPECT_EQ(of(Op::call_method, "addmm", {x, 2, 3, y, w}), "aten::addmm(%x, %y, %w, beta=2, alpha=3, )");
  EXPECT_EQ(function("torch.addmm", {x, y, w}), "aten::addmm(%x, %y, %w, )");
}

// TorchScript has arithmetic of plain numbers, strings and lists under the operators' names; Python's operators reach
// it.
TEST_F(CallOf, FunctionsOfTorchTakeTensors) {
  EXPECT_EQ(function("torch.sub", {2, x}), "nothing");  // a number, or torch.rsub's tensor: x decides
  EXPECT_EQ(function("torch.sub", {x, 2}), "aten::sub.Scalar(%x, 2, )");
  EXPECT_EQ(function("torch.div", {2, x}), "nothing");
  EXPECT_EQ(function("torch.add", {2, 3}), "nothing");
  EXPECT_EQ(function("torch.exp", {2}), "nothing");
  EXPECT_EQ(of(Op::call_method, "mul", {2, x}), "nothing");
  EXPECT_EQ(function("operator.add", {2, 3}), "aten::add.int(2, 3, )");
  EXPECT_EQ(function("aten::sub", {2, 3}), "aten::sub.int(2, 3, )");
  EXPECT_EQ(function("torch.result_type", {2, 3}), "aten::result_type.Scalar_Scalar(2, 3, )");
  EXPECT_EQ(of(Op::call_method, "index", {Argument::list({2, 3}), 3}), "aten::index.list_int([2, 3], 3, )");
}

TEST_F(CallOf, ABoolIsAnIntToPythonsOperators) {
  Node& n = graph.call_method("size", {x, 0});
  Node& c = graph.call_function("operator.eq", {n, 2});
  EXPECT_EQ(function("operator.eq", {c, 1}), "aten::eq.int(%eq, 1, )");
  EXPECT_EQ(function("operator.add", {c, c}), "aten::add.int(%eq, %eq, )");
  EXPECT_EQ(function("operator.floordiv", {n, c}), "aten::floordiv.int(%size, %eq, )");
  EXPECT_EQ(function("operator.mul", {c, 2.5}), "aten::mul.int_float(%eq, 2.5, )");
  EXPECT_EQ(function("operator.floordiv", {2.5, c}), "nothing") << "LibTorch rounds another number";
  internal::CallOnKinds inverted(graph.call_function("operator.invert", {c}), [](const Node&) { return "bool"; });
  EXPECT_FALSE(inverted.resolve());
  EXPECT_FALSE(inverted.resolve_forced()) << "of tensors it is another operation";
}

TEST_F(CallOf, NumbersAreKnownBehindMuchArithmetic) {
  Node* n = &graph.call_method("size", {x, 0});
  for (int i = 0; i < 400; ++i) n = &graph.call_function("operator.add", {*n, 1});
  EXPECT_TRUE(function("torch.mul", {x, *n}).starts_with("aten::mul.Scalar(%x"));
  for (int i = 0; i < 400; ++i) n = &graph.call_function("operator.mul", {*n, *n});
  EXPECT_TRUE(function("operator.sub", {*n, x}).starts_with("aten::rsub.Scalar(%x"));
  Node& pair = graph.call_function("operator.getitem", {graph.call_function("builtins.getattr", {x, "shape"}), 1});
  EXPECT_TRUE(function("torch.mul", {x, pair}).starts_with("aten::mul.Scalar(%x"));
}

TEST_F(CallOf, ListsAndNoModeAreOperatorsOfTheirOwn) {
  EXPECT_EQ(function("torch.functional.split", {x, 2, 1}), "aten::split.Tensor(%x, 2, 1, )");
  EXPECT_EQ(of(Op::call_method, "split", {x, Argument::list({1, 2})}), "aten::split_with_sizes(%x, [1, 2], )");
  EXPECT_EQ(function("torch.div", {x, y}, {{"rounding_mode", Argument()}}), "aten::div.Tensor(%x, %y, )");
  EXPECT_EQ(of(Op::call_method, "div", {x, y}, {{"rounding_mode", "floor"}}),
            "aten::div.Tensor_mode(%x, %y, rounding_mode='floor', )");
  EXPECT_EQ(function("operator.invert", {2}), "nothing") << "numbers are no tensors";
  EXPECT_EQ(function("torch.nn.functional.interpolate", {x}, {{"size", 5}}), "aten::__interpolate.scale_list(%x, 5, )");
  EXPECT_EQ(function("torch.nn.functional.interpolate", {x}, {{"scale_factor", 1.7}}), "nothing")
      << "by a factor the operator computes as Python did before 1.5";
}

TEST(Elements, ResultsThatHaveNames) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& max = graph.call_function("torch.max", {x, 1});
  const std::optional<Element> indices = taken_element(graph.call_function("builtins.getattr", {max, "indices"}));
  ASSERT_TRUE(indices);
  EXPECT_EQ(indices->index, 1);
  EXPECT_EQ(indices->of, &max);
  EXPECT_FALSE(taken_element(graph.call_function("builtins.getattr", {max, "shape"})));
  EXPECT_FALSE(taken_element(graph.call_function("builtins.getattr", {x, "values"})));
}

TEST(CallOnKinds, TheKindsDecide) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& sum = graph.call_function("operator.add", {x, y});
  const auto called = [&](std::string of_x, std::string of_y) {
    internal::CallOnKinds call(sum, [&](const Node& input) { return &input == &x ? of_x : of_y; });
    call.resolve();
    if (!call.call()) return call.refusal();
    const auto number = [&](const Argument& argument) { return std::to_string(call.input_number(argument.node())); };
    return call.call().schema().target.str() + " " + number(call.call().args()[0]) + number(call.call().args()[1]);
  };
  EXPECT_EQ(called("Tensor", "Tensor"), "aten::add.Tensor 01");
  EXPECT_EQ(called("Tensor", "int"), "aten::add.Scalar 01");
  EXPECT_EQ(called("float", "Tensor"), "aten::add.Scalar 10");
  EXPECT_EQ(called("str", "Tensor"), "no overload of operator.add takes these arguments: (str, Tensor)");
}

TEST(CallOnKinds, NumbersDoNotTurnAFunctionOfTorchIntoArithmetic) {
  Graph graph;
  Node& difference = graph.call_function("torch.sub", {2, graph.placeholder("f")});
  internal::CallOnKinds ints(difference, [](const Node&) { return "int"; });
  EXPECT_EQ(text_of(ints.resolve_forced()), "nothing");
  internal::CallOnKinds tensors(difference, [](const Node&) { return "Tensor"; });
  EXPECT_EQ(tensors.resolve_forced().schema().target, "aten::sub.Tensor");
}

TEST_F(CallOf, AliasesAgreeOnOneName) {
  const auto name = [&](const char* target, std::vector<Argument> args) {
    return operator_name(call_of(graph.call_function(target, args)).schema()).str();
  };
  EXPECT_EQ(name("torch.absolute", {x}), "aten::abs");
  EXPECT_EQ(name("torch.multiply", {x, y}), "aten::mul.Tensor");
  EXPECT_EQ(name("torch.swapaxes", {x, 0, 1}), "aten::transpose.int");
  EXPECT_EQ(name("torch.concatenate", {Argument::list({x, y})}), "aten::cat");
  EXPECT_EQ(name("aten::special_expit", {x}), "aten::sigmoid");
  EXPECT_EQ(name("aten::mul.Tensor", {x, y}), "aten::mul.Tensor");
}

TEST_F(CallOf, WhatIsSpeltAsTheOperatorIsNotCopied) {
  Node& add = graph.call_function("aten::add.Tensor", {x, y}, {{"alpha", 2}});
  const Call call = call_of(add);
  EXPECT_FALSE(call.is_translated());
  EXPECT_EQ(call.argument(0), &add.args()[0]);
  EXPECT_EQ(call.argument("alpha"), &add.kwargs().values()[0]);
  EXPECT_EQ(call.argument("no_such"), nullptr);
  EXPECT_FALSE(call_of(x));
  EXPECT_FALSE(call_of(graph.call_function("operator.getitem", {x, 0})));
}

void expect_equal(const Graph& graph, const Calls& calls, std::uint64_t seed) {
  for (const Node& node : graph.nodes())
    ASSERT_EQ(text_of(calls[node]), text_of(call_of(node))) << "seed " << seed << " at " << node.name();
}

// Every kind of edit, with all calls looked at anew as the oracle.
TEST(Calls, FollowEdits) {
  constexpr const char* kTargets[] = {"operator.add", "torch.relu",  "aten::add",        "operator.mul",
                                      "operator.sub", "aten::relu",  "builtins.getattr", "torch.flatten",
                                      "my.function",  "builtins.len"};
  for (std::uint64_t seed = 0; seed < testing::by_night(2000); ++seed) {
    testing::Random random(seed);
    Graph graph = testing::random_graph(seed, testing::random_options(seed, 30));
    const Calls calls(graph);
    expect_equal(graph, calls, seed);
    for (int edit = 0; edit < 12; ++edit) {
      std::vector<Node*> nodes;
      for (Node& node : graph.nodes()) nodes.push_back(&node);
      Node& node = *nodes[random.below(nodes.size())];
      Node& other = *nodes[random.below(nodes.size())];
      const bool call = node.is(Op::call_function) || node.is(Op::call_method);
      const bool value = !other.is(Op::output) && other.is_before(node);
      switch (random.below(6)) {
        case 0:
          if (call) node.set_target(kTargets[random.below(std::size(kTargets))]);
          break;
        case 1:
          if (call && value) node.set_args({other, static_cast<std::int64_t>(random.below(3))});
          break;
        case 2:
          if (call && value && !node.args().empty()) node.update_arg(0, other);
          break;
        case 3:
          if (!node.is(Op::output) && other.is_before(node) && !other.is(Op::output)) node.replace_all_uses_with(other);
          break;
        case 4:
          if (!node.has_users() && call) graph.erase_node(node);
          break;
        default:
          if (!node.is(Op::output) && !node.is(Op::placeholder)) {
            const auto here = graph.inserting_after(node);
            graph.call_function(kTargets[random.below(std::size(kTargets))], {node, 2});
          }
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(graph, calls, seed));
    }
  }
}

TEST(Calls, AnotherKindOfResultIsAnotherCallOfItsUsers) {
  Graph graph;
  Node& number = graph.placeholder("n");
  number.meta().set(meta_key::kType, std::string("int"));
  Node& tensor = graph.placeholder("t");
  tensor.meta().set(meta_key::kType, std::string("Tensor"));
  Node& product = graph.call_function("aten::mul", {number, 2});
  Node& sum = graph.call_function("operator.add", {product, 1});
  const Calls calls(graph);
  EXPECT_EQ(text_of(calls[sum]), "aten::add.int(%mul, 1, )");
  EXPECT_NE(calls.translated(sum), nullptr) << "worked out once";
  product.update_arg(0, tensor);
  EXPECT_EQ(text_of(calls[sum]), "aten::add.Scalar(%mul, 1, )");
  product.update_arg(0, number);
  EXPECT_EQ(text_of(calls[sum]), "aten::add.int(%mul, 1, )");
}

}  // namespace fx::calls_test
