// The dictionaries of a torch::nn::Module, which it keeps to itself: it can register tensors and modules, but has no
// way to replace or remove a tensor, to look one up without copying all, or to set the training flag of one module
// alone.
//
// An explicit instantiation may name private members; this is the language's one door, and this header is the only
// place that goes through it. It rests on the members' names and types, which are the same from LibTorch 1.5 to 2.14:
// another version fails to compile here. The instantiations have internal linkage, so that two copies of this library
// in one process do not meet.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

namespace fx::internal {
namespace {

template <typename Tag, typename Tag::Member member>
struct Open {
  friend typename Tag::Member member_of(Tag) { return member; }
};

using TensorDict = torch::OrderedDict<std::string, torch::Tensor>;
using ModuleDict = torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>;

struct Parameters {
  using Member = TensorDict torch::nn::Module::*;
  friend Member member_of(Parameters);
};
struct Buffers {
  using Member = TensorDict torch::nn::Module::*;
  friend Member member_of(Buffers);
};
struct Children {
  using Member = ModuleDict torch::nn::Module::*;
  friend Member member_of(Children);
};
struct Training {
  using Member = bool torch::nn::Module::*;
  friend Member member_of(Training);
};
template struct Open<Parameters, &torch::nn::Module::parameters_>;
template struct Open<Buffers, &torch::nn::Module::buffers_>;
template struct Open<Children, &torch::nn::Module::children_>;
template struct Open<Training, &torch::nn::Module::is_training_>;

[[maybe_unused]] TensorDict& parameters_of(torch::nn::Module& module) { return module.*member_of(Parameters()); }
[[maybe_unused]] TensorDict& buffers_of(torch::nn::Module& module) { return module.*member_of(Buffers()); }
[[maybe_unused]] const TensorDict& parameters_of(const torch::nn::Module& module) {
  return module.*member_of(Parameters());
}
[[maybe_unused]] const TensorDict& buffers_of(const torch::nn::Module& module) { return module.*member_of(Buffers()); }
[[maybe_unused]] const ModuleDict& children_of(const torch::nn::Module& module) {
  return module.*member_of(Children());
}
[[maybe_unused]] bool& training_of(torch::nn::Module& module) { return module.*member_of(Training()); }

}  // namespace
}  // namespace fx::internal
