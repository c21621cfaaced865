// ProgramValues: what every value of a program is, as expressions of the sizes that vary.
//
// Sizes are what the operators' rows make of the inputs' (fxgraph/contract/symbolic_shapes.h); a call that has no row
// is made alone at a few sizes (shapes/call_fit.h). The program runs once, on its example, which tells kinds, devices,
// numbers that do not vary, and the strides of what rows leave open; what it shows an expression must be.
//
// Sizes that data decide are symbols, too (data_sizes.h).
//
// Costs: one run of the program, and what its calls without a row take. Thread-safety: as running the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/export/data_sizes.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/records/abstract_value.h>

namespace fx::pt2 {

/// One value: a tensor, a number that may be an expression, or a list or tuple of values.
struct ValueShape {
  enum class Kind : std::uint8_t { none, tensor, integer, floating, boolean, list, other };
  Kind kind = Kind::none;
  TensorMeta tensor{};
  SymbolicSize integer{};
  double floating = 0;
  std::optional<SizeExpr> real{};  ///< of a float that sizes or data decide: what it is of them
  bool boolean = false;
  std::optional<SizeExpr> condition{};  ///< of a truth value that sizes or data decide: likewise
  bool varies = false;                  ///< of a number: it is not the same in every run
  bool of_data = false;                 ///< of a number: data decide it
  std::vector<ValueShape> elements{};
};

/// Whether values of this kind are numbers.
inline bool is_number(ValueShape::Kind kind) {
  return kind == ValueShape::Kind::integer || kind == ValueShape::Kind::floating || kind == ValueShape::Kind::boolean;
}

using ValueShapes = NodeMap<ValueShape>;

/// The values of a program, and of the graphs that it calls.
struct ProgramValues {
  ValueShapes values;
  std::map<const Graph*, ValueShapes> nested{};  ///< looked up, not gone through
  DataSizes data{};                              ///< of the program itself, not of the graphs that it calls
  Symbols data_examples{};                       ///< of their symbols
};

/// The inputs for values of the symbols, and what the input is that a node stands for; unknown for others.
struct SizedInputs {
  std::function<std::vector<c10::IValue>(const Symbols&)> make;
  std::function<AbstractValue(const Node&)> input_at;
};

/// The values of `graph` over `module`'s attributes. Throws Error(unsupported) naming the node whose size is no
/// expression that is found; with `unfit`, the symbols on which it depends go there instead.
ProgramValues find_values(GraphModule& module, const Graph& graph, const Symbols& example, const SizeRanges& ranges,
                          const SizedInputs& inputs, std::set<std::string>* unfit = nullptr);

}  // namespace fx::pt2
