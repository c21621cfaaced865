// A module, its graph, and the code that is generated from it.
//
//   class MyModule(torch.nn.Module):
//       def __init__(self):
//           super().__init__()
//           self.param = torch.nn.Parameter(torch.rand(3, 4))
//           self.linear = torch.nn.Linear(4, 5)
//
//       def forward(self, x):
//           return self.linear(x + self.param).clamp(min=0.0, max=1.0)
//
//   symbolic_traced = symbolic_trace(MyModule())
//   print(symbolic_traced.graph)
//   print(symbolic_traced.code)
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

struct MyModule : torch::nn::Module {
  torch::Tensor param = register_parameter("param", torch::rand({3, 4}));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 5));

  torch::Tensor forward(torch::Tensor x) { return linear(x + param).clamp(0.0, 1.0); }
};

int main() {
  auto module = std::make_shared<MyModule>();
  // [print]
  auto gm = fx::symbolic_trace(module);
  std::cout << gm->graph();
  std::cout << gm->code();                                // Python, as torch.fx generates it
  std::cout << fx::code(*gm, fx::Language::cpp);          // a torch::nn::Module
  std::cout << fx::code(*gm, fx::Language::torchscript);  // what torch.jit compiles
  // [end]

  TORCH_CHECK(fx::print_graph(gm->graph()) == R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %param : [num_users=1] = get_attr[target=param]
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %param), kwargs = {})
    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_function[target=torch.ops.aten.clamp.default](args = (%linear, 0.0, 1.0), kwargs = {})
    return clamp
)",
              fx::print_graph(gm->graph()));
  TORCH_CHECK(gm->code() == R"(def forward(self, x):
    param = self.param
    add = torch.ops.aten.add.Tensor(x, param);  x = param = None
    linear = self.linear(add);  add = None
    clamp = torch.ops.aten.clamp.default(linear, 0.0, 1.0);  linear = None
    return clamp
)",
              gm->code());
  const torch::Tensor x = torch::rand({3, 4});
  TORCH_CHECK(torch::equal(gm->forward(x), module->forward(x)));
  return 0;
}
