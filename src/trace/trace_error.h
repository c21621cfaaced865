// The messages of programs that cannot be traced: what was asked of which node, and what to do instead.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/ir/node.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

/// The rest of a message about shapes and dtypes that are not known.
inline constexpr std::string_view kOnlyExamplesTell =
    "only example inputs can tell; pass them: symbolic_trace(f, {torch::rand({2, 3})})";

/// `%relu: item() <explanation>`. `node` may be null.
Error trace_error(const Node* node, std::string_view call, std::string_view explanation);

/// For questions about shape, device or layout in a trace without example inputs, or where data decide it.
Error unknown_shape(const Node* node, std::string_view call);

/// For questions about data.
Error no_data(const Node* node, std::string_view call);

/// For questions whether it requires gradients.
Error gradient_question(const Node* node);

/// For questions about what autograd notes of a tensor.
Error history_question(const Node* node, std::string_view call);

/// For programs whose threads run operators in another order in another call.
Error order_of_threads();

/// LibTorch refuses to tell the type of a tensor whose type is not known, or to give its data as some type, before it
/// asks the tensor: the error in words of tracing when `error` is that one, nothing when it is another.
std::optional<Error> unknown_type_error(const std::exception& error);

}  // namespace fx::internal
