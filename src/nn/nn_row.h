// A row of a type of torch::nn: what its C++ type tells by itself, beside what a family says of it. Included by the
// families.
#pragma once

#include <torch/nn/functional/instancenorm.h>  // which modules.h uses without including it
#include <torch/nn/modules.h>

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fxgraph/nn/module_call.h>
#include <fxgraph/nn/nn_bodies.h>
#include <fxgraph/nn/nn_rows.h>
#include <fxgraph/nn/spelled_options.h>

namespace fx::internal {

using OptionBytes = std::vector<std::span<const std::byte>>;

template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

// The bytes of the options; those behind a vector's pointer too.
template <typename Impl>
OptionBytes options_of(const torch::nn::Module& module) {
  const auto& impl = dynamic_cast<const Impl&>(module);
  OptionBytes bytes;
  if constexpr (requires { impl.options; }) bytes.push_back(bytes_of(impl.options));
  if constexpr (requires { impl.options.normalized_shape(); })
    bytes.push_back(std::as_bytes(std::span(impl.options.normalized_shape())));
  return bytes;
}

// A derived class may name what RNNImplBase protects.
template <typename Impl>
struct RecurrentWeights : torch::nn::detail::RNNImplBase<Impl> {
  static std::vector<torch::Tensor>& of(Impl& module) { return module.*(&RecurrentWeights::flat_weights_); }
};

// The members of torch::nn's modules that are tensors; recurrent ones have theirs in a list.
template <typename Impl>
std::vector<torch::Tensor*> tensors_of(torch::nn::Module& module) {
  auto& impl = dynamic_cast<Impl&>(module);
  std::vector<torch::Tensor*> tensors;
  if constexpr (std::is_base_of_v<torch::nn::detail::RNNImplBase<Impl>, Impl>) {
    for (torch::Tensor& each : RecurrentWeights<Impl>::of(impl)) tensors.push_back(&each);
  }
#define FX_TENSOR(name) \
  if constexpr (requires { impl.name.unsafeGetTensorImpl(); }) tensors.push_back(&impl.name)
  FX_TENSOR(weight);
  FX_TENSOR(bias);
  FX_TENSOR(running_mean);
  FX_TENSOR(running_var);
  FX_TENSOR(num_batches_tracked);
  FX_TENSOR(weight_ih);
  FX_TENSOR(weight_hh);
  FX_TENSOR(bias_ih);
  FX_TENSOR(bias_hh);
  FX_TENSOR(in_proj_weight);
  FX_TENSOR(in_proj_bias);
  FX_TENSOR(q_proj_weight);
  FX_TENSOR(k_proj_weight);
  FX_TENSOR(v_proj_weight);
  FX_TENSOR(bias_k);
  FX_TENSOR(bias_v);
#undef FX_TENSOR
  return tensors;
}

/// The rows of one file of torch.nn.modules. What a row does not say of its mode is that the type does not follow it.
class TorchFile {
 public:
  TorchFile(TorchRows& rows, const char* file) : rows_(rows), file_(std::string("torch.nn.modules.") + file + ".") {}

  /// A type that is made with its options, which `describe` takes to hyper-parameters.
  template <typename Impl, typename Describe>
  void add(const char* name, Describe describe, ModuleType row = {}) const {
    row.cpp_options = cpp_name(name) + "Options";
    add_of<Impl>(
        name, [describe](const Impl& module) { return describe(module.options); }, std::move(row));
  }

  /// A type that is made with nothing.
  template <typename Impl>
  void add_plain(const char* name, ModuleType row = {}) const {
    add_of<Impl>(
        name, [](const Impl&) { return HyperParameters(); }, std::move(row));
  }

  /// A type that says itself what it is made with.
  template <typename Impl, typename Describe>
  void add_of(const char* name, Describe describe, ModuleType row) const {
    row.qualified_name = file_ + name;
    row.call = &call_forward<Impl>;
    row.options = &options_of<Impl>;
    row.tensors = &tensors_of<Impl>;
    if (!row.follows_mode) row.follows_mode = &is_same_in_both_modes;
    row.hyper_parameters = [describe](const torch::nn::Module& module) -> std::optional<HyperParameters> {
      return describe(dynamic_cast<const Impl&>(module));
    };
    row.cpp_type = cpp_name(name);
    row.result = result_of_forward<Impl>();
    rows_.emplace_back(typeid(Impl), std::move(row));
  }

  /// A type that graphs meet only as Python's.
  void add_name(const char* name, ModuleType row = {}) const {
    row.qualified_name = file_ + name;
    rows_.emplace_back(std::nullopt, std::move(row));
  }

 private:
  static bool is_same_in_both_modes(const torch::nn::Module&) { return false; }
  static std::string cpp_name(const char* name) { return std::string("torch::nn::") + name; }

  TorchRows& rows_;
  std::string file_;
};

}  // namespace fx::internal
