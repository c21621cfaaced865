// A pattern and its replacement as two ordinary functions; number parameters are literals, bound by the match.
//
//   def pattern(x, w): return torch.relu(torch.matmul(x, w))
//   def replacement(x, w): return torch.clamp_min(torch.mm(x, w), 0)
//   torch.fx.replace_pattern(gm, pattern, replacement)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  auto gm = fx::symbolic_trace([](torch::Tensor x, torch::Tensor w) {
    torch::Tensor y = torch::relu(torch::matmul(x, w));
    torch::Tensor z = torch::matmul(y, w);
    return torch::relu(z) + z / 4.0;
  });
  const torch::Tensor x = torch::randn({3, 3}), w = torch::randn({3, 3});
  const torch::Tensor before = gm->forward(x, w);
  {
    // [replace]
    auto pattern = [](torch::Tensor x, torch::Tensor w) { return torch::relu(torch::matmul(x, w)); };
    auto replacement = [](torch::Tensor x, torch::Tensor w) { return torch::clamp_min(torch::mm(x, w), 0); };

    fx::RewriteReport report = fx::replace_pattern(*gm, pattern, replacement);
    std::cout << report;  // how many were applied, and why the others were refused
    // [end]
    TORCH_CHECK(report.applied == 1 && report.refused.size() == 1);
  }
  {
    // [literal]
    auto pattern = [](torch::Tensor x, double c) { return x / c; };
    auto replacement = [](torch::Tensor x, double c) { return x * (1.0 / c); };
    // [end]
    TORCH_CHECK(fx::replace_pattern(*gm, pattern, replacement).applied == 1);
    TORCH_CHECK(torch::equal(pattern(x, 4.0), replacement(x, 4.0)), "they are functions: call them and they compute");
  }
  std::cout << gm->code();
  TORCH_CHECK(torch::allclose(gm->forward(x, w), before));
  return 0;
}
