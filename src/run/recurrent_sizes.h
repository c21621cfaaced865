// What LibTorch's recurrent networks leave unchecked: with a state of another number of sequences, or weights of other
// sizes, their kernels read and write beyond tensors where other operators say that sizes do not fit.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace fx {

/// Throws c10::Error when `schema` is that of a recurrent network and its tensors do not fit each other. Of any other
/// operator it looks at the name.
void check_recurrent_sizes(const c10::FunctionSchema& schema, const c10::IValue* arguments);

}  // namespace fx
