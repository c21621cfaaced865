// Data parallel training of a GraphModule: each process has the whole program and a part of the batch, and LibTorch's
// c10d::Reducer averages the gradients while the backward runs. Starts its two processes itself; under torchrun or
// srun, each process is one.
#include <fxgraph/fx.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <cstdlib>
#include <iostream>

using torch::Tensor;

namespace {

// [reducer]
/// Averages the gradients of `parameters` over all processes in every backward.
template <typename Reducer = c10d::Reducer>  // whose constructor newer releases of LibTorch have changed
std::unique_ptr<Reducer> make_reducer(const std::vector<Tensor>& parameters, const fx::Workers& workers) {
  const std::size_t first = c10d::kDefaultFirstBucketBytes, others = c10d::kDefaultBucketBytesCap;
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(parameters, {first, others});
  const std::vector<bool> sparse(parameters.size(), false);
  const std::unordered_map<std::size_t, std::string> names;
  const bool find_unused = false, views = false, skip_unused = false, python = false;
  const auto group = workers.group();
  if constexpr (std::is_constructible_v<Reducer, decltype(parameters), decltype(buckets), decltype(limits),
                                        decltype(group), decltype(sparse), int, bool, bool, decltype(names), int>) {
    return std::make_unique<Reducer>(parameters, buckets, limits, group, sparse, others, find_unused, views, names,
                                     first);
  } else {
    return std::make_unique<Reducer>(parameters, buckets, group, sparse, others, find_unused, views, names, first,
                                     skip_unused, python, std::vector<std::int64_t>());
  }
}
// [end]

int train(const fx::WorkerAddress& address) {
  torch::set_num_threads(1);
  torch::manual_seed(1);  // the same parameters and the same batch everywhere
  torch::nn::Sequential net(torch::nn::Linear(6, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  const auto gm = fx::symbolic_trace(net, {torch::rand({4, 6})});
  const Tensor x = torch::rand({4 * address.world, 6}), labels = torch::randint(0, 3, {4 * address.world});
  const auto alone = gm->clone_graph_module();
  torch::nn::functional::cross_entropy(alone->forward(x), labels).backward();

  fx::Workers workers = fx::connect(address);
  const auto reducer = make_reducer(gm->parameters(), workers);
  const Tensor mine = x.narrow(0, 4 * address.rank, 4), mine_labels = labels.narrow(0, 4 * address.rank, 4);
  const Tensor loss = torch::nn::functional::cross_entropy(gm->forward(mine), mine_labels);
  reducer->prepare_for_backward({loss});
  loss.backward();
  bool equal = true;
  for (std::size_t i = 0; i < gm->parameters().size(); ++i)
    equal &= torch::allclose(gm->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-4, 1e-6);
  std::cout << "rank " << address.rank << ": gradients are " << (equal ? "" : "not ") << "those of the whole batch\n";
  workers.leave();
  return equal ? 0 : 1;
}

}  // namespace

int main() {
  if (!fx::can_connect()) return 0;
  if (const auto address = fx::workers_from_environment()) return train(*address);
  fx::WorkerAddress address{.world = 2, .port = static_cast<std::uint16_t>(41000 + getpid() % 20000)};
  const pid_t child = fork();  // before LibTorch has threads
  address.rank = child == 0 ? 1 : 0;
  const int code = train(address);
  if (child == 0) return code;
  int status = 0;
  waitpid(child, &status, 0);
  return code == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
