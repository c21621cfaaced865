#include <fxgraph/run/direct_call.h>

#include <ATen/core/jit_type.h>

#include <exception>
#include <string>
#include <utility>

namespace fx::internal {
namespace {

using c10::IValue;

template <typename Type>
struct Parameter;
template <>
struct Parameter<const at::Tensor&> {
  static bool takes(const IValue& value) { return value.isTensor(); }
  static const at::Tensor& of(const IValue& value) { return value.toTensor(); }
};
template <>
struct Parameter<const at::Scalar&> {
  static bool takes(const IValue& value) { return value.isScalar(); }
  static at::Scalar of(const IValue& value) { return value.toScalar(); }
};

template <typename... Parameters>
class Call final : public DirectCall {
 public:
  using Function = at::Tensor(Parameters...);
  explicit Call(const c10::OperatorHandle& op) : op_(op.typed<Function>()) {}
  bool takes(const IValue* const* arguments) const override { return takes_all(arguments, kEach); }
  at::Tensor call(const IValue* const* arguments) const override { return call_with(arguments, kEach); }

 private:
  static constexpr std::index_sequence_for<Parameters...> kEach{};
  template <std::size_t... i>
  static bool takes_all(const IValue* const* arguments, std::index_sequence<i...>) {
    return (Parameter<Parameters>::takes(*arguments[i]) && ...);
  }
  template <std::size_t... i>
  at::Tensor call_with(const IValue* const* arguments, std::index_sequence<i...>) const {
    return op_.call(Parameter<Parameters>::of(*arguments[i])...);
  }
  c10::TypedOperatorHandle<Function> op_;
};

/// Writes over its first argument, a tensor, and returns it.
template <typename... Parameters>
class CallInPlace final : public DirectCall {
 public:
  using Function = at::Tensor&(at::Tensor&, Parameters...);
  explicit CallInPlace(const c10::OperatorHandle& op) : op_(op.typed<Function>()) {}
  bool takes(const IValue* const* arguments) const override {
    return arguments[0]->isTensor() && takes_all(arguments, kEach);
  }
  at::Tensor call(const IValue* const* arguments) const override { return call_with(arguments, kEach); }

 private:
  static constexpr std::index_sequence_for<Parameters...> kEach{};
  template <std::size_t... i>
  static bool takes_all([[maybe_unused]] const IValue* const* arguments, std::index_sequence<i...>) {
    return (Parameter<Parameters>::takes(*arguments[i + 1]) && ...);
  }
  template <std::size_t... i>
  at::Tensor call_with(const IValue* const* arguments, std::index_sequence<i...>) const {
    at::Tensor self = arguments[0]->toTensor();
    op_.call(self, Parameter<Parameters>::of(*arguments[i + 1])...);
    return self;
  }
  c10::TypedOperatorHandle<Function> op_;
};

// `TTS` for (Tensor, Tensor, Scalar) -> Tensor, `!TS` when the first is written and returned; empty for anything else.
std::string signature_of(const c10::FunctionSchema& schema) {
  const auto writes = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  if (schema.returns().size() != 1 || schema.is_vararg() || schema.is_varret()) return {};
  const c10::Argument& result = schema.returns()[0];
  if (result.type()->kind() != c10::TypeKind::TensorType) return {};
  std::string signature;
  for (const c10::Argument& argument : schema.arguments()) {
    if (writes(argument)) {
      if (!signature.empty() || !writes(result) || argument.type()->kind() != c10::TypeKind::TensorType) return {};
      signature = "!";
      continue;
    }
    switch (argument.type()->kind()) {
      case c10::TypeKind::TensorType: signature += 'T'; break;
      case c10::TypeKind::NumberType: signature += 'S'; break;
      default: return {};
    }
  }
  return writes(result) == signature.starts_with('!') ? signature : std::string();
}

}  // namespace

std::shared_ptr<const DirectCall> direct_call(const c10::OperatorHandle& op) {
  using T = const at::Tensor&;
  using S = const at::Scalar&;
  const std::string signature = signature_of(op.schema());
  try {
    if (signature == "T") return std::make_shared<Call<T>>(op);
    if (signature == "TT") return std::make_shared<Call<T, T>>(op);
    if (signature == "TS") return std::make_shared<Call<T, S>>(op);
    if (signature == "TTT") return std::make_shared<Call<T, T, T>>(op);
    if (signature == "TTS") return std::make_shared<Call<T, T, S>>(op);
    if (signature == "TSS") return std::make_shared<Call<T, S, S>>(op);
    if (signature == "TTTSS") return std::make_shared<Call<T, T, T, S, S>>(op);
    if (signature == "!") return std::make_shared<CallInPlace<>>(op);
    if (signature == "!S") return std::make_shared<CallInPlace<S>>(op);
    if (signature == "!TS") return std::make_shared<CallInPlace<T, S>>(op);
    if (signature == "!T") return std::make_shared<CallInPlace<T>>(op);
  } catch (const std::exception&) {  // registered with other C++ types
  }
  return nullptr;
}

}  // namespace fx::internal
