// Programs of several inputs whose sizes are tied by more than equality, for tests of what becomes of ties.
#pragma once

#include <torch/torch.h>

namespace fx::testing::tied {

inline torch::Tensor twice(torch::Tensor x, torch::Tensor y) {
  return x.unsqueeze(1).expand({-1, 2}).reshape({-1}) * y;
}
inline torch::Tensor relative_positions(torch::Tensor scores, torch::Tensor table) {
  return scores + table.unfold(0, scores.size(0), 1);
}
inline torch::Tensor patches(torch::Tensor image, torch::Tensor y) {
  const torch::Tensor tokens = torch::max_pool2d(image, 4).flatten(2).transpose(1, 2);
  return torch::cat({torch::zeros({tokens.size(0), 1, tokens.size(2)}), tokens}, 1) + y;
}
/// Attention over what is cached and what is new, under a mask.
inline torch::Tensor cached(torch::Tensor x, torch::Tensor before, torch::Tensor mask) {
  const torch::Tensor all = torch::cat({before, x}, 1);
  return torch::softmax(x.matmul(all.transpose(1, 2)) + mask, -1).matmul(all);
}
inline torch::Tensor frames(torch::Tensor x, torch::Tensor y) {
  namespace F = torch::nn::functional;
  return F::pad(x, F::PadFuncOptions({10, 10})).unfold(1, 20, 10).mean(-1) * y;
}

}  // namespace fx::testing::tied
