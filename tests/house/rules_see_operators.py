#!/usr/bin/env python3
"""Rules never see a target as it is written: `torch.add`, `x.add(y)`, `operator.add` and `aten::add` are one operator, and
rewriter/rules/operator_of.h says which (operator_of), or what a path is (path_of)."""

import re
from pathlib import Path

import house

FOLDER = Path("rewriter/rules")
ALLOWED = {
    "rewriter/rules/operator_of.cc": "it is where it is asked",
    "rewriter/rules/measured_rules.cc": "copies calls as they are",
    "rewriter/rules/program_image.cc": "keeps a program to the letter",
}
RAW = re.compile(r"(?:\.|->)target\(\)")


def check(root, _options):
    for path in house.files(root, ".cc", ".h"):
        if FOLDER not in path.parents or str(path) in ALLOWED:
            continue
        for number, line in house.lines(root, path):
            if RAW.search(line.split("//")[0]):
                yield house.Violation(path, number, "a rule asks for a raw target; ask operator_of or path_of (rewriter/rules/operator_of.h)")


CLEAN = {"rewriter/rules/a.cc": "if (operator_of(node) == x) return; // node.target()\n", "src/ir/graph.cc": "node.target();\n",
         "rewriter/rules/operator_of.cc": "node.target();\n"}
PLANTED = [(CLEAN | {"rewriter/rules/fusion/b.cc": "x == node.target()\n"}, "rewriter/rules/fusion/b.cc:1: a rule asks for a raw target"),
           (CLEAN | {"rewriter/rules/b.h": "x == node->target()\n"}, "a rule asks for a raw target")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
