// What is said of a node that failed while a graph ran, by plans and by the Interpreter.
#pragma once

#include <string>

#include <fxgraph/ir/node.h>

namespace fx::internal {

/// Throws Error(execution).
[[noreturn]] void fail(const std::string& message);

/// Whether the node is an assertion with words of its own.
bool has_own_words(const Node& node);

/// The one line of an error: the node, written out as `call`, the cause, and where the node was made. The words of an
/// assertion are said once, behind its name.
std::string failure_text(const Node& node, const std::string& call, const std::string& cause);

}  // namespace fx::internal
