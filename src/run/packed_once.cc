#include <fxgraph/run/packed_once.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <bitset>
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

namespace {

// Which of them an object has follows from its address.
constexpr std::size_t kLocks = 64;
std::array<std::mutex, kLocks> locks;

/// Those of several objects, in one order and each once: two calls may share some of their objects.
class Locked {
 public:
  explicit Locked(const std::bitset<kLocks>& which) : which_(which) {
    for (std::size_t i = 0; i < kLocks; ++i) {
      if (which_[i]) locks[i].lock();
    }
  }
  ~Locked() {
    for (std::size_t i = 0; i < kLocks; ++i) {
      if (which_[i]) locks[i].unlock();
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const std::bitset<kLocks> which_;
};

}  // namespace

void run_alone(const TorchOperator& op, torch::jit::Stack& stack) {
  std::bitset<kLocks> mine;
  const auto add = [&](const c10::IValue& value) {
    if (value.isObject()) mine.set(reinterpret_cast<std::uintptr_t>(value.toObject().get()) / 64 % kLocks);
  };
  for (const c10::IValue& value : stack) {
    add(value);
    if (!value.isList()) continue;
    for (const c10::IValue& element : value.toListRef()) add(element);
  }
  const Locked alone(mine);
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
