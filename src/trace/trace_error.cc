#include "trace/trace_error.h"

namespace fx::internal {

Error trace_error(const Node* node, std::string_view call, std::string_view explanation) {
  std::string name = node ? node->name() : std::string();
  std::string message = node ? "%" + name : std::string("a traced tensor");
  message.append(": ").append(call).append(" ").append(explanation);
  return Error(ErrorKind::trace, message, std::move(name));
}

Error unknown_shape(const Node* node, std::string_view call) {
  return trace_error(node, call,
                     "asks for what only example inputs can tell; pass them: symbolic_trace(f, {torch::rand({2, 3})})");
}

Error no_data(const Node* node, std::string_view call) {
  return trace_error(
      node, call,
      "asks for data, and a traced tensor has none; keep the choice in tensors (torch::where), or hide the code "
      "behind an operator of your own (TORCH_LIBRARY), which is recorded whole");
}

}  // namespace fx::internal
