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
};

/// The inputs for values of the symbols, and what the input is that a node stands for; unknown for others.
struct SizedInputs {
  std::function<std::vector<c10::IValue>(const Symbols&)> make;
  std::function<AbstractValue(const Node&)> input_at;
};

/// A value of a run: its sizes and numbers are those that it has there.
ValueShape observe(const c10::IValue& value);

/// Runs the program at `example`, to which symbols of data are added, with their ranges to `ranges`, and says what was
/// seen of its nodes and of the graphs that it calls. A few times more where data decide sizes.
ProgramValues observe(GraphModule& module, const Graph& graph, const SizedInputs& inputs, Symbols& example,
                      SizeRanges& ranges);

/// The values of `graph` over `module`'s attributes. Throws Error(unsupported) naming the node whose size is no
/// expression that is found; with `unfit`, the symbols on which it depends go there instead.
ProgramValues find_values(GraphModule& module, const Graph& graph, const Symbols& example, const SizeRanges& ranges,
                          const SizedInputs& inputs, std::set<std::string>* unfit = nullptr);

/// The calls of `graph`, and of the graphs nested in it (submodules of `module`), whose results have sizes, or are
/// numbers, that data decide and no size, and which are no source that an archive has a symbol for: a truth value of
/// whole tensors, `nonzero` in a branch of cond. As their operators say, before anything runs: "aten::equal at
/// %equal, …". Empty when there is none.
std::string calls_of_data(const Graph& graph, const GraphModule& module);
/// Those of `graph` that do as the values that they had say.
std::string calls_of_data(const Graph& graph, const ProgramValues& shapes);

/// The strides of a tensor whose sizes vary: from the smallest on, each is the product of the sizes before it, as it is
/// in the example. A tensor with gaps or overlaps becomes contiguous.
void set_strides(TensorMeta& meta);

/// The same, but where none of its sizes is another than `given`, it lies as it was given: the program may ask how.
void lay_out(TensorMeta& meta, const std::optional<TensorMeta>& given);

}  // namespace fx::pt2
