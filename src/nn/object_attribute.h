// ObjectAttribute: an attribute of a program that is no tensor and no module, such as the packed weights of a quantized
// layer: an object of one of TorchScript's custom classes.
//
// It lies in the module tree under its path, and get_attr of that path is the object. The object does not change;
// copies of the program share it. TorchScript files keep it.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>

#include <fxgraph/nn/torch_compat.h>

namespace fx {

class ObjectAttribute : public torch::nn::Module {
 public:
  explicit ObjectAttribute(c10::IValue value) : torch::nn::Module("ObjectAttribute"), value_(std::move(value)) {}
  const c10::IValue& value() const { return value_; }

  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& = {}) const override {
    return std::make_shared<ObjectAttribute>(value_);
  }
  /// State: the object itself, as TorchScript writes it.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  c10::IValue value_;
};

/// The object at `path` below `root`; null when there is none.
const c10::IValue* find_object(const torch::nn::Module& root, const std::string& path);

}  // namespace fx
