#include <fxgraph/trace/trace_error.h>

#include <fxgraph/trace/dispatch.h>

namespace fx::internal {

Error trace_error(const Node* node, std::string_view call, std::string_view explanation) {
  std::string name = node ? node->name() : std::string();
  std::string message = node ? "%" + name : std::string("a traced tensor");
  message.append(": ").append(call).append(" ").append(explanation);
  return Error(ErrorKind::trace, message, std::move(name));
}

namespace {

// The program may catch it.
Error question(Error error) {
  RecordingScope::refused(error.message());
  return error;
}

}  // namespace

Error unknown_shape(const Node* node, std::string_view call) {
  const std::string why =
      RecordingScope::has_examples()
          ? "depends on the data of the inputs, and a traced tensor has none; keep what follows from "
            "it in tensors, or hide the code behind an operator of your own (TORCH_LIBRARY), which is "
            "recorded whole"
          : "asks for what " + std::string(kOnlyExamplesTell);
  return question(trace_error(node, call, why));
}

Error no_data(const Node* node, std::string_view call) {
  return question(trace_error(
      node, call,
      "asks for data, and a traced tensor has none; keep the choice in tensors (torch::where), or hide the code "
      "behind an operator of your own (TORCH_LIBRARY), which is recorded whole"));
}

Error gradient_question(const Node* node) {
  return question(trace_error(
      node, "requires_grad()",
      "is the caller's to say, run by run, and a graph cannot choose by it; trace each way of the program by itself, "
      "or choose by an argument"));
}

Error history_question(const Node* node, std::string_view call) {
  return question(trace_error(
      node, call,
      "asks how a tensor came about, which a graph does not keep; choose by sizes, by types or by an argument"));
}

Error order_of_threads() {
  return Error(ErrorKind::trace,
               "symbolic_trace: the program runs operators in several threads, in another order each time; run them "
               "one after the other, or trace what each thread does by itself");
}

std::optional<Error> unknown_type_error(const std::exception& error) {
  const std::string_view text = error.what();
  if (text.find("Unsupported TypeMeta") == std::string_view::npos) return std::nullopt;
  return text.find("data_ptr") == std::string_view::npos ? unknown_shape(nullptr, "dtype()")
                                                         : no_data(nullptr, "data_ptr()");
}

}  // namespace fx::internal
