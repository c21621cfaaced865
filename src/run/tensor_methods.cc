#include <fxgraph/run/tensor_methods.h>

#include <ATen/core/Tensor.h>

#include <utility>

#include <fxgraph/run/call.h>

namespace fx {
namespace {

using c10::IValue;
using Args = std::vector<IValue>;

template <at::ScalarType type>
IValue to_type(Args& args) {
  return args[0].toTensor().to(type);
}

// x.where(condition, other) is where(condition, x, other).
IValue where(Args& args) {
  static const Symbol kWhere("torch.where");
  return call_function_target(kWhere, {{args[1], args[0], args[2]}, {}});
}

// x.polygamma(n) is polygamma(n, x).
IValue polygamma(Args& args) {
  static const Symbol kPolygamma("torch.polygamma");
  return call_function_target(kPolygamma, {{args[1], args[0]}, {}});
}

}  // namespace

const std::vector<PythonFunction>& tensor_methods() {
  static const auto& table = *new std::vector<PythonFunction>{
      {".float", {"self"}, to_type<at::kFloat>},
      {".double", {"self"}, to_type<at::kDouble>},
      {".half", {"self"}, to_type<at::kHalf>},
      {".bfloat16", {"self"}, to_type<at::kBFloat16>},
      {".long", {"self"}, to_type<at::kLong>},
      {".int", {"self"}, to_type<at::kInt>},
      {".short", {"self"}, to_type<at::kShort>},
      {".byte", {"self"}, to_type<at::kByte>},
      {".bool", {"self"}, to_type<at::kBool>},
      {".char", {"self"}, to_type<at::kChar>},
      {".type",
       {"self", "dtype"},
       [](Args& args) { return IValue(args[0].toTensor().to(static_cast<at::ScalarType>(args[1].toInt()))); }},
      {".nelement", {"self"}, [](Args& args) { return IValue(args[0].toTensor().numel()); }},
      {".ndimension", {"self"}, [](Args& args) { return IValue(args[0].toTensor().dim()); }},
      {".cpu", {"self"}, [](Args& args) { return IValue(args[0].toTensor().cpu()); }},
      {".numel", {"self"}, [](Args& args) { return IValue(args[0].toTensor().numel()); }},
      {".type_as",
       {"self", "other"},
       [](Args& args) { return IValue(args[0].toTensor().to(args[1].toTensor().scalar_type())); }},
      {".where", {"self", "condition", "other"}, where},
      {".polygamma", {"self", "n"}, polygamma},
  };
  return table;
}

}  // namespace fx
