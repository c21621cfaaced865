// A rule is data: what it looks for, when, what it puts there, and what it promises. It tests itself.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

// [rule]
const fx::Rule kDivByConstant{
    .name = "div-by-constant",
    .pattern = [](torch::Tensor x, double c) { return x / c; },
    .when = [](const fx::Match& m) { return m.literal("y") != 0.0; },  // C++ forgets names: x, y, z
    .replacement = [](torch::Tensor x, double c) { return x * (1.0 / c); },
    .promise = fx::Promise::approximate,
};
// [end]

int main() {
  auto gm = fx::symbolic_trace([](torch::Tensor x) { return (x / 3.0).relu() / 0.0; });
  const fx::RewriteReport report = fx::rewrite_once(*gm, {kDivByConstant});
  std::cout << report << gm->code();
  TORCH_CHECK(report.applied == 1);
  TORCH_CHECK(fx::self_test(kDivByConstant).passed());
  return 0;
}
