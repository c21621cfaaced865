// A module with members of every kind, whose forward is given: what the tables of tests are made of.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fx::testing {

struct InnerBag : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::rand({3, 3}));
  torch::Tensor cache;
  torch::Tensor table = torch::ones({1, 3});
  std::vector<torch::Tensor> list;
  std::int64_t count = 0;
  torch::Tensor forward(torch::Tensor x) { return x.matmul(w); }
};

struct Bag : torch::nn::Module {
  using Step = std::function<torch::Tensor(Bag&, torch::Tensor)>;
  explicit Bag(Step forward_step) : step(std::move(forward_step)) { eval(); }
  torch::Tensor forward(torch::Tensor x) { return step(*this, std::move(x)); }

  Step step;
  torch::Tensor w = register_parameter("w", torch::rand({3, 3}));
  torch::Tensor running = register_buffer("running", torch::ones({3}));
  std::shared_ptr<InnerBag> inner = register_module("inner", std::make_shared<InnerBag>());
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 3));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.5));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(3));
  std::vector<torch::nn::Linear> unregistered = {torch::nn::Linear(3, 3), torch::nn::Linear(3, 3)};
  torch::Tensor cache;                        // undefined
  torch::Tensor table = torch::rand({1, 3});  // registered nowhere
  torch::Tensor view = w.t();                 // of a parameter
  std::vector<torch::Tensor> list;            // empty
  std::vector<torch::Tensor> full = {torch::ones({1, 3}), torch::ones({1, 3})};
  std::vector<torch::Tensor> pair_of_rows = {torch::zeros({1, 3}), torch::zeros({1, 3})};
  std::map<std::string, torch::Tensor> by_name;
  std::unordered_map<std::string, torch::Tensor> hashed;
  std::optional<torch::Tensor> maybe;
  std::pair<torch::Tensor, torch::Tensor> both = {torch::ones({1, 3}), torch::zeros({1, 3})};
  std::unique_ptr<InnerBag> hidden = std::make_unique<InnerBag>();
  std::vector<std::int64_t> numbers = {1};
  std::string name_of_mode = "a";
  std::int64_t count = 0;
  double scale = 2;
  bool flag = false;
  float memory[3] = {1, 2, 3};
};

}  // namespace fx::testing
