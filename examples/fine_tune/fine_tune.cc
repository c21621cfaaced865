// Fine-tunes a program that Python exported, and saves it for Python again:
//
//   python3 export.py model.pt2
//   ./fine_tune model.pt2 tuned.pt2
//   python3 check.py tuned.pt2
#include <torch/torch.h>

#include <iostream>

#include <fxgraph/fx.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fine_tune IN.pt2 OUT.pt2\n";
    return 2;
  }
  try {
    torch::manual_seed(0);
    const torch::Tensor samples = torch::rand({64, 8}), labels = torch::randint(4, {64});

    auto model = fx::load(argv[1]);
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
    double first = 0, last = 0;
    for (int epoch = 0; epoch < 40; ++epoch) {
      for (int start = 0; start < 64; start += 16) {
        optimizer.zero_grad();
        const torch::Tensor scores = model->forward(samples.narrow(0, start, 16));
        const torch::Tensor loss = torch::cross_entropy_loss(scores, labels.narrow(0, start, 16));
        loss.backward();
        optimizer.step();
        last = loss.item<double>();
        if (epoch == 0 && start == 0) first = last;
      }
    }
    std::cout << "loss " << first << " -> " << last << '\n';
    model->save(argv[2]);
    const bool same = torch::allclose(fx::load(argv[2])->forward(samples), model->forward(samples));
    return same && last < first ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "fine_tune: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
