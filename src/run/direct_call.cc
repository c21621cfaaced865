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

// `TTS` for (Tensor, Tensor, Scalar) -> Tensor; empty for anything else.
std::string signature_of(const c10::FunctionSchema& schema) {
  const auto writes = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  if (schema.returns().size() != 1 || schema.is_vararg() || schema.is_varret()) return {};
  const c10::Argument& result = schema.returns()[0];
  if (result.type()->kind() != c10::TypeKind::TensorType || writes(result)) return {};
  std::string signature;
  for (const c10::Argument& argument : schema.arguments()) {
    if (writes(argument)) return {};
    switch (argument.type()->kind()) {
      case c10::TypeKind::TensorType: signature += 'T'; break;
      case c10::TypeKind::NumberType: signature += 'S'; break;
      default: return {};
    }
  }
  return signature;
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
  } catch (const std::exception&) {  // registered with other C++ types
  }
  return nullptr;
}

}  // namespace fx::internal
