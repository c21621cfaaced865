// An interpreter that counts the floating-point operations of matrix products while the program runs.
//
//   class FlopCounter(torch.fx.Interpreter):
//       def call_function(self, target, args, kwargs): ...
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

// [interpreter]
struct CountFlops : fx::Interpreter {
  using Interpreter::Interpreter;
  fx::Value call_function(const fx::Target& target, const fx::Args& args, const fx::Kwargs& kwargs) override {
    if (target == "aten::matmul") flops += 2 * args[0].toTensor().numel() * args[1].toTensor().size(-1);
    return Interpreter::call_function(target, args, kwargs);
  }
  std::int64_t flops = 0;
};
// [end]

int main() {
  auto gm = fx::symbolic_trace([](torch::Tensor x, torch::Tensor w) { return torch::relu(torch::matmul(x, w)); });
  const torch::Tensor x = torch::randn({2, 3}), w = torch::randn({3, 4});
  CountFlops counter(*gm);
  const fx::Value y = counter.run({x, w});
  std::cout << counter.flops << " floating-point operations\n";
  TORCH_CHECK(counter.flops == 2 * 2 * 3 * 4);
  TORCH_CHECK(torch::equal(y.toTensor(), torch::relu(torch::matmul(x, w))));
  return 0;
}
