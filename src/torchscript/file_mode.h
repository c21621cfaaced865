// What a TorchScript file of fxgraph's says about its mode; whoever else reads it sees an attribute that nothing uses.
#pragma once

namespace fx::internal {

/// Attribute of the root, a string, in files in which something depends on the mode: why the program holds for the mode
/// that it is in, and empty when all of it follows `training`.
inline constexpr const char* kFileMode = "_fxgraph_mode";

}  // namespace fx::internal
