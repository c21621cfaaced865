// KnownValues: numbers that a program asks for and that no input decides.
//
// `torch::arange(5).sum().item()` is 10 whatever the inputs are; so the operators behind it are run at once, on copies
// of the tensors that they take, and the program goes on with the number. What depends on an input, or on chance, has
// no number. What depends on a parameter, buffer or other member has one now: it is asserted in the graph.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::internal {

class Session;

struct KnownValues {
  std::vector<c10::IValue> values;
  bool of_attribute = false;  ///< a parameter or buffer decides one of them
  bool of_kept = false;       ///< a tensor does that the program keeps, registered nowhere
};

/// What `nodes` of the trace in `session` stand for; nothing when an input or chance decides one, or an operator fails.
/// Cost: the nodes before them are looked at once, those they depend on are run.
std::optional<KnownValues> known_values(const Session& session, const std::vector<const Node*>& nodes);

/// What each of `nodes` would have become in a call of the program outside of its trace, on the inputs that the session
/// remembers; undefined where that is not one tensor or cannot be told. Nothing is written to the root's tensors, and
/// no random number is drawn that is seen. Cost: what the nodes need is run once.
std::vector<at::Tensor> values_of_call(const Session& session, const std::vector<const Node*>& nodes);

}  // namespace fx::internal
