// Arithmetic on sizes and other numbers, as Python calls it. Thread-safety: pure.
#pragma once

#include <fxgraph/support/symbol.h>

namespace fx::pt2 {

/// `_operator.add` for `aten::add.int`; null for what is no arithmetic on numbers, or has no name in Python's schema.
const char* python_number_call(Symbol target);

}  // namespace fx::pt2
