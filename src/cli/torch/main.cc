// `fxgraph-torch`: the whole program. `fxgraph` hands over to it when a command needs LibTorch.
#include <fxgraph/cli/torch/backend.h>

int main(int argc, char** argv) {
  fx::cli::TorchBackend backend;
  return fx::cli::run_program(argc, argv, &backend);
}
