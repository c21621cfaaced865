// Operators of the commonest signatures, called without a stack: what small operators spend most of their time on.
// Included by the plan's own files only.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <memory>

namespace fx::internal {

class DirectCall {
 public:
  static constexpr std::size_t kMaxArguments = 5;
  virtual ~DirectCall() = default;
  /// True when the values are of the operator's own types; where they need conversions the stack is the way.
  virtual bool takes(const c10::IValue* const* arguments) const = 0;
  virtual at::Tensor call(const c10::IValue* const* arguments) const = 0;
};

/// The direct way to call `op`; null when its signature is not one of tensors, then numbers, to one tensor, or when it
/// writes to other arguments than the first, which is then its result.
std::shared_ptr<const DirectCall> direct_call(const c10::OperatorHandle& op);

}  // namespace fx::internal
