// What a TorchScript file of fxgraph's says beside its program; whoever else reads it sees attributes that nothing
// uses.
#pragma once

namespace fx::internal {

/// Attribute of the root, a string, in files in which something depends on the mode: why the program holds for the mode
/// that it is in, and empty when all of it follows `training`.
inline constexpr const char* kFileMode = "_fxgraph_mode";

/// Of a program that cuts its batches (GraphModule::set_micro_batches): the method of the root that computes one of
/// them, which `forward` calls, and an attribute, int[][], with [their size] and the sizes of each
/// input (MicroBatches).
inline constexpr const char* kMicroBatchMethod = "_fxgraph_micro_batch";
inline constexpr const char* kMicroBatches = "_fxgraph_micro_batches";

}  // namespace fx::internal
