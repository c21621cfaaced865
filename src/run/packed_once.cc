#include <fxgraph/run/packed_once.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace fx {

bool is_packing(const c10::FunctionSchema& schema) {
  if (schema.returns().size() != 1 || schema.is_vararg() || schema.is_varret()) return false;
  const auto* type = schema.returns()[0].type()->castRaw<c10::ClassType>();
  return type && type->name() && type->name()->qualifiedName().starts_with("__torch__.torch.classes.");
}

bool keeps_state(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.type()->str().find("torch.classes.xnnpack.") != std::string::npos;
  });
}

void run_alone(const TorchOperator& op, torch::jit::Stack& stack) {
  static std::array<std::mutex, 64> locks;  // which of them an object has follows from its address
  std::vector<std::size_t> mine;
  const auto add = [&](const c10::IValue& value) {
    if (value.isObject()) mine.push_back(reinterpret_cast<std::uintptr_t>(value.toObject().get()) / 64 % locks.size());
  };
  for (const c10::IValue& value : stack) {
    add(value);
    if (!value.isList()) continue;
    for (const c10::IValue& element : value.toListRef()) add(element);
  }
  // In one order, and each once: two calls may share some of their objects.
  std::ranges::sort(mine);
  const auto doubled = std::ranges::unique(mine);
  mine.erase(doubled.begin(), doubled.end());
  std::vector<std::unique_lock<std::mutex>> held;
  for (const std::size_t each : mine) held.emplace_back(locks[each]);
  op(stack);
}

bool PackedOnce::is_current() const {
  if (packed_.isNone()) return false;
  std::size_t next = 0;
  for (const c10::IValue& argument : arguments_) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    const at::Tensor& tensor = argument.toTensor();
    if (tensor.is_inference() || tensor.unsafeGetTensorImpl()->version_counter().current_version() != versions_[next++])
      return false;
  }
  return true;
}

c10::IValue PackedOnce::get() {
  const std::lock_guard lock(mutex_);
  if (is_current()) return packed_;
  versions_.clear();
  for (const c10::IValue& argument : arguments_) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    const at::Tensor& tensor = argument.toTensor();
    versions_.push_back(tensor.is_inference() ? 0 : tensor.unsafeGetTensorImpl()->version_counter().current_version());
  }
  const at::NoGradGuard no_grad;
  torch::jit::Stack stack(arguments_.begin(), arguments_.end());
  pack_(stack);
  packed_ = std::move(stack.back());
  return packed_;
}

}  // namespace fx
