// The table of what can be quantized: a row per operator with its role, its kernels and what these ask for.
//
// prepare() marks by it, convert() writes by it, lowering makes its rules from it. A new operator is a new row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>

namespace fx::quantize {

enum class Role : std::uint8_t {
  weighted,     ///< input and weight quantized, bias float: convolutions, linear
  elementwise,  ///< all tensor operands quantized, result has a range of its own: add, mul, matmul
  concat,       ///< a list of quantized tensors, result has a range of its own
  own,          ///< the first operand quantized, result has a range of its own
  fixed,        ///< the same with a range that is known: sigmoid
  by_number,    ///< with a number: the result's range follows from the input's
  share,        ///< moves or picks elements: result and input have one range
  share_all,    ///< the same with several inputs, all of one range: stack
};

/// A call of an operator in the flat program, with what is known about its values.
struct Site {
  const Shapes& shapes;
  const Call& call;

  /// The rank of the tensor that `node` makes; -1 when it is not known.
  static int rank(const Shapes& shapes, const Node& node);
  int input_rank() const;
};

struct Row {
  std::string_view packet;  ///< `aten::conv2d`
  Role role;
  /// The operator on quantized tensors; empty: the packet itself takes them.
  std::string_view kernel{};
  std::string_view kernel_relu{};     ///< the same with a relu, if there is one
  std::string_view prepack{};         ///< weighted: makes the packed parameters
  std::string_view kernel_dynamic{};  ///< weighted: takes floats and finds their range itself
  std::string_view kernel_relu_dynamic{};
  int rank = 0;                 ///< of the input, when the kernel takes one only
  double scale = 0;             ///< fixed: the result's
  std::int64_t zero_point = 0;  ///< fixed: the result's
  /// Says why a call cannot be quantized; empty when it can. May be null.
  std::string (*obstacle)(const Site& site) = nullptr;
};

std::span<const Row> backend_table();
/// The row of a canonical target (`aten::add.Tensor`); null when there is none.
const Row* row_of(std::string_view target);
/// True for the module types and operators that the table knows, for configurations: `Conv2d`, `aten::conv2d`.
bool is_known_type(std::string_view type);

/// What the kernel of a `by_number` row multiplies by or adds: a division is by one over the number, a subtraction adds
/// the negative.
double number_of(const Call& call);

/// The number that an argument is; nothing for null and for anything else.
std::optional<double> literal_number(const Argument* argument);

/// Bounds of an activation that may become part of the operator before it: relu, relu6, hardtanh, clamp around zero.
struct Bounds {
  bool is_activation = false;
  double low = 0, high = 0;  ///< infinite where there is none
};
Bounds bounds_of(const Node& node);

}  // namespace fx::quantize
