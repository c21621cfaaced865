#include <fxgraph/torchscript/reflected.h>

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <array>
#include <string_view>

namespace fx::internal {
namespace {

namespace jit = torch::jit;

struct Reflected {
  std::string_view packet;
  std::string_view on_tensor = {};     // takes the tensor first; none: the number becomes a tensor
  std::string_view tensor_first = {};  // what becomes of the tensor before
};
constexpr std::array<Reflected, 14> kReflected = {{
    {"aten::add", "aten::add"},
    {"aten::mul", "aten::mul"},
    {"aten::sub", "aten::rsub"},
    {"aten::div", "aten::mul", "aten::reciprocal"},
    {"aten::true_divide", "aten::mul", "aten::reciprocal"},
    {"aten::lt", "aten::gt"},
    {"aten::le", "aten::ge"},
    {"aten::gt", "aten::lt"},
    {"aten::ge", "aten::le"},
    {"aten::eq", "aten::eq"},
    {"aten::ne", "aten::ne"},
    {"aten::floor_divide"},
    {"aten::__lshift__"},
    {"aten::__rshift__"},
}};

jit::Value* call(jit::Graph& graph, std::string_view name, const std::vector<jit::NamedValue>& args,
                 const std::vector<jit::NamedValue>& kwargs = {}) {
  return jit::emitBuiltinCall(no_source(), graph, c10::Symbol::fromQualString(std::string(name)), args, kwargs);
}

// A scalar tensor gives way to the dtype of the other, unless it is of a higher kind: an int stays an int.
jit::Value* as_tensor(jit::Graph& graph, jit::Value* number) {
  std::vector<jit::NamedValue> dtype;
  if (number->type()->isSubtypeOf(*c10::IntType::get())) dtype.emplace_back("dtype", at::ScalarType::Long);
  return call(graph, "aten::scalar_tensor", {jit::NamedValue(number)}, dtype);
}

}  // namespace

const jit::SourceRange& no_source() {
  static const jit::SourceRange range(std::make_shared<jit::Source>(std::string("fx graph")), 0, 8);
  return range;
}

jit::Value* build_reflected(jit::Graph& graph, Symbol packet, jit::Value* left, jit::Value* right) {
  if (!left->type()->isSubtypeOf(*c10::NumberType::get()) || !right->type()->isSubtypeOf(*c10::TensorType::get())) {
    return nullptr;
  }
  for (const Reflected& row : kReflected) {
    if (packet.view() != row.packet) continue;
    if (row.on_tensor.empty())
      return call(graph, row.packet, {jit::NamedValue(as_tensor(graph, left)), jit::NamedValue(right)});
    if (!row.tensor_first.empty()) right = call(graph, row.tensor_first, {jit::NamedValue(right)});
    return call(graph, row.on_tensor, {jit::NamedValue(right), jit::NamedValue(left)});
  }
  return nullptr;
}

}  // namespace fx::internal
