// What a `.pt2` says of inputs and attributes and a graph has no place for, as notes on nodes (Node::meta), so that the
// program can be written again as it was.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <fxgraph/export/size_expr.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/export/tree_spec.h>

namespace fx::pt2 {

/// On a placeholder: the tensor that it takes, and what its symbols may be.
struct InputNote {
  TensorMeta tensor;
  std::map<std::string, SizeRange> ranges;
};
inline constexpr const char* kInputNote = "val";

/// On a placeholder for a container: its TreeSpec.
inline constexpr const char* kTreeNote = "tree_spec";

/// On a placeholder: bool, true when Python wants it by keyword.
inline constexpr const char* kKeywordNote = "keyword";

/// On a get_attr: tensors that Python's state_dict leaves out.
enum class StateKind : std::uint8_t { not_saved, constant };
inline constexpr const char* kStateNote = "state";

}  // namespace fx::pt2
