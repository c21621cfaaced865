// What the program decides by whether gradients are required.
#include <functional>
#include <utility>

#include "tests/trace/trace_testing.h"

namespace fx::gradient_questions_test {

using testing::error_of;
using ::testing::HasSubstr;
using testing::same_numbers;
using torch::Tensor;

// ── Gradients
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(GradientQuestions, OfAnInputAreRefused) {
  const auto program = [](Tensor x) { return x.requires_grad() ? x * 2 : x * 3; };
  for (const bool required : {false, true}) {
    const Tensor example = torch::rand({2, 3}).set_requires_grad(required);
    EXPECT_THAT(error_of([&] { symbolic_trace(program, {example}); }),
                HasSubstr("%x: requires_grad() is the caller's to say"));
  }
  EXPECT_THAT(error_of([&] { symbolic_trace(program); }), HasSubstr("%x: requires_grad()"));
}

TEST(GradientQuestions, AskedOtherwiseAreRefused) {
  const auto by_function = [](Tensor x) { return x.grad_fn() ? x * 2 : x * 3; };
  const auto by_leaf = [](Tensor x) {
    const Tensor y = x * 2;
    return y.is_leaf() ? y : y + 1;
  };
  const Tensor example = torch::rand({2, 3});
  EXPECT_THAT(error_of([&] { symbolic_trace(by_function, {example}); }),
              HasSubstr("%x: requires_grad() is the caller's"));
  EXPECT_THAT(error_of([&] { symbolic_trace(by_leaf, {example}); }),
              HasSubstr("%mul: requires_grad() is the caller's"));
}

TEST(GradientQuestions, ForHowATensorCameAboutAreRefused) {
  using Ask = std::function<bool(const Tensor&)>;
  const std::vector<std::pair<std::string, Ask>> questions = {
      {"is_view()", [](const Tensor& x) { return x.is_view(); }},
      {"_base()", [](const Tensor& x) { return x._base().defined(); }},
      {"output_nr()", [](const Tensor& x) { return x.output_nr() == 0; }},
      {"_version()", [](const Tensor& x) { return x._version() == 0; }},
  };
  const Tensor weight = torch::rand({4, 2});
  for (const auto& [call, ask] : questions) {
    SCOPED_TRACE(call);
    const auto of_input = [&, ask = ask](Tensor x) { return ask(x) ? x * 2 : x * 3; };
    const auto of_view = [&, ask = ask](Tensor x) { return ask(x.view({-1})) ? x * 2 : x * 3; };
    const auto of_weight = [&, ask = ask](Tensor x) { return ask(weight.t()) ? x * 2 : x * 3; };
    const Tensor x = torch::rand({2, 3});
    EXPECT_THAT(error_of([&] { symbolic_trace(of_input, {x}); }), HasSubstr("%x: " + call + " asks how"));
    EXPECT_THAT(error_of([&] { symbolic_trace(of_view, {x}); }), HasSubstr("%view: " + call + " asks how"));
    EXPECT_THAT(error_of([&] { symbolic_trace(of_weight, {x}); }), HasSubstr(call + " asks how"));
    EXPECT_THAT(error_of([&] { symbolic_trace(of_input); }), HasSubstr("%x: " + call + " asks how"));
  }
}

// Views of conjugates and negatives say so, in the graph as in the program.
TEST(GradientQuestions, WhetherItIsConjugatedIsAnswered) {
  const auto conjugated = [](Tensor x) {
    const Tensor y = torch::complex(x, x * 2).conj();
    return torch::view_as_real(y.is_conj() ? y.resolve_conj() * 2 : y * 3);
  };
  const auto negated = [](Tensor x) {
    const Tensor y = torch::imag(torch::complex(x, x * 2).conj());
    return y.is_neg() && !y.resolve_neg().is_neg() && !x.is_neg() ? y * 2 : y * 3;
  };
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_numbers(symbolic_trace(conjugated, {x})->forward(x), conjugated(x)));
  EXPECT_TRUE(same_numbers(symbolic_trace(negated, {x})->forward(x), negated(x)));
}

