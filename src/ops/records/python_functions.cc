#include <fxgraph/ops/records/python_functions.h>

namespace fx::internal {

namespace {

using Task = PythonTask;

// clang-format off
constexpr PythonSignature kSignatures[] = {
    {"operator.getitem", Task::take_item, {"a", "b"}},
    {".__getitem__", Task::take_item, {"self", "index"}},
    {"operator.setitem", Task::set_item, {"a", "b", "c"}},
    {".__setitem__", Task::set_item, {"self", "index", "value"}},
    {"builtins.getattr", Task::read_attribute, {"object", "name"}},
    {"getattr", Task::read_attribute, {"object", "name"}},
    {"builtins.len", Task::length, {"obj"}},
    {"len", Task::length, {"obj"}},
    {"builtins.int", Task::to_int, {"x"}},
    {"math.trunc", Task::to_int, {"x"}},
    {"torch.sym_int", Task::to_int, {"a"}},
    {"builtins.float", Task::to_float, {"x"}},
    {"torch.sym_float", Task::to_float, {"a"}},
    {"builtins.bool", Task::to_bool, {"x"}},
    {"operator.truth", Task::to_bool, {"a"}},
    {"operator.not_", Task::negate, {"a"}},
    {"torch.sym_not", Task::negate, {"a"}},
    {"operator.floordiv", Task::divide_down, {"a", "b"}},
    {"operator.ifloordiv", Task::divide_down, {"a", "b"}},
    {"operator.pow", Task::power, {"a", "b"}},
    {"operator.ipow", Task::power, {"a", "b"}},
    {"operator.pos", Task::keep_number, {"a"}},
    {"operator.inv", Task::invert_bits, {"a"}},
    {"operator.invert", Task::invert_bits, {"a"}},
    {"operator.is_", Task::is_same, {"a", "b"}},
    {"operator.is_not", Task::is_other, {"a", "b"}},
    {"torch.jit.isinstance", Task::is_instance, {"obj", "target_type"}},
    {"torch._assert", Task::check, {"condition", "message"}, 1},
    {"torch.sym_max", Task::larger, {"a", "b"}},
    {"torch.sym_min", Task::smaller, {"a", "b"}},
    {"torch.sym_ite", Task::choose, {"b", "t", "f"}},
    {"torch.unique", Task::unique, {"input", "sorted", "return_inverse", "return_counts", "dim"}, 4},
    {".unique", Task::unique, {"self", "sorted", "return_inverse", "return_counts", "dim"}, 4},
    {"torch.unique_consecutive", Task::unique_consecutive, {"input", "return_inverse", "return_counts", "dim"}, 3},
    {".unique_consecutive", Task::unique_consecutive, {"self", "return_inverse", "return_counts", "dim"}, 3},
    {"torch._sym_sqrt", Task::square_root, {"a"}},
    {"math.sqrt", Task::square_root, {"x"}},
    {"math.exp", Task::exponential, {"x"}},
    {"math.log", Task::logarithm, {"x"}},
    {"math.floor", Task::round_down, {"x"}},
    {"math.ceil", Task::round_up, {"x"}},
};
// clang-format on

}  // namespace

std::span<const PythonSignature> python_signatures() { return kSignatures; }

}  // namespace fx::internal
