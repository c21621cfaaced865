#!/usr/bin/env python3
"""Every rule has a test: each .cc in a subfolder of rewriter/rules/ is named, in some spelling, by a file in tests/rules/."""

from pathlib import Path

import house

RULES = Path("rewriter/rules")
TESTS = Path("tests/rules")


def spellings(stem):
    words = stem.split("_")
    return {stem, "-".join(words), "".join(word.capitalize() for word in words)}


def check(root, _options):
    tests = [path for path in house.files(root) if TESTS in path.parents]
    words = "\n".join(line for path in tests for _, line in [(0, str(path))] + house.lines(root, path))
    for path in house.files(root, ".cc"):
        if RULES in path.parents and path.parent != RULES and not any(name in words for name in spellings(path.stem)):
            yield house.Violation(path, 1, f"no file in {TESTS}/ mentions {path.stem}; write tests/rules/{path.stem}_test.cc")


LIST = {"rewriter/rules/list.cc": "", "rewriter/rules/fusion/fuse_conv_bn.cc": ""}
CLEAN = LIST | {"tests/rules/fusion_test.cc": "TEST(FuseConvBn, Folds) {}\n"}
PLANTED = [(LIST, "rewriter/rules/fusion/fuse_conv_bn.cc:1: no file in tests/rules/ mentions fuse_conv_bn"),
           (LIST | {"tests/rules/other_test.cc": "TEST(Other, Case) {}\n"}, "mentions fuse_conv_bn")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
