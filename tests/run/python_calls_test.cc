// Python's functions written in C++: what they are given too little of, they refuse.
#include <fxgraph/run/python_calls.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    const PythonFunction* function = find_python_function(target);
    ASSERT_TRUE(function) << target;
    ASSERT_GT(function->least, 0u) << target;
    for (std::size_t given = 0; given < function->least; ++given) {
      std::vector<c10::IValue> values(given, c10::IValue(true));
      EXPECT_THAT(testing::error_of([&] { function->call(values); }),
                  HasSubstr(std::string(target) + " takes " + std::to_string(function->least)));
    }
  }
}

}  // namespace fx::python_calls_test
