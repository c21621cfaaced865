// The messages of programs that cannot be traced: what was asked of which node, and what to do instead.
#pragma once

#include <string>
#include <string_view>

#include "ir/node.h"
#include "support/error.h"

namespace fx::internal {

/// `%relu: item() <explanation>`. `node` may be null.
Error trace_error(const Node* node, std::string_view call, std::string_view explanation);

/// For questions about shape, device or layout in a trace without example inputs.
Error unknown_shape(const Node* node, std::string_view call);

/// For questions about data.
Error no_data(const Node* node, std::string_view call);

}  // namespace fx::internal
