// Wrong rules, which the self-test must all catch: copies of the rules of the list with one thing wrong in them, and
// rules of our own that get what callers see wrong.
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>

#include <fxgraph/rewriter/rules/rules.h>
#include <fxgraph/testing/self_test.h>

#include "tests/rules/hostile_run.h"

namespace fx::rules::broken_rules_test {

const Rule* find_rewrite(std::string_view name) {
  for (const OptimizeRule* rule : all_rules()) {
    for (const Rule& rewrite : rule->rules()) {
      if (rewrite.name == name) return &rewrite;
    }
  }
  return nullptr;
}

std::string name_of(std::size_t index, std::string_view rule) {
  std::string name = "n" + std::to_string(index) + "_" + std::string(rule);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

// ── Copies with one thing wrong ──────────────────────────────────────────────────────────────────────────────────────

struct Broken {
  const char* rule;
  const char* what;
  void (*breaks)(Rule&);
  friend std::ostream& operator<<(std::ostream& out, const Broken& broken) {
    return out << broken.rule << ": " << broken.what;
  }
};

class BrokenRules : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenRules, AreCaught) {
  const testing::Quiet quiet;
  const Rule* rule = find_rewrite(GetParam().rule);
  ASSERT_TRUE(rule) << "there is no rule " << GetParam().rule;
  Rule broken = *rule;
  GetParam().breaks(broken);
  const SelfTestResult result = self_test(broken, {.hostile = 2000});
  EXPECT_FALSE(result.counter_example.empty()) << GetParam().what << ": " << result;
}

void always(Rule& rule) { rule.when = {}; }
void claims_bits(Rule& rule) { rule.promise = Promise::bit_exact; }

const Broken kBroken[] = {
    {"recognise-gelu/erf", "bit-exact", claims_bits},
    {"recognise-gelu/tanh", "the erf form", [](Rule& r) { r.replacement = "aten::gelu(x)"; }},
    {"recognise-silu", "any other factor",
     [](Rule& r) { r.pattern = "aten::mul.Tensor(x: node, aten::sigmoid(y: node))"; }},
    {"recognise-hardswish", "hardsigmoid", [](Rule& r) { r.replacement = "aten::hardsigmoid(x)"; }},
    {"recognise-hardswish/sigmoid", "hardswish", [](Rule& r) { r.replacement = "aten::hardswish(x)"; }},
    {"recognise-hardswish/product", "silu", [](Rule& r) { r.replacement = "aten::silu(x)"; }},
    {"recognise-leaky-relu", "the slope is lost", [](Rule& r) { r.replacement = "aten::leaky_relu(x)"; }},
    {"recognise-leaky-relu", "less than",
     [](Rule& r) { r.pattern = "aten::where.self(aten::lt.Scalar(x: node, 0), x, aten::mul.Tensor(x, a: float))"; }},
    {"recognise-layer-norm/affine", "weight and bias swapped",
     [](Rule& r) { r.replacement = "aten::layer_norm(x, shape, beta, gamma, eps)"; }},
    {"recognise-linear/sum", "any shape", always},
    {"recognise-linear/bias", "any shape", always},
    {"recognise-linear/mm", "the weight is not transposed",
     [](Rule& r) {
       r.pattern = "{aten::mm, aten::matmul}(x, w)";
       r.examples = {"aten::mm(x, w)"};
     }},
    {"recognise-linear/addmm", "any alpha",
     [](Rule& r) {
       r.pattern = "aten::addmm(b: node, x, aten::t(w), alpha=_)";
       r.examples = {"aten::addmm(b, x, aten::t(w), alpha=2)"};
     }},
    {"decompose-relu", "(x > 0) x", [](Rule& r) { r.replacement = "aten::mul.Tensor(aten::gt.Scalar(x, 0), x)"; }},
    {"decompose-silu", "sigmoid", [](Rule& r) { r.replacement = "aten::sigmoid(x)"; }},
    {"decompose-gelu/erf", "the tanh form", [](Rule& r) { r.replacement = "aten::gelu(x, approximate='tanh')"; }},
    {"decompose-softmax", "no keepdim",
     [](Rule& r) {
       r.replacement = "e = aten::exp(x)\nreturn aten::div.Tensor(e, aten::sum.dim_IntList(e, [d], False))";
     }},
    {"decompose-linear", "the weight is not transposed",
     [](Rule& r) { r.replacement = "aten::add.Tensor(aten::matmul(x, w), b)"; }},
    {"decompose-addmm", "alpha and beta are lost",
     [](Rule& r) { r.replacement = "aten::add.Tensor(aten::mm(x, y), c)"; }},
    {"decompose-layer-norm", "the weight is lost", [](Rule& r) { r.replacement = "aten::layer_norm(x, shape)"; }},
    {"identity-arithmetic/add", "any type", always},
    {"identity-arithmetic/add", "takes 0 + alpha x for x",
     [](Rule& r) {
       r.pattern = "aten::add.Tensor(0, x: node, alpha=_)";
       r.examples = {"aten::add.Tensor(0, x, alpha=2)"};
     }},
    {"identity-arithmetic/sub", "the sign", [](Rule& r) { r.replacement = "aten::neg(x)"; }},
    {"identity-arithmetic/mul", "any type", always},
    {"identity-arithmetic/div", "any type", always},
    {"identity-arithmetic/pow", "any type",
     [](Rule& r) {
       r.when = {};
       r.pattern = "aten::pow.Tensor_Scalar(x: node, 1.0)";
     }},
    {"inverse-pairs/abs", "drops both", [](Rule& r) { r.replacement = "x"; }},
    {"inverse-pairs/neg", "of abs", [](Rule& r) { r.pattern = "aten::neg(aten::abs(x))"; }},
    {"inverse-pairs/bitwise-not", "one stays", [](Rule& r) { r.replacement = "aten::bitwise_not(x)"; }},
    {"inverse-pairs/relu", "softplus whatever its beta",
     [](Rule& r) {
       r.pattern = "aten::relu(v: aten::softplus(x, ...))";
       r.when = {};
       r.examples.clear();
     }},
    {"inverse-pairs/relu", "tanh",
     [](Rule& r) {
       r.pattern = "aten::relu(v: aten::tanh(x))";
       r.when = {};
       r.examples.clear();
     }},
    {"division-by-constant", "bit-exact", claims_bits},
    {"constant-arithmetic/add", "one is lost",
     [](Rule& r) {
       r.replacement = [](const Match& m, Rewriter& rewriter) -> Node& {
         return rewriter.call_function("aten::add.Scalar", {m["x"], m.argument("a")});
       };
     }},
    {"constant-arithmetic/mul", "the sum",
     [](Rule& r) {
       r.replacement = [](const Match& m, Rewriter& rewriter) -> Node& {
         return rewriter.call_function("aten::mul.Scalar", {m["x"], m.literal("a") + m.literal("b")});
       };
     }},
    {"casts/same", "any type", always},
    {"permutations/identity", "any order",
     [](Rule& r) {
       r.when = {};
       r.examples = {"aten::permute(x, [1, 0])"};
     }},
    {"permutations/compose", "the outer alone", [](Rule& r) { r.replacement = "aten::permute(x, outer)"; }},
    {"permutations/transpose", "any two dimensions",
     [](Rule& r) {
       r.pattern = "aten::transpose.int(aten::transpose.int(x: node, _, _), _, _)";
       r.examples = {"aten::transpose.int(aten::transpose.int(x, 0, 1), 1, 2)",
                     "aten::transpose.int(aten::transpose.int(x, 0, 1), 0, 0)"};
     }},
    {"permutations/t", "one stays", [](Rule& r) { r.replacement = "aten::t(x)"; }},
    {"reshapes/own-shape", "any shape", always},
    {"reshapes/view-of-view", "the inner shape", [](Rule& r) { r.replacement = "aten::view(x, [-1])"; }},
    {"reshapes/reshape-of-reshape", "of a transposition",
     [](Rule& r) {
       r.pattern = "aten::reshape(aten::t(x: node), shape: any)";
       r.when = {};
       r.examples = {"aten::reshape(aten::t(x), [-1])", "aten::reshape(aten::t(x), [1, -1])"};
     }},
    {"squeezes/nothing", "any size", always},
    {"squeezes/of-squeeze", "any size", always},
    {"squeezes/of-unsqueeze", "another dimension",
     [](Rule& r) {
       r.pattern = "aten::squeeze.dim(aten::unsqueeze(x: node, 0), 1)";
       r.examples.clear();
     }},
    {"full-slices", "any end",
     [](Rule& r) {
       r.when = {};
       r.examples = {"aten::slice.Tensor(x, 0, 0, 1, 1)"};
     }},
    {"concatenations/one", "drops the dimension", [](Rule& r) { r.replacement = "aten::unsqueeze(x, 0)"; }},
    {"drop-no-ops/dropout", "training",
     [](Rule& r) {
       r.pattern = "aten::dropout(x: node, _, _)";
       r.examples = {"aten::dropout(x, 0.5, True)"};
     }},
    {"drop-no-ops/contiguous", "neg", [](Rule& r) { r.replacement = "aten::neg(x)"; }},
};

INSTANTIATE_TEST_SUITE_P(All, BrokenRules, ::testing::ValuesIn(kBroken),
                         [](const auto& info) { return name_of(info.index, info.param.rule); });

// ── Rules of our own ─────────────────────────────────────────────────────────────────────────────────────────────────

/// A pattern and what is not quite the same, each right as a formula or nearly so, wrong for who shares, writes, draws.
struct Wrong {
  const char* what;
  const char* pattern;
  const char* replacement;
  Promise promise = Promise::bit_exact;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.what; }
};

