// The arguments of calls by name, and the types of elements: FX's NormalizeArgs and annotate_getitem_nodes.
//
// Thread-safety: like the functions of Graph.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

/// The arguments of one call, in the order of the schema.
struct NormalizedArguments {
  std::vector<Argument> args;         ///< by position
  std::vector<NamedArgument> kwargs;  ///< by name
};

/// The arguments of a call of an operator by the names of its schema, defaults filled in: FX's
/// Node.normalized_arguments. Those given by position stay so unless `to_kwargs`. Nothing for anything that is no
/// operator (normalize_operators makes operators of other spellings), without a schema, or where the call does not fit
/// it.
std::optional<NormalizedArguments> normalized_arguments(const Node& node, bool to_kwargs = true);

/// Gives every operator all its arguments by name, defaults included, so that equal calls look equal; returns how many
/// calls changed. What they compute stays.
std::size_t normalize_args(Graph& graph);

/// Notes at each `operator.getitem` of a value that is annotated as a tuple or list (`Tuple[Tensor, int]`,
/// `tuple[int, ...]`, `List[str]`, also `typing.List[str]`) what the element is; returns how many annotations changed.
std::size_t annotate_getitem_nodes(Graph& graph);

}  // namespace fx
