// Each node of an autograd graph takes a number of its thread when it is made. Operators that are traced make none:
// they are caught above autograd. So a number that is gone says that the program has made a node of its own.
#include <fxgraph/trace/program_modes.h>

#include <ATen/SequenceNumber.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <fxgraph/run/autocast_scope.h>
#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

thread_local std::uint64_t autograd_nodes = 0;
thread_local int depth = 0;                   // of traces in this thread
thread_local caffe2::TypeMeta default_dtype;  // where the outermost begins

// Whether operators go by autograd: inside of AutoDispatchBelowAutograd and its like, as kernels of one's own are.
bool is_below_autograd() {
  return c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradFunctionality);
}

bool has_made_node() { return depth > 0 && at::sequence_number::peek() != autograd_nodes; }

[[noreturn]] void refuse_function() {
  throw trace_error(nullptr, "autograd::Function::apply()",
                    "has a backward of its own, which a graph cannot hold; make the call an operator with fx::wrap, "
                    "which is recorded whole, gradient and all");
}

}  // namespace

ProgramModes::ProgramModes()
    : autocast_(AutocastScope::is_enabled(c10::DeviceType::CUDA)),
      autocast_cpu_(AutocastScope::is_enabled(c10::DeviceType::CPU)),
      below_autograd_(is_below_autograd()) {}

bool ProgramModes::enter(bool takes_values) {
  if (has_made_node()) {
    autograd_nodes = at::sequence_number::peek();
    inside_known_function_ = caller_is_differentiable();
    if (!inside_known_function_) refuse_function();
  }
  if (depth > 0 && c10::get_default_dtype() != default_dtype) {
    throw trace_error(nullptr, "set_default_dtype()",
                      "is called inside the program, which a graph cannot hold; say the dtype where it is wanted");
  }
  if (depth > 0 && (AutocastScope::is_enabled(c10::DeviceType::CUDA) != autocast_ ||
                    AutocastScope::is_enabled(c10::DeviceType::CPU) != autocast_cpu_)) {
    throw trace_error(nullptr, "autocast",
                      "is switched inside the program, which a graph cannot hold; cast where it is wanted, or switch "
                      "autocast around the whole call");
  }
  if (at::GradMode::is_enabled()) {
    inside_known_function_ = false;
    return takes_values && !below_autograd_ && is_below_autograd();  // LibTorch calls its factories there, too
  }
  inside_known_function_ = inside_known_function_ && caller_is_differentiable();
  return !inside_known_function_;
}

bool ProgramModes::inside_function() const { return inside_known_function_ || has_made_node(); }

void ProgramModes::end() {
  if (has_made_node()) refuse_function();
}

void ProgramModes::leave() { autograd_nodes = at::sequence_number::peek(); }

WithGradients::WithGradients() : before_(at::GradMode::is_enabled()) {
  at::GradMode::set_enabled(true);
  if (depth++ == 0) default_dtype = c10::get_default_dtype();
  autograd_nodes = at::sequence_number::peek();
}

WithGradients::~WithGradients() {
  at::GradMode::set_enabled(before_);
  --depth;
  autograd_nodes = at::sequence_number::peek();
}

}  // namespace fx::internal
