// What a function cannot say: alternatives, optional parts, commutative operands, numbers of uses. And why a place does
// not match.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  struct Net : torch::nn::Module {
    torch::Tensor weight = register_parameter("weight", torch::randn({4, 4, 1, 1}));
    torch::Tensor forward(torch::Tensor x, torch::Tensor residual) {
      torch::Tensor a = torch::relu(residual + torch::conv2d(x, weight));
      torch::Tensor shared = torch::conv2d(a, weight);
      return torch::hardswish(shared + a) * shared;
    }
  };
  auto gm = fx::symbolic_trace(std::make_shared<Net>());
  // [pattern]
  using namespace fx::match;
  auto conv = op("aten::conv2d", any("x"), parameter("w"), maybe(parameter("b"))).name("conv");
  auto act = one_of(op("aten::relu"), op(re("aten::hard(swish|sigmoid)")), op("aten::clamp", _, 0.0, 6.0));
  fx::Pattern p = act(commutative("aten::add.Tensor", conv.used_once(), any("residual")));

  for (const fx::Match& m : fx::find(gm->graph(), p)) std::cout << m["conv"] << " feeds " << m.anchor() << "\n";
  // [end]
  TORCH_CHECK(fx::find(gm->graph(), p).size() == 1);
  const fx::Node& node = *gm->graph().find("hardswish");
  // [explain]
  std::cout << fx::explain(gm->graph(), p, node);
  // [end]
  TORCH_CHECK(fx::explain(gm->graph(), p, node).find("conv2d_1") != std::string::npos);
  return 0;
}
