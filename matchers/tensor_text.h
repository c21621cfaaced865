// What a tensor must be, in the text of patterns: `f32[N, C, *, *]`. Internal to matchers/.
#pragma once

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/pattern_lexer.h>

namespace fx::internal {

/// True for a word that begins a type: a dtype, `tensor`, `floating`, `integral`.
bool is_tensor_word(std::string_view word);

/// Reads a type from the lexer into the test and sizes of `node`.
void read_tensor_type(PatternLexer& lexer, ExprNode& node);

}  // namespace fx::internal
