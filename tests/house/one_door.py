#!/usr/bin/env python3
"""Graphs are edited through one door: in rewriter/ nothing but the Rewriter changes a graph that it was given. What builds
a graph of its own, and a few others, are named below with their reason."""

import re
from pathlib import Path

import house

FOLDER = Path("rewriter")
# Parts are cut, joined and written anew as graphs of their own; quantization works on a copy.
OTHERS = (Path("rewriter/partition"), Path("rewriter/quantize"))
ALLOWED = {
    "rewriter/rewriter.cc": "it is the door",
    "rewriter/common_subexpression.cc": "a pass of its own, at 15 ns a node: the journal would cost as much again",
    "rewriter/replacement.cc": "builds the graph of a replacement",
    "rewriter/program/replace_pattern.cc": "renames what its own copy of a graph reads",
    "rewriter/rules/program_image.cc": "puts a program back to the letter, names and order included, into a new graph",
}

# An edit of a node, and one of a graph that the text calls so.
NODE_EDIT = re.compile(r"\b(\w+)(?:\[\w+\])?(?:\(\))?(?:\.|->)(?:replace_all_uses_with|replace_input_with|move_uses_to|set_target|set_args"
                       r"|set_kwargs|set_args_kwargs|update_arg|update_kwarg|insert_arg|prepend|append)\(")
GRAPH_EDIT = re.compile(r"\b(\w*graph_?)(?:\(\))?\.(?:create_node|placeholder|get_attr|call_function|call_method|call_module|output"
                        r"|erase_node|node_copy|graph_copy|inserting_before|inserting_after)\(")
DOOR = re.compile(r"rewriter_?$|^r$")


def edits(line):
    code = line.split("//")[0]
    for found in NODE_EDIT.finditer(code):
        if found[0].rstrip("(").endswith("append") and not found[0].startswith("node"):
            continue  # of strings
        if not DOOR.search(found[1]):
            yield found[0]
    for found in GRAPH_EDIT.finditer(code):
        yield found[0]


def check(root, _options):
    for path in house.files(root, ".cc", ".h"):
        if FOLDER not in path.parents or any(other in path.parents for other in OTHERS) or str(path) in ALLOWED:
            continue
        for number, line in house.lines(root, path):
            for edit in edits(line):
                yield house.Violation(path, number, f"{edit}…) edits a graph past the Rewriter; let it do that, or name the file "
                                                    "in tests/house/one_door.py with the reason")


CLEAN = {"rewriter/pass.cc": "rewriter.erase_node(node);\nr.call_function(x);\nprogram.rewriter.set_target(node, x);\n"
                             "text.append(x);\nconst Graph& graph = module.graph();\n",
         "rewriter/rewriter.cc": "graph_->erase_node(node);\nnode.set_target(target);\n",
         "src/ir/graph.cc": "graph.erase_node(node);\n"}
PLANTED = [(CLEAN | {"rewriter/other.cc": "graph_.erase_node(node);\n"}, "rewriter/other.cc:1: graph_.erase_node("),
           (CLEAN | {"rewriter/other.cc": "node.replace_all_uses_with(x);\n"}, "past the Rewriter"),
           (CLEAN | {"rewriter/rules/a.cc": "module.graph().call_function(x);\n"}, "past the Rewriter"),
           (CLEAN | {"rewriter/rules/a.cc": "for (Node* user : users) user->update_arg(0, x);\n"}, "past the Rewriter")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
