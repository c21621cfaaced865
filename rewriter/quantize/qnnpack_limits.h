// What QNNPACK refuses when a call runs, and prints about to standard error before it throws: known beforehand.
//
// Thread-safety: none; the node is read.
#pragma once

#include <string>

#include <fxgraph/ir/node.h>

namespace fx::quantize {

/// Why QNNPACK, when it is the engine that is set, refuses `kernel`, a call on quantized values; empty when it takes it
/// or when a scale is not known.
std::string qnnpack_fault(const Node& kernel);

}  // namespace fx::quantize
