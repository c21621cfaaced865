// The checks of input sizes that an exported program holds for, as a GraphModule: one placeholder per input, an
// assertion per dimension, no result. The graph calls it as `_guards_fn`, the name that torch.export uses.
//
// Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/export/guard_text.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

inline constexpr const char* kGuards = "_guards_fn";

/// What is known of one input: a tensor's description, or of a number its expression.
struct CheckedInput {
  std::string name;
  bool is_tensor = true;
  TensorMeta tensor{};
  SizeExpr number{};
  std::size_t leaf = 0;  ///< its place among all values of the call
};

/// A guard and Python's text of it, for the message.
struct StatedGuard {
  Guard guard;
  std::string text;
};

/// Throws Error(unsupported) for a size whose symbols no input tells.
std::shared_ptr<GraphModule> make_guards(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges,
                                         const std::vector<StatedGuard>& guards = {});

}  // namespace fx::pt2
