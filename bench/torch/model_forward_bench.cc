// Running a whole model: GraphModule::forward of a traced ResNet-18 beside the module itself. The goal is within 1 %;
// to see a difference that small, run them in turn:
//   tools/bench --raw --benchmark_filter=ResNet18 --benchmark_repetitions=15
//   --benchmark_enable_random_interleaving=true
#include <torch/torch.h>

#include <fxgraph/trace/symbolic_trace.h>
#include "bench/harness.h"
#include "tests/trace/torch_models.h"

namespace fx::bench {
namespace {

struct Model {
  Model() {
    torch::manual_seed(0);
    eager = testing::ResNet18(64, 1000);
    eager->eval();
    traced = symbolic_trace(eager, {image});
  }
  testing::ResNet18 eager{nullptr};
  std::shared_ptr<GraphModule> traced;
  torch::Tensor image = torch::rand({1, 3, 224, 224});
};

Model& model() {
  static Model& made = *new Model;
  return made;
}

template <typename Run>
void time_model(benchmark::State& state, Run run) {
  const torch::NoGradGuard no_grad;
  if (!verified(state, torch::allclose(run(), model().eager->forward(model().image), 1e-5, 1e-5), "forward")) return;
  for (auto _ : state) benchmark::DoNotOptimize(run());
}

void BM_ResNet18Forward(benchmark::State& state) {
  time_model(state, [] { return model().traced->forward(model().image); });
}

void BM_EagerResNet18Forward(benchmark::State& state) {
  time_model(state, [] { return model().eager->forward(model().image); });
}

BENCHMARK(BM_ResNet18Forward)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_EagerResNet18Forward)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fx::bench
