// The last word on what was chosen place by place: what a call costs those around it shows in the whole program alone.
#pragma once

#include <optional>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rules/optimize.h>

namespace fx::rules {

/// Runs two forms of one program in turn, without gradients and leaving no trace in their state. Returns the shortest
/// time of each where that of `changed` is more than `limit` times that of `kept`. That is asked again and again, in
/// seven turns or more, for a busy machine can make it seem so. Nothing where it is not, or where a program does not
/// run on random numbers. Costs six forwards where `changed` is fast enough.
std::optional<OptimizeReport::Undone> slower_in_turn(GraphModule& kept, GraphModule& changed,
                                                     const std::vector<TensorInfo>& inputs, double limit);

}  // namespace fx::rules
