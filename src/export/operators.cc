#include <fxgraph/export/operators.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/ir/target.h>

namespace fx::pt2 {
namespace {

// Operators on symbolic sizes and what they are on sizes that are known while running.
struct Renamed {
  std::string_view exported;
  std::string_view own;
};
constexpr Renamed kRenamed[] = {
    {"aten::sym_size.int", "aten::size.int"},
    {"aten::sym_size", "aten::size"},
    {"aten::sym_stride.int", "aten::stride.int"},
    {"aten::sym_stride", "aten::stride"},
    {"aten::sym_numel", "aten::numel"},
    {"aten::sym_storage_offset", "aten::storage_offset"},
    {"aten::_assert_scalar", "torch._assert"},
    {"aten::_assert_async.msg", "torch._assert"},
    {"torch._sym_sqrt", "math.sqrt"},
};

// SymPy's functions, and what only calls are (contract/arithmetic.h).
constexpr std::pair<std::string_view, std::string_view> kFunctions[] = {
    {"Add", "_operator.add"},
    {"Sub", "_operator.sub"},
    {"Mul", "_operator.mul"},
    {"Neg", "_operator.neg"},
    {"FloorDiv", "_operator.floordiv"},
    {"Mod", "_operator.mod"},
    {"PythonMod", "_operator.mod"},
    {"TrueDiv", "_operator.truediv"},
    {"Power", "_operator.pow"},
    {"FloatPow", "_operator.pow"},
    {"LShift", "_operator.lshift"},
    {"RShift", "_operator.rshift"},
    {"Min", "torch.sym_min"},
    {"Max", "torch.sym_max"},
    {"ToFloat", "torch.sym_float"},
    {"TruncToInt", "torch.sym_int"},
    {"Sqrt", "torch._sym_sqrt"},
    {"Equality", "_operator.eq"},
    {"Unequality", "_operator.ne"},
    {"GreaterThan", "_operator.ge"},
    {"LessThan", "_operator.le"},
    {"StrictGreaterThan", "_operator.gt"},
    {"StrictLessThan", "_operator.lt"},
    {"And", "_operator.and_"},
    {"Or", "_operator.or_"},
    {"Not", "torch.sym_not"},
    {"torch.sym_ite", "torch.sym_ite"},
};

}  // namespace

const TorchOperator* find_exported_operator(Symbol target) {
  if (const TorchOperator* known = find_torch_operator(target)) return known;
  for (const TorchOperator* overload : torch_overloads(target)) {
    if (overload->schema->overload_name().empty() && overload->schema->name() == target.view()) return overload;
  }
  return nullptr;
}

Symbol target_of(const std::string& text) {
  const Symbol target = canonical_target(Symbol(text));  // `_operator.add` is `operator.add`
  const auto* row = std::ranges::find(kRenamed, target.view(), &Renamed::exported);
  return row == std::end(kRenamed) ? target : Symbol(row->own);
}

std::string python_number_call(const Node& node) {
  const std::string_view target = node.target().view();
  const auto* row = std::ranges::find(kRenamed, target, &Renamed::own);
  if (row != std::end(kRenamed)) return target_text(Symbol(row->exported));
  if (target == "operator.pos") return "_operator.pos";
  if (target == "math.trunc") return std::string(target);
  const bool is_of_list = !node.args().empty() && node.arg(0).is_sequence();
  const bool is_of_many = node.args().size() > 2 && target != "torch.sym_ite";
  return is_of_list || is_of_many ? std::string() : std::string(python_function(arithmetic_of(node.target())));
}

std::string_view python_function(std::string_view function) {
  const auto* row = std::ranges::find(kFunctions, function, &std::pair<std::string_view, std::string_view>::first);
  return row == std::end(kFunctions) ? std::string_view() : row->second;
}

}  // namespace fx::pt2
