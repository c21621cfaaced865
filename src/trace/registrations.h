// Registrations: what a module and those below it have registered, and whether forward has registered anything else.
//
// A forward that makes its layers when it sees the first input registers them then. They stay: the module is as after a
// call.
//
// Cost: linear in modules and registered tensors. Thread-safety: none.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fx::internal {

class Registrations {
 public:
  /// Remembers those of `module`, which messages call `name`.
  void add(const std::shared_ptr<torch::nn::Module>& module, std::string name);

  /// `registers the module 'fc' in the module (Net)`; empty when all is as it was.
  std::string change() const;

 private:
  using Children = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;
  using Tensors = std::vector<std::pair<std::string, torch::Tensor>>;
  struct Entry {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    Children children;
    Tensors parameters, buffers;
  };
  static Children children_of(const torch::nn::Module& module);
  static Tensors parameters_of(const torch::nn::Module& module);
  static Tensors buffers_of(const torch::nn::Module& module);

  std::vector<Entry> entries_;
};

}  // namespace fx::internal
