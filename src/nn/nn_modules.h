// torch::nn modules of C++ as leaves: what they are called, how they compute.
//
// C++ modules have no common forward, so every type that a graph may call is listed here, once, by its exact type. The
// common ones (convolutions, normalisations, linear, activations, pools, embedding) have bodies: they become operators
// in plans, and rules read their hyper-parameters. The others are called. Types of your own:
// register_module_type<MyImpl>("my.package.My").
#pragma once

#include <ATen/core/stack.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_call.h>

namespace fx {

/// What is known of a type of modules. Only its name and its call need be.
struct ModuleType {
  std::string qualified_name;  ///< Python's: `torch.nn.modules.conv.Conv2d`
  /// Calls forward: takes the arguments from the stack and leaves the result.
  void (*call)(torch::nn::Module& module, torch::jit::Stack& stack) = nullptr;
  /// What the module computes with its present options and mode; nothing when only calling it will do. May be null.
  std::optional<Graph> (*body)(const torch::nn::Module& module) = nullptr;
  /// Where its options lie, as long as the module lives: who made something of a body watches them. May be null.
  std::vector<std::span<const std::byte>> (*options)(const torch::nn::Module& module) = nullptr;
  /// Its members that are tensors. A module computes with these, whatever is registered under their names. May be null.
  std::vector<torch::Tensor*> (*tensors)(torch::nn::Module& module) = nullptr;
};

/// The entry of `module`'s exact type, or null.
const ModuleType* find_module_type(const torch::nn::Module& module);

/// Enters a type of modules under its exact C++ type, unless it has an entry.
void add_module_type(std::type_index type, ModuleType entry);

/// Lets graphs call modules of type `Impl`; its forward must take and return what IValues hold (tensors, numbers,
/// lists, tuples).
template <typename Impl>
void register_module_type(const std::string& qualified_name) {
  add_module_type(typeid(Impl), {qualified_name, &internal::call_forward<Impl>, nullptr, nullptr, nullptr});
}

/// A LeafModule over `module`'s tensors and body; null when its type has none.
std::shared_ptr<LeafModule> leaf_from_module(const torch::nn::Module& module);

}  // namespace fx
