// OpRecord: what tracing and working out shapes need to know of an operator, found once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/flat_map.h>
#include <fxgraph/support/symbol.h>

namespace fx::internal {

/// How an argument or a result of an operator crosses from LibTorch into the graph.
enum class OperandKind : std::uint8_t {
  tensor,       ///< `Tensor`, `Tensor?`
  tensor_list,  ///< `Tensor[]`, `Tensor?[]`
  generator,    ///< only None can be recorded
  device,
  other,  ///< numbers, strings and lists of them
};

struct OpArgument {
  Symbol name;
  OperandKind kind = OperandKind::other;
  c10::TypePtr type;
  bool keyword_only = false;
  bool written = false;
  std::uint8_t repeat = 1;  ///< `int[2]`: one number stands for two
  std::optional<Argument> default_value;
};

struct OpResult {
  OperandKind kind = OperandKind::other;
  int written_argument = -1;  ///< the argument that this result is, for in-place and out= operators
};

struct OpRecord {
  Symbol target;
  const OperatorSchema* schema = nullptr;  ///< of an operator whose row may tell shapes, else null
  std::vector<OpArgument> arguments;
  std::vector<OpResult> results;
  bool takes_tensors = false;
  bool takes_values = false;  ///< of tensors: `zeros_like` takes but their shape
  bool all_results_are_tensors = true;
  bool draws_random_numbers = true;           ///< or nobody knows that it does not
  bool shape_depends_on_data = false;         ///< `nonzero`, `masked_select`, …
  std::optional<std::size_t> sizes_given_by;  ///< the argument that, given, says them instead
  bool changes_shape = false;                 ///< in place: `t_`, `unsqueeze_`
  bool keeps_constants = false;               ///< may run at once on constants being built
  bool builds_constants = false;              ///< `empty`: where torch::tensor({…}) begins
  bool meta_works = false;                    ///< learnt: this operator has a meta kernel for some arguments
  bool meta_fails = false;                    ///< learnt: this operator has no meta kernel
};

/// Whether the shape of this call's results depends on data: `one_hot` of so many classes has one that does not.
bool depends_on_data(const OpRecord& op, const c10::IValue* arguments);

/// The operators that a trace, and those that go with it, have met. Look-up is one hash of the schema's address.
class OpTable {
 public:
  OpRecord& find(const c10::OperatorHandle& op);

 private:
  FlatMap<std::uint32_t> index_;
  std::vector<std::unique_ptr<OpRecord>> records_;
};

/// Length of the list that `op` returns, from its arguments alone (`chunk(x, 3)` gives three); nothing when that takes
/// a shape.
std::optional<std::size_t> result_list_length(const OpRecord& op, const c10::IValue* arguments);

}  // namespace fx::internal
