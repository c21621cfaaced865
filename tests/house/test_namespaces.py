#!/usr/bin/env python3
"""Several test files are compiled as one: each is a namespace of its own, `fx::<file>`, and what they share names is told apart."""

import re
from pathlib import Path

import house

FOLDER = Path("tests")
LIBRARY = Path("tests/testing")  # what users test with
OPENED = re.compile(r"^namespace (?:\w+::)*(\w+) \{")
ANONYMOUS = re.compile(r"^namespace \{")


def check(root, _options):
    for path in house.files(root, ".cc"):
        if FOLDER not in path.parents or LIBRARY in path.parents or not path.stem.endswith("_test"):
            continue
        opened = set()
        for number, line in house.lines(root, path):
            if ANONYMOUS.match(line):
                yield house.Violation(path, number, f"an unnamed namespace is that of all files compiled with this one; name it {path.stem}")
            opened |= set(OPENED.findall(line))
        if path.stem not in opened:
            yield house.Violation(path, 1, f"its tests and helpers stand in no namespace of theirs; put them into fx::{path.stem}")


CLEAN = {"tests/ir/graph_test.cc": "namespace fx::graph_test {\nTEST(A, B) {}\n}\n",
         "tests/matchers/find_test.cc": "namespace fx {\nstruct A;\nnamespace find_test {\n}\n}\n",
         "tests/support/random.cc": "namespace fx {\nnamespace {\n}\n}\n"}
PLANTED = [(CLEAN | {"tests/ir/node_test.cc": "namespace fx {\nnamespace {\n}\n}\n"}, "tests/ir/node_test.cc:2: an unnamed namespace"),
           (CLEAN | {"tests/ir/node_test.cc": "namespace fx::graph_test {\n}\n"}, "tests/ir/node_test.cc:1: its tests")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
