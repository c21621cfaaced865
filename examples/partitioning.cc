// Parts of a program for a back end, a program in stages, and transformations that are taken back.
#include <fxgraph/fx.h>
#include <torch/torch.h>

#include <iostream>

using torch::Tensor;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
    bn = register_module("bn", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(8, 4));
  }
  Tensor forward(const Tensor& x) { return torch::softmax(fc(torch::relu(bn(conv(x))).mean({2, 3})) / 2.0, 1); }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

// [backend]
/// Runs its part as it is, where a device would compile it.
struct MyPart : fx::CompiledPart {
  explicit MyPart(std::shared_ptr<fx::GraphModule> part) : part_(std::move(part)) {}
  c10::IValue run(std::vector<c10::IValue> inputs) override { return part_->run(std::move(inputs)); }
  std::shared_ptr<fx::GraphModule> part_;
};

struct MyBackend : fx::Backend {
  std::string name() const override { return "mine"; }
  bool supports(const fx::CallFacts& call) const override { return support.is_node_supported(call); }
  std::optional<std::string> why_not(const fx::CallFacts& call) const override { return support.why_not(call); }
  std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<fx::GraphModule> part) const override {
    return std::make_shared<MyPart>(std::move(part));
  }
  fx::OperatorSupport support = fx::chain({
      fx::support_operators({"Conv2d", "BatchNorm2d", "Linear", "aten::relu"}),
      fx::support_dtypes({fx::DType::float32}),
      fx::decline_if_node_in_names({"fc"}),
  });
};
// [end]

int main() {
  torch::manual_seed(1);
  const torch::NoGradGuard inference;
  Net net;
  net->eval();
  const Tensor x = torch::rand({4, 3, 8, 8});
  const auto gm = fx::symbolic_trace(net, {x});
  const Tensor expected = gm->forward(x);

  // [lower]
  const fx::Lowered lowered = fx::lower(*gm, MyBackend(), {.examples = {x}});
  const Tensor y = lowered.module()->forward(x);  // calls mine_0
  std::cout << lowered.report();                  // which nodes, and why not the others
  const auto back = lowered.inlined();            // the program as it was
  // [end]

  // [pipeline]
  const fx::PipelineStages stages = fx::split_pipeline(*gm, 2, {x});
  std::cout << stages.plan.str();
  // Each process: fx::Pipeline pipe(stages, fx::connect({.rank = rank, .world = 2, .host = "10.0.0.1"}));
  //               torch::Tensor y = pipe.forward(x, {.micro_batches = 4});
  // [end]

  // [reverse]
  const std::string before = fx::print_graph(gm->graph());
  const fx::Transformation faster = fx::compose({fx::ChangeTrueDivToMulByInverse(), fx::FuseBatchNorm2dInConv2d()});
  faster(*gm);
  const Tensor z = gm->forward(x);
  faster.reverse(*gm);
  const bool restored = fx::print_graph(gm->graph()) == before;
  // [end]
  const bool equal = torch::allclose(y, expected) && torch::allclose(z, expected, 1e-4, 1e-5) &&
                     fx::print_graph(back->graph()) == before;
  return equal && restored && stages.modules.size() == 2 ? 0 : 1;
}
