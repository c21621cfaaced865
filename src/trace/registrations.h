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
#include <string_view>
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
  /// A module, a parameter or a buffer.
  struct Item {
    const char* kind;
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    torch::Tensor tensor;
    bool is_named_as(const Item& other) const { return std::string_view(kind) == other.kind && name == other.name; }
    bool operator==(const Item& other) const {
      return is_named_as(other) && module == other.module && tensor.is_same(other.tensor);
    }
  };
  using Items = std::vector<Item>;
  struct Entry {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    Items items;
  };
  static Items items_of(const torch::nn::Module& module);

  std::vector<Entry> entries_;
};

}  // namespace fx::internal
