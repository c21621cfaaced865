// What LibTorch's kernels read or write beyond tensors, without a word, where others say what does not fit.
//
//   recurrent networks      with a state of another number of sequences, or weights of other sizes
//   median, nanmedian       along a dimension of an expanded tensor (LibTorch 1.13)
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace fx {

/// Before such a kernel is called with them: throws c10::Error where the arguments do not fit each other, and puts a
/// contiguous copy in the place of an expanded tensor. Of any other operator it looks at the name.
void make_safe(const c10::FunctionSchema& schema, c10::IValue* arguments);

}  // namespace fx