TEST(GradientQuestions, OfOrdinaryTensorsAreAnsweredWhileTracing) {
  const Tensor weight = torch::rand({3}).requires_grad_(), product = weight * 2;
  const auto program = [&](Tensor x) {
    const Tensor index = x.to(torch::kLong), kept = x.detach();
    const bool as_ever = weight.is_leaf() && !weight.grad_fn() && !product.is_leaf() && product.grad_fn() &&
                         index.is_leaf() && !index.grad_fn() && kept.is_leaf();
    return as_ever ? x * weight : x;
  };
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_numbers(symbolic_trace(program, {x})->forward(x), x * weight));
}

TEST(GradientQuestions, RequiringOneIsFollowed) {
  const auto program = [](Tensor x) { return x.detach().requires_grad_() * 2; };
  const auto gm = symbolic_trace(program, {torch::rand({2})});
  const Tensor y = gm->forward(torch::rand({2}));
  EXPECT_TRUE(y.requires_grad() && !y.is_leaf());
}

TEST(GradientQuestions, AreRefusedWhereTheProgramHandlesTheError) {
  const auto program = [](Tensor x) {
    try {
      if (x.requires_grad()) return x * 2;
    } catch (const std::exception&) {
    }
    return x * 3;
  };
  EXPECT_THAT(error_of([&] { symbolic_trace(program, {torch::rand({2})}); }), HasSubstr("handles this error"));
}

TEST(GradientQuestions, OfWhatIsComputedAreRefused) {
  torch::nn::Linear layer(3, 3);
  const auto program = [layer](Tensor x) mutable {
    const Tensor y = layer(x);
    return y.requires_grad() ? y * 2 : y;
  };
  EXPECT_THAT(error_of([&] { symbolic_trace(program, {torch::rand({2, 3})}); }), HasSubstr("requires_grad()"));
}

TEST(GradientQuestions, OfWhatNeverHasOneAreAnswered) {
  const auto program = [](Tensor x, Tensor index) {
    const Tensor y = x.detach();
    return y.requires_grad() || index.requires_grad() || torch::tensor({1.0F}).requires_grad() ? y : y + index;
  };
  const Tensor x = torch::rand({2}), index = torch::arange(2);
  EXPECT_TRUE(same_numbers(symbolic_trace(program, {x, index})->forward(x, index), x + index));
}

struct Frozen : torch::nn::Module {
  Frozen()
      : inner(register_module("inner", torch::nn::Linear(3, 3))),
        last(register_module("last", torch::nn::Linear(3, 1))) {}
  Tensor forward(Tensor x) {
    for (Tensor& parameter : inner->parameters()) parameter.set_requires_grad(false);
    x = torch::relu(inner(x));
    for (Tensor& parameter : inner->parameters()) parameter.set_requires_grad(true);
    return last(x);
  }
  torch::nn::Linear inner, last;
};

TEST(GradientQuestions, PartsThatAreFrozenMeanwhileGetNone) {
  const auto net = std::make_shared<Frozen>();
  const auto gm = symbolic_trace(net, {torch::rand({2, 3})});
  const Tensor x = torch::rand({5, 3}).requires_grad_();
  gm->forward(x).sum().backward();
  EXPECT_FALSE(net->inner->weight.grad().defined());
  ASSERT_TRUE(net->last->weight.grad().defined());
  const Tensor found = x.grad().clone(), of_last = net->last->weight.grad().clone();
  x.mutable_grad() = Tensor();
  net->zero_grad();
  net->forward(x).sum().backward();
  EXPECT_TRUE(torch::allclose(found, x.grad()));
  EXPECT_TRUE(torch::allclose(of_last, net->last->weight.grad()));
}

struct Thawed : torch::nn::Module {
  Thawed() : inner(register_module("inner", torch::nn::Linear(3, 3))) { inner->weight.set_requires_grad(false); }
  Tensor forward(Tensor x) {
    inner->weight.set_requires_grad(true);
    x = inner(x);
    inner->weight.set_requires_grad(false);
    return x;
  }
  torch::nn::Linear inner;
};

TEST(GradientQuestions, PartsThatAreThawedMeanwhileAreRefused) {
  const auto net = std::make_shared<Thawed>();
  EXPECT_THAT(error_of([&] { symbolic_trace(net, {torch::rand({2, 3})}); }), HasSubstr("set_requires_grad()"));
  EXPECT_FALSE(net->inner->weight.requires_grad());
}

}  // namespace fx::gradient_questions_test
