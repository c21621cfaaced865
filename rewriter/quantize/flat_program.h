// The flat program: what prepare() and convert() work on. Operators alone, in one spelling, that write nothing.
//
// Modules are written out, calls normalised to ATen overloads, convolutions of all spellings are aten::convNd, batch
// normalisation is folded into the layer before it, and an operator that writes its own fresh operand (relu_) becomes
// the one that does not. What cannot be made so stays, and stays float.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>

namespace fx::quantize {

namespace meta_key {
inline constexpr const char* kPath = "quantize_path";    ///< std::string: of the module that a node came from
inline constexpr const char* kType = "quantize_type";    ///< std::string: of that module, `Conv2d`
inline constexpr const char* kValue = "quantize_value";  ///< std::string: the float program's node of that value
}  // namespace meta_key

/// Returns a copy of `module` in evaluation mode, made flat. With `fold` batch normalisation is folded. Deterministic:
/// equal programs give equal names. Linear in the program, beside one run on `example` (may be empty: fewer folds).
std::shared_ptr<GraphModule> flat_program(const GraphModule& module, const std::vector<c10::IValue>& example,
                                          bool fold = true);

/// The path of the module that a node of a flat program came from: its own, or that of its weight. Empty when neither.
std::string layer_path(const Node& node);
std::string layer_type(const Node& node);

/// The path of the attribute that an argument is; empty for null and for anything else.
std::string attribute_path(const Argument* argument);

/// All arguments of a call in the operator's order, defaults filled in, to be given by position.
std::vector<Argument> all_arguments(const Call& call);

/// Turns calls of operators that can be quantized, and write a fresh operand which nobody else sees, into those that
/// return a new value of the same type; returns how many. `example` tells the types of other operands.
std::size_t make_functional(GraphModule& flat, const std::vector<c10::IValue>& example);

}  // namespace fx::quantize
