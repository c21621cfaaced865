// Spellings of operator targets.
//
// Inside the graph an operator overload is `namespace::name` or `namespace::name.overload`, as in its schema; the
// overload named "default" is left out. FX text spells the same `torch.ops.namespace.name.overload`, with `.default`
// written. Any other target (`torch.relu`, `operator.add`, a method or attribute name) is kept as it is.
#pragma once

#include <string>
#include <string_view>

#include <fxgraph/support/symbol.h>

namespace fx {

/// Returns the canonical spelling: `torch.ops.aten.relu.default` and `aten::relu.default` become `aten::relu`,
/// `_operator.add` becomes `operator.add`. O(1) after the first question.
Symbol canonical_target(Symbol target);

/// Appends `target` as FX text spells it.
void format_target(std::string& out, Symbol target);
/// What format_target appends.
std::string target_text(Symbol target);

/// Returns the operator's name without overload: `aten::add` for `aten::add.Tensor`.
std::string_view packet_of(std::string_view target);

/// Returns the stem that nodes with this target are named after: `add`, `layer1_0_conv1`. O(its length).
Symbol name_stem(Symbol target);

/// Makes `text` an identifier: runs of other characters become one `_`, a leading digit gets a `_` before it.
std::string to_identifier(std::string_view text);

/// True for a letter or `_`, then letters, digits and `_`: what to_identifier leaves as it is.
bool is_identifier(std::string_view text);

/// `LayerNorm` -> `layer_norm`, `ALL_CAPS` -> `all_caps`: FX's rule.
std::string to_snake_case(std::string_view text);

/// True for Python's keywords, builtins and the names that generated code needs; nodes with such a name get a number.
bool is_reserved_name(std::string_view name);

}  // namespace fx
