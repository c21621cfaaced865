// FX text out: `str(graph)`, one line of it, DOT and JSON.
//
// Thread-safety: like the const functions of Graph. Cost: linear in the text written.
#pragma once

#include <iosfwd>
#include <string>

#include <fxgraph/ir/graph.h>

namespace fx {

/// One line as FX's format_node prints it: `%add : [num_users=1] = call_function[target=…](args = (…), kwargs = {…})`.
/// Unlike FX, strings are quoted, and so is a target or annotation that would not read back
/// (`call_module[target='a]b']`).
void format_node(std::string& out, const Node& node);
/// The same as a text of its own.
std::string format_node(const Node& node);

/// Returns where the node was made: the innermost line of its stack trace (meta "stack_trace"); empty when none was
/// noted.
std::string source_place(const Node& node);

/// The whole graph, as FX's str(graph), closed by a newline. parse_graph reads it back: for every graph that lints
/// clean, print → parse → print is the identity. Notes other than the annotation are not printed.
std::string print_graph(const Graph& graph);
/// Prints print_graph(graph).
std::ostream& operator<<(std::ostream& out, const Graph& graph);

/// A Graphviz digraph: a record per node (name, opcode, target, annotation), an edge per use.
std::string print_dot(const Graph& graph);

/// JSON, one node a line:
///
///   {"nodes": [{"name", "op", "target", "type"?, "args": [], "kwargs": {}, "users": []}, …]}
///
/// None, bools, ints, finite floats (always with a point or exponent), strings and lists are themselves; every other
/// argument is an object of one key:
///
///   {"node": name}, {"tuple": []}, {"dict": [[key, value], …]}, {"slice": [start, stop, step]},
///   {"complex": [real, imaginary]}, {"float": "inf"}, {"dtype": "float32"}, {"device": "cuda:0"},
///   {"layout": "strided"}, {"memory_format": "channels_last"}, {"ellipsis": true}, {"opaque": text}
///
/// Bytes that are no UTF-8 become U+FFFD.
std::string print_json(const Graph& graph);

}  // namespace fx
