// What a tensor must be, in the text of patterns: `f32[N, C, *, *]`. Internal to matchers/.
#pragma once

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/pattern_lexer.h>

namespace fx::internal {

/// True where a type begins: a dtype, `tensor`, `floating`, `integral`, or several in braces. `{f16, g}` and `{f16}(x)`
/// call functions.
bool is_tensor_type(PatternLexer lexer);

/// Reads a type from the lexer into the test and sizes of `node`.
void read_tensor_type(PatternLexer& lexer, ExprNode& node);

}  // namespace fx::internal
