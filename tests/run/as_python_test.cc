// Calls do what Python does with them, by plan and by Interpreter: arguments by keyword, methods that take the tensor
// elsewhere than their operators, sequences by position, powers of ints, and gradients that a failing run switched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/text/parse.h>
#include "tests/support/error_of.h"

namespace fx::as_python_test {

using ::testing::HasSubstr;

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

GraphModule module_of(const std::string& lines) {
  return GraphModule(parse_graph("graph():\n%x = placeholder[target=x]\n" + lines));
}

void expect_same(const c10::IValue& found, const c10::IValue& expected, const std::string& what) {
  if (expected.isTensor()) {
    ASSERT_TRUE(found.isTensor()) << what << " " << found;
    EXPECT_EQ(found.toTensor().scalar_type(), expected.toTensor().scalar_type()) << what;
    EXPECT_TRUE(torch::equal(found.toTensor(), expected.toTensor())) << what << "\n" << found << "\n" << expected;
    return;
  }
  EXPECT_EQ(found.tagKind(), expected.tagKind()) << what;
  EXPECT_EQ(found, expected) << what;
}

void expect_gives(const std::string& call, const c10::IValue& expected, const c10::IValue& input = sample()) {
  GraphModule gm = module_of("%y = " + call + "\nreturn y");
  expect_same(gm.run({input.deepcopy()}), expected, "plan: " + call);
  expect_same(Interpreter(gm).run({input.deepcopy()}), expected, "interpreter: " + call);
}

void expect_refused(const std::string& call, const std::string& why, const c10::IValue& input = sample()) {
  const auto made = [&] { return module_of("%y = " + call + "\nreturn y"); };
  EXPECT_THAT(testing::error_of([&] { made().run({input}); }), HasSubstr(why)) << call;
  EXPECT_THAT(testing::error_of([&] {
                GraphModule gm = made();
                Interpreter(gm).run({input});
              }),
              HasSubstr(why))
      << call;
}

TEST(AsPython, AnArgumentGivenTwiceIsRefusedByName) {
  for (const char* call : {
           "call_function[target=torch.sum](args = (%x, 1), kwargs = {dim: 0})",
           "call_function[target=aten::sum.dim_IntList](args = (%x, [1]), kwargs = {dim: [0]})",
           "call_method[target=sum](args = (%x, 1), kwargs = {dim: 0})",
           "call_function[target=torch.unique](args = (%x, True), kwargs = {sorted: False})",
           "call_function[target=operator.getitem](args = (%x, 1), kwargs = {b: 0})",
           "call_method[target=where](args = (%x, %x), kwargs = {condition: %x, other: %x})",
       }) {
    expect_refused(call, "twice");
  }
}

TEST(AsPython, KeywordsAreTakenBehindOnesThatAreLeftOut) {
  const torch::Tensor x = torch::tensor({3, 1, 3, 2, 1});
  const auto [values, places, counts] = torch::_unique2(x, true, false, true);
  const std::string lines =
      "%u = call_function[target=torch.unique](args = (%x,), kwargs = {return_counts: True})\n"
      "%y = call_function[target=operator.getitem](args = (%u, 1))\nreturn y";
  expect_same(module_of(lines).run({x}), counts, "plan");
  GraphModule gm = module_of(lines);
  expect_same(Interpreter(gm).run({x}), counts, "interpreter");
  expect_gives("call_function[target=torch.unique](args = (), kwargs = {input: %x, dim: 0})", values, x);
  expect_refused("call_function[target=operator.getitem](args = (), kwargs = {b: 0})", "'a'");
}

TEST(AsPython, MethodsThatTakeTheTensorElsewhere) {
  const torch::Tensor b = sample() > 0;
  GraphModule gm = module_of(
      "%c = call_function[target=operator.lt](args = (%x, 0))\n%z = call_function[target=torch.neg](args = (%x,))\n"
      "%y = call_method[target=where](args = (%x, %c, %z))\n%n = call_method[target=where](args = (%x, %c, 2.0))\n"
      "%k = call_method[target=where](args = (%x,), kwargs = {condition: %c, other: %z})\n"
      "%t = call_function[target=torch.stack](args = ([%y, %n, %k],))\nreturn t");
  const torch::Tensor x = sample(), w = torch::where(x < 0, x, -x);
  const torch::Tensor expected = torch::stack({w, torch::where(x < 0, x, torch::full({}, 2.0)), w});
  expect_same(gm.run({x}), expected, "plan");
  expect_same(Interpreter(gm).run({x}), expected, "interpreter");
  expect_gives("call_method[target=type](args = (%x, torch.float64))", x.to(torch::kDouble));
  expect_gives("call_method[target=char](args = (%x,))", x.to(torch::kChar));
  expect_gives("call_method[target=nelement](args = (%x,))", x.numel());
  expect_gives("call_method[target=ndimension](args = (%x,))", x.dim());
  // Of bools, nothing but the order tells the condition.
  expect_gives("call_method[target=where](args = (%x, %x, %x))", b, b);
  const torch::Tensor positive = sample().abs() + 1;
  expect_gives("call_method[target=polygamma](args = (%x, 2))", torch::polygamma(2, positive), positive);
  expect_gives("call_method[target=polygamma](args = (%x,), kwargs = {n: 1})", torch::polygamma(1, positive), positive);
}

TEST(AsPython, PowersOfInts) {
  for (const char* power : {"operator.pow", "operator.ipow"}) {
    const std::string call = std::string("call_function[target=") + power + "](args = ";
    expect_gives(call + "(%x, 2))", std::int64_t{9}, 3);
    expect_gives(call + "(%x, -1))", 0.25, 4);
    expect_gives(call + "(%x, 0))", std::int64_t{1}, 0);
    expect_gives(call + "(%x, 39))", std::int64_t{4052555153018976267}, 3);  // no double holds it
    expect_gives(call + "(-2, %x))", std::int64_t{-8}, 3);
    expect_gives(call + "(%x, 63))", std::numeric_limits<std::int64_t>::min(), -2);
    expect_gives(call + "(2, %x))", 0.125, -3);
    expect_gives(call + "(%x, 2.0))", 9.0, 3);
    expect_gives(call + "(%x, 2))", sample().square());
    expect_refused(call + "(%x, 64))", "larger than 64 bits", 2);
    expect_refused(call + "(%x, -1))", "0 cannot be raised to a negative power", 0);
  }
}

TEST(AsPython, SequencesByPosition) {
  const torch::Tensor x = sample();
  const std::pair<const char*, torch::Tensor> kCalls[] = {
      {"view](args = (%x, 2, 6))", x.view({2, 6})},
      {"view](args = (%x, -1))", x.view(-1)},
      {"reshape](args = (%x, 4, 3))", x.reshape({4, 3})},
      {"permute](args = (%x, 1, 0))", x.permute({1, 0})},
      {"repeat](args = (%x, 2, 2))", x.repeat({2, 2})},
      {"repeat](args = (%x, 2, 1, 2))", x.repeat({2, 1, 2})},
      {"expand](args = (%x, 5, 3, 4))", x.expand({5, 3, 4})},
      {"expand](args = (%x, 2, -1, -1))", x.expand({2, -1, -1})},
      {"flip](args = (%x, 0, 1))", x.flip({0, 1})},
      {"flip](args = (%x, 0))", x.flip(0)},
      {"tile](args = (%x, 2, 2))", x.tile({2, 2})},
      {"new_zeros](args = (%x, 2, 3))", torch::zeros({2, 3})},
      {"broadcast_to](args = (%x, 2, 3, 4))", x.broadcast_to({2, 3, 4})},
      {"new_ones](args = (%x, 2, 3), kwargs = {dtype: torch.int64})", torch::ones({2, 3}, torch::kLong)},
      {"view](args = (%x, (2, 6)))", x.view({2, 6})},
      {"transpose](args = (%x, 0, 1))", x.transpose(0, 1)},
      {"sum](args = (%x, 0, True))", x.sum(0, true)},
      {"roll](args = (%x, 1, 0))", x.roll(1, 0)},
      {"movedim](args = (%x, 0, 1))", x.movedim(0, 1)},
      {"squeeze](args = (%x, 0))", x},
      {"unflatten](args = (%x, 1, (2, 2)))", x.view({3, 2, 2})},
      {"tensor_split](args = (%x, 3, 1))", {}},
  };
  for (const auto& [call, expected] : kCalls) {
    if (expected.defined()) expect_gives(std::string("call_method[target=") + call, expected);
  }
  expect_gives("call_method[target=size](args = (%x, -1))", std::int64_t{4});
  expect_gives("call_method[target=size](args = (%x, 0))", std::int64_t{3});
  expect_gives("call_function[target=torch.zeros](args = (2, 3))", torch::zeros({2, 3}));
  GraphModule gm = module_of(
      "%n = call_method[target=size](args = (%x, 0))\n%y = call_method[target=view](args = (%x, -1, %n))\nreturn y");
  expect_same(gm.run({x}), x.view({-1, 3}), "plan");
  expect_same(Interpreter(gm).run({x}), x.view({-1, 3}), "interpreter");
}

TEST(AsPython, TensorsByPositionAreAList) {
  const torch::Tensor x = sample(), product = torch::matmul(x, x.t());
  for (const char* einsum : {"torch.einsum", "torch.functional.einsum"}) {
    const std::string call = std::string("call_function[target=") + einsum + "](args = ('ij,kj->ik', ";
    expect_gives(call + "%x, %x))", product);
    expect_gives(call + "[%x, %x]))", product);
  }
  expect_gives("call_function[target=torch.block_diag](args = (%x, %x))", torch::block_diag({x, x}));
  const torch::Tensor condition = x > 0;
  expect_gives("call_function[target=aten::where](args = (%x, %x, %x))", condition, condition);
}

TEST(AsPython, ARunThatFailsLeavesGradientsAsTheyWere) {
  for (const char* target : {"torch._C._set_grad_enabled", "aten::set_grad_enabled", "torch.set_grad_enabled"}) {
    GraphModule gm = module_of(std::string("%off = call_function[target=") + target +
                               "](args = (False,))\n%y = call_method[target=view](args = (%x, 5))\n%on = "
                               "call_function[target=" +
                               target + "](args = (True,))\nreturn y");
    for (const bool before : {true, false}) {
      const torch::AutoGradMode mode(before);
      EXPECT_THAT(testing::error_of([&] { gm.run({sample()}); }), HasSubstr("view"));
      EXPECT_EQ(torch::GradMode::is_enabled(), before) << target;
      EXPECT_THAT(testing::error_of([&] { Interpreter(gm).run({sample()}); }), HasSubstr("view"));
      EXPECT_EQ(torch::GradMode::is_enabled(), before) << target;
      EXPECT_TRUE(torch::equal(gm.forward(torch::ones({5})), torch::ones({5})));
      EXPECT_TRUE(torch::GradMode::is_enabled()) << target;
    }
  }
}

}  // namespace fx::as_python_test
