// Rewriting: a pattern replaced, a rule that tests itself, drivers, the rules that come with fxgraph, and proofs.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "examples/rewriting: " << what << "\n";
  std::exit(1);
}

torch::Tensor net(torch::Tensor x, torch::Tensor w) {
  return torch::relu(torch::matmul(x, w)) / 4.0 + 0.5 * x * (1 + torch::erf(x / 1.4142135));
}

void replace() {
  auto gm = fx::symbolic_trace(net);
  // [replace]
  auto pattern = [](torch::Tensor x, torch::Tensor w) { return torch::relu(torch::matmul(x, w)); };
  auto replacement = [](torch::Tensor x, torch::Tensor w) { return torch::clamp_min(torch::mm(x, w), 0); };

  fx::RewriteReport report = fx::replace_pattern(*gm, pattern, replacement);
  std::cout << report << "\n";  // applied 1
  // [end]
  check(report.applied == 1, "the pattern is there once");

  // [captures]
  fx::replace_pattern(*gm, "aten::clamp_min(v, low: literal)", [](const fx::Match& match, fx::Rewriter& rewriter) {
    fx::Node& v = match["v"];
    return std::vector<fx::Argument>{rewriter.call_function("aten::clamp", {v, match.argument("low"), 1e6})};
  });
  // [end]
  check(gm->graph().count(fx::Op::call_function, "aten::clamp") == 1, "a builder makes nodes");
}

// [rule]
const fx::Rule kDivByConstant{
    .name = "div-by-constant",
    .pattern = "aten::div.Scalar(x, c: float)",
    .when = [](const fx::Match& m) -> fx::Decision {
      if (m.literal("c") == 0.0) return fx::refuse("it divides by zero");
      return true;
    },
    .replacement = [](const fx::Match& m, fx::Rewriter& r) -> fx::Node& {
      return r.call_function("aten::mul.Scalar", {m["x"], 1 / m.literal("c")});
    },
    .promise = fx::Promise::approximate,
};
// [end]

void rules() {
  // [self_test]
  const fx::SelfTestResult result = fx::self_test(kDivByConstant);
  std::cout << result << "\n";  // ran 400 programs, the rule fired on 316 of them
  // [end]
  check(result.passed(), "the rule keeps its promise");

  auto gm = fx::symbolic_trace(net);
  // [driver]
  const fx::RuleSet rules = {
      kDivByConstant,
      {.name = "neg-neg", .pattern = "aten::neg(aten::neg(x))", .replacement = "x"},
  };
  fx::RewriteReport report = fx::rewrite_to_fixed_point(*gm, rules);
  // [end]
  check(report.applied == 2, "two divisions by constants");
}

void optimise() {
  auto gm = fx::symbolic_trace(net);
  auto before = gm->clone_graph_module();
  const fx::TensorInfo matrix = fx::tensor_info(torch::rand({4, 4}));
  // [optimize]
  fx::OptimizeReport report =
      fx::optimize(*gm, {.inputs = {matrix, matrix}});  // the group `inference`; .rules for another
  for (const fx::RuleOutcome& rule : report.rules) {
    if (rule.applied > 0) std::cout << rule.rule->name << ": " << rule.applied << "\n";  // recognise-gelu: 1
  }
  // [end]
  check(report.applied() >= 1, "gelu is written out");
  // [verify]
  const torch::Tensor x = torch::randn({4, 4}), w = torch::randn({4, 4});
  const fx::Verification verification = fx::verify_equivalent(*before, *gm, {{x, w}});
  std::cout << verification << "\n";  // equal on 1 sets of inputs, largest relative difference 5.9e-08
  // [end]
  check(verification.equal, "the programs are equal");
}

}  // namespace

int main() {
  replace();
  rules();
  optimise();
  return 0;
}
