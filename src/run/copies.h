// Copies of values, so that who runs a program on them leaves them as they are. Thread-safety: no state.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

namespace fx {

/// The value with copies of its tensors, each by itself; other objects are shared. (c10::IValue::deepcopy takes two
/// views of one storage, as in what split returns, for one tensor.)
c10::IValue copy_of(const c10::IValue& value);
/// The same for each; tensors that share memory do so in the copies.
std::vector<c10::IValue> copies_of(const std::vector<c10::IValue>& values);

}  // namespace fx
