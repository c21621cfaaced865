// LibTorch's operators by their canonical targets, ready to be called on a stack.
//
// Covers everything that LibTorch has registered: dispatcher operators (`aten::add.Tensor`) and TorchScript's own on
// numbers, strings and lists (`aten::add.int`, `aten::len.t`). Which of them a call is, fx::Call says: see
// call_target.h.
//
// Complexity: one hash look-up after the first question for a target. Thread-safety: all functions may be called from
// any thread; what they return lives as long as the process.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/node.h>
#include <fxgraph/support/symbol.h>

namespace fx {

/// callBoxed. Where an operator writes what it returns, and returns several, LibTorch reads its references to them when
/// it has let go of its arguments: they are held meanwhile. Sizes that LibTorch should check, and does not, are.
void call_boxed(const c10::OperatorHandle& op, torch::jit::Stack& stack);

struct TorchOperator {
  const c10::FunctionSchema* schema;
  std::optional<c10::OperatorHandle> handle;     ///< set for dispatcher operators: the fast way to call
  std::function<void(torch::jit::Stack&)> call;  ///< set for the others

  /// Takes its arguments from the stack, all of them, and leaves its results there.
  void operator()(torch::jit::Stack& stack) const { handle ? call_boxed(*handle, stack) : call(stack); }
};

/// The operator with exactly this overload, or null.
const TorchOperator* find_torch_operator(Symbol target);

/// Whether data decide the sizes of what the operator `target` gives, as its row says (OperatorFlag::sizes_of_data),
/// or, of those that other libraries register, their tag.
bool data_decide_sizes(const c10::OperatorHandle& op, Symbol target);

/// All overloads of `aten::add`, in the order in which LibTorch has them.
const std::vector<const TorchOperator*>& torch_overloads(Symbol packet);

/// The operator that returns what one of this schema writes: `aten::max.dim` for `aten::max.dim_max`. Null where
/// nothing is written or LibTorch has no such operator.
const TorchOperator* returning_variant(const c10::FunctionSchema& schema);

/// A call's values: positional, then by keyword.
struct CallValues {
  std::vector<c10::IValue> args;
  std::vector<std::pair<Symbol, c10::IValue>> kwargs;
  /// The node that is being called, where there is one: it tells which of the numbers are dtypes.
  const Node* written = nullptr;
};

/// Binds the call to `schema` with Python's conversions (an int for a float, a tuple for a list, one int for `int[2]`)
/// and fills `stack`; false when it does not fit.
bool bind_values(const c10::FunctionSchema& schema, const CallValues& call, torch::jit::Stack& stack);

/// Makes LibTorch the source of operator schemas for fx::find_overload. Idempotent; called by everything in src/module.
void install_schema_source();

}  // namespace fx
