// Functions that traces keep as one call.
#include <fxgraph/retrace/wrap.h>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/retrace/transformer.h>
#include <fxgraph/text/parse.h>
#include "tests/trace/trace_testing.h"

namespace fx::wrap_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::same_value;
using testing::traced_calls;
using torch::Tensor;

// Its control flow depends on data: only as one call can it be in a graph.
const auto& clip() {
  static const auto wrapped = wrap("fx_wrap_test::clip", [](const Tensor& x, double limit) {
    return x.abs().max().item<double>() > limit ? x * (limit / x.abs().max()) : x.clone();
  });
  return wrapped;
}

TEST(Wrap, CallsTheFunctionOutsideOfTraces) {
  EXPECT_TRUE(clip()(torch::full({2}, 4.0), 2.0).equal(torch::full({2}, 2.0)));
  EXPECT_TRUE(clip()(torch::ones({2}), 2.0).equal(torch::ones({2})));
}

TEST(Wrap, ATraceRecordsOneCallThatRunsPrintsAndIsTracedAgain) {
  const auto program = [](Tensor x) { return clip()(x * 2, 3.0) + 1; };
  EXPECT_THAT(traced_calls(program),
              ElementsAre("aten::mul.Scalar(x, 2)", "fx_wrap_test::clip(mul, 3.0)", "aten::add.Scalar(clip, 1)"));
  const auto gm = symbolic_trace(program);
  const Tensor x = torch::tensor({5.0, -1.0});
  const Tensor expected = program(x);
  EXPECT_TRUE(same_value(gm->forward(x), expected));

  const std::string text = print_graph(gm->graph());
  EXPECT_THAT(text, HasSubstr("call_function[target=torch.ops.fx_wrap_test.clip.default](args = (%mul, 3.0)"));
  GraphModule parsed(parse_graph(text));
  EXPECT_TRUE(same_value(parsed.forward(x), expected));

  EXPECT_EQ(calls(symbolic_trace(gm)->graph()), calls(gm->graph()));
  EXPECT_EQ(calls(Transformer(*gm).transform()->graph()), calls(gm->graph()));
}

// The type of a function does not say whether it gives back what it was given.
TEST(Wrap, AResultMayBeAnArgument) {
  const auto same = wrap("fx_wrap_test::same", [](const Tensor& x) { return x.contiguous(); });
  const auto fresh = wrap("fx_wrap_test::fresh(Tensor x) -> Tensor", [](const Tensor& x) { return x.clone(); });
  const auto gm = symbolic_trace([&](Tensor x) { return same(x).relu() + fresh(x); });
  const NodeEffects effects = effects_of(*gm->graph().find("same"));
  EXPECT_TRUE(effects.may_alias);
  EXPECT_FALSE(effects.aliases) << "it may be a copy";
  EXPECT_FALSE(effects.impure());
  EXPECT_FALSE(effects_of(*gm->graph().find("fresh")).may_alias);
}

TEST(Wrap, GradientsFlowThroughTheFunction) {
  const auto square = wrap("fx_wrap_test::square", [](const Tensor& x) { return x * x; });
  const auto gm = symbolic_trace([&](Tensor x) { return square(x).sum(); });
  const Tensor x = torch::tensor({3.0}, torch::requires_grad());
  gm->forward(x).backward();
  EXPECT_TRUE(x.grad().equal(torch::tensor({6.0})));
}

Tensor halve(const Tensor& x) { return x / 2; }

TEST(Wrap, TakesFunctionsListsAndSeveralResults) {
  const auto half = wrap("fx_wrap_test_halve", halve);  // without a namespace: in fxgraph's
  const auto ends = wrap("fx_wrap_test::ends", [](at::TensorList all, c10::optional<std::int64_t> from) {
    return std::make_tuple(all.at(static_cast<std::size_t>(from.value_or(0))), all.back());
  });
  const auto program = [&](Tensor x, Tensor y) {
    const auto [first, last] = ends({x, half(y), y}, c10::optional<std::int64_t>(1));
    return first - last;
  };
  EXPECT_THAT(
      traced_calls(program),
      ElementsAre("fxgraph::fx_wrap_test_halve(y)", "fx_wrap_test::ends([x, fx_wrap_test_halve, y], 1)",
                  "operator.getitem(ends, 0)", "operator.getitem(ends, 1)", "aten::sub.Tensor(getitem, getitem_1)"));
  const Tensor x = torch::rand({3}), y = torch::rand({3});
  EXPECT_TRUE(same_value(symbolic_trace(program)->forward(x, y), program(x, y)));
}

TEST(Wrap, ADeclarationTellsWhatIsWritten) {
  const auto scale = wrap("fx_wrap_test::scale_(Tensor(a!) x, float by) -> Tensor(a!)", [](Tensor x, double by) {
    x.mul_(by);
    return x;
  });
  const auto gm = symbolic_trace([&](Tensor x) {
    Tensor y = x.clone();
    scale(y, 3.0);
    return y;
  });
  EXPECT_EQ(eliminate_dead_code(gm->graph()), 0U);
  EXPECT_TRUE(gm->forward(torch::ones({2})).equal(torch::full({2}, 3.0)));
}

TEST(Wrap, RefusesNamesThatAreTakenAndNamesThatAreNone) {
  clip();
  const auto again = [](const Tensor& x) { return x; };
  EXPECT_FX_ERROR(wrap("fx_wrap_test::clip", again), invalid_argument, HasSubstr("fx_wrap_test::clip"),
                  HasSubstr("already"));
  EXPECT_FX_ERROR(wrap("no name", again), invalid_argument, HasSubstr("my::name"));
  EXPECT_FX_ERROR(wrap("fx_wrap_test::wrong(Tensor x, int y) -> Tensor", again), invalid_argument,
                  HasSubstr("fx_wrap_test::wrong"));
  EXPECT_NO_THROW(wrap("fx_wrap_test::wrong", again));  // what was refused left nothing
}

}  // namespace fx::wrap_test
