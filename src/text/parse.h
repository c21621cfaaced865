// FX text in: what print_graph writes, and what Python's torch.fx (1.13 to 2.x) and torch.export print.
//
// A text is `graph():` and then a statement a line, closed by `return`; a graph without an output has none.
//
//   graph():
//       %x : torch.Tensor [num_users=1] = placeholder[target=x](default=None)
//       %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {alpha: 2})
//       return add
//
// Accepted beyond our own form: `[#users=1]` or no user count; a parameter list, `graph(%x, %y):`, whose names need no
// placeholder line; targets spelt `aten::relu`, `torch.relu`, `_operator.add`, `<built-in function add>`,
// `<OpOverload(op='aten.add', overload='Tensor')>`; `%` before the nodes of `return`; any indentation, CR LF, blank
// lines, `#` comments, a call broken over several lines.
//
// Python prints the strings of a call bare, so its text does not always say what the program was. Read back is, in this
// order:
//
//   %name                                               the node
//   '…' "…"                                             a string; also in `return` and in slices, where Python
//                                                       quotes strings
//   None True False Ellipsis ... inf nan                that literal; so are numbers, 1j (1+2j) complex(1, 2)
//   torch.float32 torch.strided torch.channels_last     dtype, layout, memory format; other torch.… are opaque
//   cpu cuda:0 device(type='cuda', index=0)             a device, though a string "cpu" prints the same
//   slice(a, b, c)                                      a slice; a bare name in it is a node
//   <…> name(…) b'…', integers beyond 64 bits           an opaque object, kept as it is written; any other is
//                                                       written opaque('…')
//   anything else                                       a string, up to the next `,` or closing bracket (in a
//                                                       dictionary: up to the next key or `}`), without blanks at
//                                                       its ends; nothing at all is the empty string
//
// So "bij, bjk -> bik" comes back as two strings, and "1.0" as a number: the program that printed it must be asked
// instead. `(%x, )` holds an empty string, as it does in Python's text; the comma of a tuple of one has no blank after
// it.
//
// Names are kept. A name that FX reserves (`len`) gets a number, as in a graph built by hand, and so may a name that
// clashes with it then.
//
// Errors are Error(syntax) with file:line:column (the column counts characters), what was expected and what was found.
// Time and memory are linear in the text; nothing recurses over it beyond Argument::kMaxNesting.
#pragma once

#include <string>
#include <string_view>

#include <fxgraph/ir/graph.h>

namespace fx {

/// Parses one graph; `file` only names the place in errors. A user count is not believed: users are counted.
Graph parse_graph(std::string_view text, const std::string& file = {});

/// Reads `path`, `-` meaning standard input. Throws Error(io) when it cannot be read.
Graph load_graph_text(const std::string& path);

}  // namespace fx
