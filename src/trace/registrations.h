// Registrations: what a module and those below it have registered, remembered and put back.
//
// A forward that makes its layers when it sees the first input registers them then. The members in which it keeps them
// are put back, too: pointers and vectors of pointers to new modules in the objects that are looked at.
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
  /// The modules that have been registered since.
  std::vector<std::shared_ptr<torch::nn::Module>> new_modules() const;
  void restore() const;

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
  static void restore(torch::nn::Module& module, const Tensors& before, const Tensors& now, bool is_parameter);

  std::vector<Entry> entries_;
};

}  // namespace fx::internal