class WrongRules : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongRules, AreCaught) {
  const testing::Quiet quiet;
  const Rule rule{.name = "wrong",
                  .pattern = GetParam().pattern,
                  .replacement = GetParam().replacement,
                  .promise = GetParam().promise};
  const SelfTestResult result = self_test(rule, {.hostile = 1000});
  EXPECT_FALSE(result.passed()) << result;
}

const Wrong kWrong[] = {
    {"writes to its input", "aten::neg(x: node)", "aten::neg_(x)"},
    {"writes to an operand", "aten::add.Tensor(x: node, y: node)", "aten::add_.Tensor(x, y)"},
    {"does not write", "aten::neg_(x: node)", "aten::neg(x)"},
    {"writes to a copy", "aten::mul_.Tensor(x: node, y: node)", "aten::mul_.Tensor(aten::clone(x), y)"},
    {"a sum without keepdim", "aten::sum.dim_IntList(x: node, d: literal, True)", "aten::sum.dim_IntList(x, d)"},
    {"a view becomes a copy", "aten::t(x: node)", "aten::clone(aten::t(x))"},
    {"alpha is lost", "aten::add.Tensor(x: node, y: node, alpha=_)", "aten::add.Tensor(x, y)"},
    {"alpha changes sides", "aten::add.Tensor(x: node, y: node, alpha=a: int)", "aten::add.Tensor(y, x, alpha=a)"},
    {"sub commutes", "aten::sub.Tensor(x: node, y: node)", "aten::sub.Tensor(y, x)"},
    {"no random numbers", "aten::rand_like(x: node)", "aten::zeros_like(x)"},
    {"two draws for one", "aten::dropout(x: node, 0.5, True)",
     "y = aten::dropout(x, 0.5, True)\nreturn aten::dropout(y, 0.5, True)"},
    {"0 x is 0", "aten::mul.Tensor(x: node, 0.0)", "aten::zeros_like(x)"},
    {"x - x is 0", "aten::sub.Tensor(x: node, x)", "aten::zeros_like(x)"},
    {"rounding is lost", "aten::div.Tensor_mode(x: node, y: node, rounding_mode=_)", "aten::div.Tensor(x, y)"},
    {"the type is lost", "aten::to.dtype(x: node, lit(torch.float64))", "aten::clone(x)"},
    {"a product without bounds", "aten::clamp_min(x: node, 0)", "aten::mul.Tensor(x, aten::gt.Scalar(x, 0))"},
    {"the mean over too much", "aten::mean.dim(x: node, [0])", "aten::mean(x)"},
    {"max for min", "aten::maximum(x: node, y: node)", "aten::minimum(x, y)"},
    {"exp of the log", "aten::exp(x: node)", "aten::exp2(x)", Promise::approximate},
    {"reassociates and claims not to", "aten::add.Tensor(aten::add.Tensor(x: node, y: node), z: node)",
     "aten::add.Tensor(x, aten::add.Tensor(y, z))"},
    {"fused and claims to be bit-exact", "aten::add.Tensor(x: node, aten::mul.Tensor(y: node, z: node))",
     "aten::addcmul(x, y, z)"},
};

INSTANTIATE_TEST_SUITE_P(All, WrongRules, ::testing::ValuesIn(kWrong),
                         [](const auto& info) { return name_of(info.index, info.param.what); });

// Who could tell a copy from a view of what it copies, the checks of every rewrite find out.
TEST(WrongRules, ACopyThatBecomesAViewDoesSoWhereNobodyCouldTell) {
  const testing::Quiet quiet;
  const Rule rule{.name = "view", .pattern = "aten::clone(x: node)", .replacement = "aten::alias(x)"};
  const SelfTestResult result = self_test(rule, {.hostile = 300});
  EXPECT_TRUE(result.passed()) << result;
  EXPECT_GT(result.hostile_applied, 5u);
}

}  // namespace fx::rules::broken_rules_test
