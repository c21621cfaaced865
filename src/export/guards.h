// The checks of what an exported program holds for, as a GraphModule: one placeholder per argument, an assertion per
// dimension, per value that is always the same and per container, no result. The graph calls it as `_guards_fn`, the
// name that torch.export uses.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/export/guard_text.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/export/tree_spec.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

inline constexpr const char* kGuards = "_guards_fn";

/// What is known of one input: a tensor's description, or of a number its expression; of a value that the program holds
/// for alone, what it is; of a container, how many values it has.
struct CheckedInput {
  enum class Kind : std::uint8_t { tensor, number, literal, container };
  static constexpr std::size_t kNone = SIZE_MAX;

  std::string name{};
  Kind kind = Kind::tensor;
  TensorMeta tensor{};
  SizeExpr number{};
  std::size_t leaf = kNone;   ///< its place among all values of the call
  std::size_t whole = kNone;  ///< the container that it is taken out of, among the inputs that are checked
  Argument key{};             ///< of it there
  Argument literal{};
  std::size_t length = 0;
  std::optional<TreeSpec> spec{};  ///< of a container
  std::string type{};              ///< of a literal or container: its annotation, where there is one
  std::string path{};              ///< of a literal or container: `x[1]['scale']`
};

/// A guard and Python's text of it, for the message.
struct StatedGuard {
  SizeExpr guard;
  std::string text;
};

/// It takes the inputs that are in no other. `check_sizes`: of tensors and numbers, too. Null when there is nothing to
/// check. Throws Error(unsupported) for a size whose symbols no input tells.
std::shared_ptr<GraphModule> make_guards(const std::vector<CheckedInput>& inputs, const SizeRanges& ranges,
                                         const std::vector<StatedGuard>& guards = {}, bool check_sizes = true);

}  // namespace fx::pt2
