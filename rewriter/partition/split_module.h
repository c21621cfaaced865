// split_module: a program cut into modules of its own, FX's split_module.
//
//   auto split = fx::split_module(*gm, [&](const fx::Node& node) { return on_gpu(node) ? 1 : 0; });
//   split->submodule("submod_1");        // a GraphModule, called by split->graph()
//
// Every call belongs to the partition that the callback gives it; get_attr nodes are copied to where they are read.
// Partitions run one after the other in an order that keeps all uses, writes, random draws and side effects where they
// were. Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// How the parts look, and what they are called.
struct SplitOptions {
  /// A partition with one result returns it in a tuple, as those with several do.
  bool tuple_return = false;
  /// False: the inputs of partitions are called arg_0, arg_1, …, so that equal partitions have equal graphs.
  bool keep_original_input_names = true;
  /// Calls that stay in the program, each by itself; they are not asked for a partition.
  std::function<bool(const Node&)> stays{};
  /// What the module of a partition is called; without it `submod_<partition>`.
  std::function<std::string(std::int64_t partition)> name{};
  /// When set: filled with the path of each module that a partition calls in the result, and its path in `module`.
  std::vector<std::pair<std::string, std::string>>* module_paths = nullptr;
};

/// Returns a GraphModule that calls `submod_<partition>` for each partition, in place of its nodes. Tensors and modules
/// are those of `module`, which stays as it is. Inputs and results of a partition are in graph order; values that
/// nothing uses stay inside. Throws Error(invalid_argument) naming the nodes when two partitions would have to wait for
/// each other. O((nodes + uses) log partitions).
std::shared_ptr<GraphModule> split_module(const GraphModule& module,
                                          const std::function<std::int64_t(const Node&)>& partition_of,
                                          const SplitOptions& options = {});

}  // namespace fx
