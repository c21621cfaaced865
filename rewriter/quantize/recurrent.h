// LSTM and GRU with quantized weights, whose inputs' ranges are found in each run.
#pragma once

#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/quantize/config.h>
#include <fxgraph/rewriter/quantize/target_engine.h>

namespace fx::quantize {

/// Why the call of aten::lstm or aten::gru cannot be quantized; empty when it can.
std::string recurrent_obstacle(const GraphModule& flat, const Call& call);

/// Replaces the call by that of the quantized kernel. The reference form keeps the float operator, with weights read
/// back from whole numbers. Throws what packing throws.
void quantize_recurrent(GraphModule& flat, Node& node, TargetEngine& target, const QuantSettings& settings);

/// The same for one step: aten::lstm_cell, aten::gru_cell.
/// @{
std::string cell_obstacle(const GraphModule& flat, const Call& call);
void quantize_cell(GraphModule& flat, Node& node, TargetEngine& target, const QuantSettings& settings);
/// @}

}  // namespace fx::quantize
