// The last word on what was chosen place by place: what a call costs those around it, and what memory costs, shows in
// the whole program alone.
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

/// Runs a program on the batch that these inputs are, whole and cut into micro-batches of a half, a quarter, … of it,
/// in turn, and sets the size that is fastest (GraphModule::set_micro_batches), where one is faster by a fiftieth.
/// `cut` says which inputs are cut. The program must compute each sample by itself (rewriter/rules/batch.h). Nothing
/// where the inputs are no batch. Throws, and leaves batches whole, where the results of the parts differ all the same,
/// in numbers or in strides, and what running throws. Each time is the mean of a run in memory that is new to the
/// process and of one in memory that is not. Costs some twenty-five forwards.
std::optional<Choice> cut_into_micro_batches(GraphModule& module, const std::vector<TensorInfo>& inputs,
                                             const MicroBatches& cut);

}  // namespace fx::rules
