// Calls that write what they return (`max_out`), recorded as what returns it and what writes it.
#include <algorithm>

#include <fxgraph/run/operators.h>
#include <fxgraph/trace/recorded_call.h>

namespace fx::internal {

using c10::IValue;
using torch::jit::Stack;

// LibTorch reads several tensors that it returns after it has let go of them. And of the functions whose gradient
// LibTorch knows, `pow_out(y, x, 2)` has none; `y.copy_(pow(x, 2))` has. Written to what has the size; a tensor of
// another size becomes the result, as resize_ makes it.
bool Session::Call::record_without_outs() {
  const auto is_written = [](const OpResult& result) { return result.written_argument >= 0; };
  if (record_.results.empty() || !std::all_of(record_.results.begin(), record_.results.end(), is_written)) return false;
  if (record_.results.size() == 1 && !session_.modes_.inside_known_function()) return false;
  const TorchOperator* functional = returning_variant(op_.schema());
  if (!functional) return false;
  Stack call;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (!record_.arguments[i].written) call.push_back(arguments_[i]);
  }
  Call(session_, *functional->handle, call).record();
  const c10::OperatorHandle copy = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  std::vector<IValue> results;
  for (std::size_t i = 0; i < record_.results.size(); ++i) {
    const at::Tensor written = arguments_[record_.results[i].written_argument].toTensor();
    const at::Tensor made = call[i].toTensor();
    const at::Tensor before = session_.meta_value(written), value = session_.meta_value(made);
    if (before.defined() && value.defined() && before.sizes() != value.sizes()) {
      session_.reshape(written, value);
      session_.rebind(written, session_.argument_for(made).node());
    } else {
      Stack of_copy = {written, made, false};
      Call(session_, copy, of_copy).record();
    }
    results.emplace_back(written);
  }
  finish(std::move(results));
  return true;
}

}  // namespace fx::internal
