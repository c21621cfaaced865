// Calls that write what they return (`max_out`), recorded as what returns it and what writes it.
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <memory>

#include <fxgraph/trace/recorded_call.h>

namespace fx::internal {

using c10::IValue;
using torch::jit::Stack;

namespace {

// The operator that returns what this one writes; null when there is none.
std::shared_ptr<torch::jit::Operator> without_outs(const c10::FunctionSchema& schema) {
  std::vector<const c10::Argument*> read;
  const auto is_written = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  for (const c10::Argument& argument : schema.arguments()) {
    if (!is_written(argument)) read.push_back(&argument);
  }
  for (const auto& other : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(schema.name()))) {
    const c10::FunctionSchema& like = other->schema();
    const bool same = std::equal(read.begin(), read.end(), like.arguments().begin(), like.arguments().end(),
                                 [&](const c10::Argument* a, const c10::Argument& b) {
                                   return !is_written(b) && a->name() == b.name() && *a->type() == *b.type();
                                 });
    if (same && like.returns().size() == schema.returns().size()) return other;
  }
  return nullptr;
}

}  // namespace

// `pow_out(y, x, 2)` has no gradient; `y.copy_(pow(x, 2))` has.
bool Session::Call::record_without_out() {
  const std::string& overload = op_.operator_name().overload_name;
  if (!overload.ends_with("_out") || record_.results.size() != 1 || record_.results[0].written_argument < 0)
    return false;
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto functional = dispatcher.findSchema(
      {op_.operator_name().name, overload.substr(0, overload.size() - std::string("_out").size())});
  if (!functional) return false;
  const auto out = static_cast<std::size_t>(record_.results[0].written_argument);
  Stack call;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (i != out) call.push_back(arguments_[i]);
  }
  const IValue written = arguments_[out];
  Call(session_, *functional, call).record();
  Stack copy = {written, call.back(), false};
  Call(session_, dispatcher.findSchemaOrThrow("aten::copy_", ""), copy).record();
  finish({written});
  return true;
}

// Written to what has the size; a tensor of another size becomes the result, as resize_ makes it. LibTorch reads
// several tensors that it returns after it has let go of them.
bool Session::Call::record_without_outs() {
  const auto is_written = [](const OpResult& result) { return result.written_argument >= 0; };
  if (record_.results.size() < 2 || !std::all_of(record_.results.begin(), record_.results.end(), is_written))
    return false;
  const auto functional = without_outs(op_.schema());
  if (!functional) return false;
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  Stack call;
  for (std::size_t i = 0; i < record_.arguments.size(); ++i) {
    if (!record_.arguments[i].written) call.push_back(arguments_[i]);
  }
  const auto& name = functional->schema().operator_name();
  Call(session_, dispatcher.findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str()), call).record();
  std::vector<IValue> results;
  for (std::size_t i = 0; i < record_.results.size(); ++i) {
    const at::Tensor written = arguments_[record_.results[i].written_argument].toTensor();
    const at::Tensor made = call[i].toTensor();
    const at::Tensor before = session_.meta_value(written), value = session_.meta_value(made);
    if (before.defined() && value.defined() && before.sizes() != value.sizes()) {
      session_.reshape(written, value);
      session_.rebind(written, session_.argument_for(made).node());
    } else {
      Stack copy = {written, made, false};
      Call(session_, dispatcher.findSchemaOrThrow("aten::copy_", ""), copy).record();
    }
    results.emplace_back(written);
  }
  finish(std::move(results));
  return true;
}

}  // namespace fx::internal
