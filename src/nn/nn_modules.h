// torch::nn modules of C++ as leaves: what they are called, how they compute, how generated code makes them.
//
// C++ modules have no common forward, so every type that a graph may call has a row, once, by its exact type. The
// common ones (convolutions, normalisations, linear, activations, pools, embedding) have bodies: they become operators
// in plans, and rules read their hyper-parameters. The others are called. Types of your own fill the same row, as far
// as they like:
//
//   fx::register_module_type<ScaleImpl>("mine.Scale");  // graphs can call it
//   fx::register_module_type<ScaleImpl>(
//       "mine.Scale", {.effects = [](const ScaleImpl&) { return fx::NodeEffects(); },  // draws and writes nothing
//                      .follows_mode = [](const ScaleImpl&) { return false; },
//                      .hyper_parameters = [](const ScaleImpl& module) -> fx::HyperParameters {
//                        return {{.name = "by", .value = module.by, .by_position = true}};
//                      },
//                      .cpp_type = "mine::Scale",
//                      .cpp_header = "mine/scale.h"});  // generated C++ and Python make one, too
//
// Thread-safety: all may be called at once.
#pragma once

#include <string>
#include <string_view>
#include <typeindex>
#include <utility>

#include <fxgraph/nn/module_call.h>
#include <fxgraph/nn/module_type.h>

namespace fx {

/// The row of `module`'s exact type, or null. It stays where it is.
const ModuleType* find_module_type(const torch::nn::Module& module);

/// The row of Python's type of that name, `torch.nn.modules.conv.Conv2d`, or null; types of torch.nn are also found by
/// `Conv2d` alone, and some of them have no type in C++.
const ModuleType* find_module_type(std::string_view name);

/// Adds a row, unless `type` has one.
void add_module_type(std::type_index type, ModuleType row);

/// Lets graphs call modules of type `Impl`; its forward must take and return what IValues hold (tensors, numbers,
/// lists, tuples). The first row of a type stands.
template <typename Impl>
void register_module_type(const std::string& qualified_name, ModuleRow<Impl> row = {}) {
  row.qualified_name = qualified_name;
  if (!row.call) row.call = &internal::call_forward<Impl>;
  if (!row.result) row.result = internal::result_of_forward<Impl>();
  add_module_type(typeid(Impl), internal::of_any(std::move(row)));
}

/// A LeafModule over `module`'s tensors and body; null when its type has none.
std::shared_ptr<LeafModule> leaf_from_module(const torch::nn::Module& module);

}  // namespace fx
