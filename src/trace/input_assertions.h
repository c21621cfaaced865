// What a trace asserts of an input beside its sizes: element type, layout, number of dimensions.
#pragma once

#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/sample.h>

namespace fx::internal {

/// Asserts behind the placeholders that `question` of the input is `answer`, or true when that is None. Nothing when
/// the input is gone.
void assert_of_input(Graph& graph, const BoundTensor& input, Symbol question, const Argument& answer,
                     const std::string& message);

}  // namespace fx::internal
