// What a transform returns is a torch::nn::Module: it may be run, saved, and passed to another transform.
//
//   def transform(m: nn.Module) -> nn.Module:
//       fx_model: GraphModule = fx.symbolic_trace(m)
//       new_model = ...
//       return new_model
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

using Program = std::shared_ptr<fx::GraphModule>;

struct Net : torch::nn::Module {
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(4, 4));
  torch::Tensor forward(torch::Tensor x) { return torch::relu(fc(x)) + x; }
};

// [transforms]
Program without_relu(Program m) {
  fx::Decompositions table;
  table["aten::relu"] = [](torch::Tensor x) { return (x > 0) * x; };
  return fx::decompose(*m, table);
}

struct SubForAdd : fx::Transformer {
  using Transformer::Transformer;
  fx::Value call_function(const fx::Target& target, const fx::Args& args, const fx::Kwargs& kwargs) override {
    if (target == "aten::add.Tensor") return torch::sub(args[0].toTensor(), args[1].toTensor());
    return Transformer::call_function(target, args, kwargs);
  }
};
// [end]

int main() {
  auto net = std::make_shared<Net>();
  Program traced = fx::symbolic_trace(net);
  Program changed = SubForAdd(*without_relu(traced)).transform();
  Program again = fx::symbolic_trace(changed);  // a GraphModule traces like any module
  std::cout << again->code();

  // As a part of a module of one's own.
  struct Outer : torch::nn::Module {
    explicit Outer(Program part) : inner(register_module("inner", std::move(part))) {}
    torch::Tensor forward(torch::Tensor x) { return inner->forward(x) * 2; }
    Program inner;
  };
  Outer outer(again);
  TORCH_CHECK(outer.parameters().size() == 2);
  const torch::Tensor x = torch::randn({2, 4});
  TORCH_CHECK(torch::equal(outer.forward(x), (torch::relu(net->fc(x)) - x) * 2));
  return 0;
}
