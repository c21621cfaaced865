// What a `.pt2` says of inputs, attributes and the mode and a graph has no place for: notes on nodes (Node::meta), so
// that the program can be written again as it was, and a record of fxgraph's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/export/tensors.h>
#include <fxgraph/export/tree_spec.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {

/// One value that the caller gives: one of the three; none where nothing says what it is.
struct CallValue {
  std::optional<TensorMeta> tensor{};
  std::optional<SymbolicSize> number{};  ///< an int that may vary
  std::optional<Argument> literal{};     ///< the only one that the program holds for
};

/// On a placeholder: the values in it, in order, and what their symbols may be.
struct InputNote {
  std::vector<CallValue> leaves;
  std::map<std::string, SizeRange> ranges;
};
inline constexpr const char* kInputNote = "val";

/// On a placeholder for a container, and on the output: its TreeSpec.
inline constexpr const char* kTreeNote = "tree_spec";

/// On a placeholder: bool, true when Python wants it by keyword.
inline constexpr const char* kKeywordNote = "keyword";

/// On the first placeholder: std::vector<SizeExpr>, what sizes must satisfy beside their ranges.
inline constexpr const char* kGuardsNote = "guards";

/// On a get_attr: tensors that Python's state_dict leaves out.
enum class StateKind : std::uint8_t { not_saved, constant };
inline constexpr const char* kStateNote = "state";

/// A record of archives in which something depends on the mode: kTrainMode or kEvalMode, in which the program was
/// written, and why it holds for that one. Python leaves alone what it does not know below `extra/`.
inline constexpr const char* kModeRecord = "extra/fxgraph_mode";
inline const std::string kTrainMode = "train: ";
inline const std::string kEvalMode = "eval: ";

}  // namespace fx::pt2
