// What a trace asserts of an input beside its sizes: element type, layout, number of dimensions, that it is given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/probe.h>

namespace fx::internal {

/// The last of the placeholders from this one on; itself where it is none.
Node& last_placeholder(Node& node);

/// The input that `part` is or is taken from, and how: `[1]`.
std::pair<Node*, std::string> path_of(Node& part);

/// Asserts that an input, or the part of one that `part` fetches, is not None.
void assert_given(Graph& graph, Node& part);

/// Asserts behind the placeholders that `question` of the input, its dimensions in this order if there is one, is
/// `answer`, or true when that is None. Nothing when the input is gone.
void assert_of_input(Graph& graph, const BoundTensor& input, Symbol question, const Argument& answer,
                     const std::string& message, const std::vector<Argument>& order = {});

}  // namespace fx::internal
