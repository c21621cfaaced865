#include <fxgraph/export/number_calls.h>

#include <string>

#include <fxgraph/contract/arithmetic.h>

namespace fx::pt2 {
namespace {

struct NumberCall {
  const char* target;
  const char* python;
};
constexpr NumberCall kNumberCalls[] = {
    {"aten::size.int", "torch.ops.aten.sym_size.int"},
    {"aten::stride.int", "torch.ops.aten.sym_stride.int"},
    {"aten::numel", "torch.ops.aten.sym_numel.default"},
    {"aten::storage_offset", "torch.ops.aten.sym_storage_offset.default"},
    {"aten::add.int", "_operator.add"},
    {"aten::sub.int", "_operator.sub"},
    {"aten::mul.int", "_operator.mul"},
    {"aten::floordiv.int", "_operator.floordiv"},
    {"aten::remainder.int", "_operator.mod"},
    {"aten::neg.int", "_operator.neg"},
    {"aten::div.int", "_operator.truediv"},
    {"aten::mul.float", "_operator.mul"},
    {"aten::mul.float_int", "_operator.mul"},
    {"aten::mul.int_float", "_operator.mul"},
    {"aten::div.float", "_operator.truediv"},
    {"aten::add.float", "_operator.add"},
    {"aten::add.float_int", "_operator.add"},
    {"aten::add.int_float", "_operator.add"},
    {"aten::sub.float", "_operator.sub"},
    {"aten::sub.float_int", "_operator.sub"},
    {"aten::sub.int_float", "_operator.sub"},
    {"aten::eq.int", "_operator.eq"},
    {"aten::ne.int", "_operator.ne"},
    {"aten::ge.int", "_operator.ge"},
    {"aten::le.int", "_operator.le"},
    {"aten::gt.int", "_operator.gt"},
    {"aten::lt.int", "_operator.lt"},
    {"prim::max.int", "torch.sym_max"},
    {"torch.sym_max", "torch.sym_max"},
    {"torch.sym_min", "torch.sym_min"},
    {"torch.sym_float", "torch.sym_float"},
    {"torch.sym_int", "torch.sym_int"},
    {"torch.sym_not", "torch.sym_not"},
    {"prim::min.int", "torch.sym_min"},
    {"aten::Float.int", "torch.sym_float"},
    {"builtins.float", "torch.sym_float"},
    {"aten::Int.float", "torch.sym_int"},
    {"builtins.int", "torch.sym_int"},
    {"math.sqrt", "torch._sym_sqrt"},
    {"math.trunc", "math.trunc"},
    {"torch._sym_sqrt", "torch._sym_sqrt"},
    {"torch.sym_ite", "torch.sym_ite"},
    {"aten::sqrt.float", "torch._sym_sqrt"},
    {"aten::pow.float", "_operator.pow"},
    {"aten::pow.float_int", "_operator.pow"},
    {"aten::pow.int_float", "_operator.pow"},
    {"aten::__and__.bool", "_operator.and_"},
    {"aten::__or__.bool", "_operator.or_"},
    {"operator.__not__", "torch.sym_not"},
    {"operator.not_", "torch.sym_not"},
    {"operator.__lshift__", "_operator.lshift"},
    {"operator.__rshift__", "_operator.rshift"},
    {"operator.lshift", "_operator.lshift"},
    {"operator.rshift", "_operator.rshift"},
    {"operator.pos", "_operator.pos"},
    {"operator.div", "_operator.truediv"},
    {"operator.sqrt", "torch._sym_sqrt"},
    {"aten::Int.Scalar", "torch.sym_int"},
    {"aten::Float.Scalar", "torch.sym_float"},
    {"operator.add", "_operator.add"},
    {"operator.sub", "_operator.sub"},
    {"operator.mul", "_operator.mul"},
    {"operator.floordiv", "_operator.floordiv"},
    {"operator.mod", "_operator.mod"},
    {"operator.neg", "_operator.neg"},
    {"operator.truediv", "_operator.truediv"},
    {"operator.pow", "_operator.pow"},
    {"operator.eq", "_operator.eq"},
    {"operator.ne", "_operator.ne"},
    {"operator.ge", "_operator.ge"},
    {"operator.le", "_operator.le"},
    {"operator.gt", "_operator.gt"},
    {"operator.lt", "_operator.lt"},
    {"operator.and_", "_operator.and_"},
    {"operator.or_", "_operator.or_"},
};

}  // namespace

const char* python_number_call(Symbol target) {
  const std::string name = number_operator(target);
  for (const NumberCall& row : kNumberCalls) {
    if (target == row.target || name == row.target) return row.python;
  }
  return nullptr;
}

}  // namespace fx::pt2
