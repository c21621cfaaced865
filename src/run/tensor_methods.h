// Tensor methods that are no operators of their names, or whose operators take the tensor elsewhere than first.
#pragma once

#include <vector>

#include <fxgraph/run/python_calls.h>

namespace fx {

/// `.float`, `.where`: what find_python_method looks through, beside those that python_calls.cc has.
const std::vector<PythonFunction>& tensor_methods();

}  // namespace fx
