#include <fxgraph/trace/dispatch.h>

#include <torch/library.h>

#include <vector>

#include <fxgraph/trace/gradient_hooks.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

thread_local Session* current_session = nullptr;

// The session of the first proxy among the arguments, or null.
Session* session_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const ProxyImpl* proxy = proxy_impl(value.toTensor());
    return proxy ? proxy->session().get() : nullptr;
  }
  if (!value.isList()) return nullptr;
  for (const c10::IValue& element : value.toListRef()) {
    if (Session* session = session_of(element)) return session;
  }
  return nullptr;
}

Session* session_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (Session* session = session_of(stack[i])) return session;
  }
  return nullptr;
}

// Runs for every operator on a proxy, and for every operator at all in a thread that traces.
void trace_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Session* session = current_session ? current_session : session_of(op, *stack);
  c10::impl::ExcludeDispatchKeyGuard below(kTraceKeys);
  if (!session) return op.callBoxed(stack);  // a helper thread that inherited the mode
  session->record(op, *stack);
}

}  // namespace

void install_dispatch() {
  // Never taken back: LibTorch's dispatcher may be gone when static objects of the program end.
  static const auto* const libraries = [] {
    auto* result = new std::vector<torch::Library>;
    for (const c10::DispatchKey key : {kProxyKey, kModeKey}) {
      result->emplace_back(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
      result->back().fallback(torch::CppFunction::makeFromBoxedFunction<&trace_operator>());
    }
    return result;
  }();
  (void)libraries;
  install_gradient_hooks();
}

RecordingScope::RecordingScope(Session& session) : outer_(current_session), mode_(kModeKey) {
  current_session = &session;
}

RecordingScope::~RecordingScope() { current_session = outer_; }

void RecordingScope::refused(const std::string& message) {
  if (current_session) current_session->note_refused(message);
}

}  // namespace fx::internal
