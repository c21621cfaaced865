// Python's functions written in C++: what they are given too little of, they refuse.
#include <fxgraph/run/python_calls.h>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/run/value.h>
#include "tests/support/error_of.h"

namespace fx::python_calls_test {

using ::testing::HasSubstr;

TEST(PythonCalls, WithTooFewValuesAreRefused) {
  for (const char* target : {"operator.getitem",
                             "operator.setitem",
                             "builtins.getattr",
                             "builtins.len",
                             "builtins.float",
                             "operator.is_",
                             "torch._assert",
                             "torch.sym_max",
                             "torch.sym_min",
                             "torch.sym_ite",
                             "torch._sym_sqrt",
                             "torch.unique",
                             "higher_order::cond",
                             "higher_order::while_loop",
                             "higher_order::map_impl",
                             "higher_order::scan",
                             "higher_order::associative_scan",
                             "higher_order::wrap_with_set_grad_enabled",
                             "higher_order::wrap_with_autocast",
                             "higher_order::invoke_subgraph",
                             "higher_order::wrap",
                             "higher_order::strict_mode",
                             "higher_order::tag_activation_checkpoint"}) {
    const PythonFunction* function = find_python_function(Op::call_function, target);
    ASSERT_TRUE(function) << target;
    ASSERT_GT(function->least, 0u) << target;
    for (std::size_t given = 0; given < function->least; ++given) {
      std::vector<c10::IValue> values(given, c10::IValue(true));
      EXPECT_THAT(testing::error_of([&] { function->call(values); }),
                  HasSubstr(std::string(target) + " takes " + std::to_string(function->least)));
    }
  }
}

// LibTorch looks for a first size, and finds what lies there: here the one that was.
TEST(PythonCalls, SlicesOfATensorWithoutDimensionsAreRefused) {
  for (const int end : {0, 1, 3}) {
    const at::Tensor x = at::ones({end}).resize_(at::IntArrayRef());
    const c10::IValue slice = make_slice({}, end, {});
    std::vector<c10::IValue> read{x, slice}, write{x, slice, 7};
    EXPECT_THAT(testing::error_of([&] { find_python_function(Op::call_function, "operator.getitem")->call(read); }),
                HasSubstr("cannot be applied to a 0-dim tensor"));
    EXPECT_THAT(testing::error_of([&] { find_python_function(Op::call_function, "operator.setitem")->call(write); }),
                HasSubstr("cannot be applied to a 0-dim tensor"));
  }
}

}  // namespace fx::python_calls_test
