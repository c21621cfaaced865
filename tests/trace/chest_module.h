// A module with members of the kinds that a trace could take for something else.
#pragma once

#include <c10/util/Optional.h>
#include <c10/util/SmallVector.h>
#include <torch/torch.h>

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace fx::testing {

struct Chest : torch::nn::Module {
  using Step = std::function<torch::Tensor(Chest&, torch::Tensor)>;
  explicit Chest(Step forward_step) : step(std::move(forward_step)) { eval(); }
  torch::Tensor forward(torch::Tensor x) { return step(*this, std::move(x)); }

  Step step;
  torch::Tensor w = register_parameter("w", torch::rand({3, 3}));
  torch::Tensor running = register_buffer("running", torch::ones({3}));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 3));
  std::optional<torch::Tensor> full_optional = torch::full({3}, 2.0);
  c10::optional<torch::Tensor> other_optional = torch::full({3}, 3.0);
  c10::optional<torch::Tensor> empty_optional;
  std::variant<std::monostate, torch::Tensor, std::int64_t> variant = torch::full({3}, 4.0);
  c10::SmallVector<torch::Tensor, 4> small = {torch::full({3}, 5.0), torch::full({3}, 6.0)};
  c10::SmallVector<torch::Tensor, 4> empty_small;
  torch::Tensor* borrowed = &running;
  c10::TensorImpl* impl = running.unsafeGetTensorImpl();
  std::array<std::uintptr_t, 4> addresses = {};
  std::vector<torch::Tensor> tensors = {torch::full({3}, 7.0), torch::full({3}, 8.0), torch::full({3}, 9.0)};
  std::vector<std::pair<torch::Tensor, torch::Tensor>> pairs = {{torch::ones({3}), torch::zeros({3})}};
  std::optional<std::vector<torch::Tensor>> tensors_or_none = std::vector<torch::Tensor>{torch::ones({3})};
  std::deque<torch::Tensor> deque = {torch::ones({3}), torch::ones({3})};
  std::list<torch::Tensor> list = {torch::ones({3})};
  std::map<std::int64_t, torch::Tensor> by_number;
  std::map<std::string, torch::Tensor> by_name = {{"a", torch::ones({3})}, {"z", torch::ones({3})}};
  std::unordered_map<std::int64_t, std::int64_t> counts = {{1, 1}};
  std::set<std::int64_t> seen = {1, 1000};
  std::shared_ptr<torch::Tensor> shared = std::make_shared<torch::Tensor>(torch::ones({3}));
  std::string text = "a";
  std::string long_text = std::string(100, 'a');
  std::optional<std::pair<torch::Tensor, torch::Tensor>> state,
      full_state = std::pair(torch::ones({3}), torch::ones({3}));
  torch::Tensor last;
  torch::Tensor online = torch::full({3}, 2.0), target = torch::full({3}, 3.0);
  bool first = true;
  std::int64_t position = 0;
  float table[64] = {};
  torch::Tensor slots[4];
  std::int64_t used = 0;
};

}  // namespace fx::testing
