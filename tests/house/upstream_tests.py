#!/usr/bin/env python3
"""docs/upstream-tests.md names tests that exist: each `Suite.Name` in code there is a TEST(Suite, Name) in tests/."""

import re
from pathlib import Path

import house

PAGE = Path("docs/upstream-tests.md")
CODE = re.compile(r"`([A-Za-z]\w*\.[A-Za-z]\w*)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def check(root, _options):
    files = [path for path in house.files(root, ".cc") if path.parts[0] == "tests"]
    known = {".".join(match) for path in files for match in TEST.findall((root / path).read_text(encoding="utf-8"))}
    for number, line in house.lines(root, PAGE) if (root / PAGE).is_file() else []:
        for name in CODE.findall(line):
            if name not in known:
                yield house.Violation(PAGE, number, f"there is no test '{name}'; correct the table")


TESTS = {"tests/a_test.cc": "TEST(Trace,\n     Records) {}\nTEST_P(Cases, Run) {}\n"}
CLEAN = TESTS | {str(PAGE): "| test_x | `Trace.Records`, `Cases.Run`; `other words` |\n"}
PLANTED = [(TESTS | {str(PAGE): "| test_x | `Trace.Forgets` |\n"}, "docs/upstream-tests.md:1: there is no test 'Trace.Forgets'")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
