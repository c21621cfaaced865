#!/usr/bin/env python3
"""Every rule has a test. Rewrites are tested as they are: EveryRewrite (tests/rules/rules_test.cc) holds each to its promise,
whether they apply wherever they fit or where apply_fastest finds them faster. A family with a pass of its own, in a subfolder of
rewriter/rules/, is named, in some spelling, by a file in tests/rules/."""

import re
from pathlib import Path

import house

RULES = Path("rewriter/rules")
TESTS = Path("tests/rules")
FOR_ALL = "EveryRewrite"
ROW = re.compile(r"^ +\.(rewrites|pass) = (\w+)", re.MULTILINE)


def spellings(stem):
    words = stem.split("_")
    return {stem, "-".join(words), "".join(word.capitalize() for word in words)}


def is_all_rewrites(text):
    rows = ROW.findall(text)
    return ("rewrites" in dict(rows)) and all(kind == "rewrites" or name.startswith("apply_fastest") for kind, name in rows)


def check(root, _options):
    tests = [path for path in house.files(root) if TESTS in path.parents]
    words = "\n".join(line for path in tests for _, line in [(0, str(path))] + house.lines(root, path))
    for path in house.files(root, ".cc"):
        if RULES not in path.parents or path.parent == RULES:
            continue
        if FOR_ALL in words and is_all_rewrites((root / path).read_text(encoding="utf-8")):
            continue
        if not any(name in words for name in spellings(path.stem)):
            yield house.Violation(path, 1, f"no file in {TESTS}/ mentions {path.stem}; write tests/rules/{path.stem}_test.cc")


SIGNS = "rewriter/rules/simplify/signs.cc"
REWRITES = "          .promise = Promise::bit_exact,\n          .rewrites = signs,\n"
MEASURED = REWRITES + "          .pass = apply_fastest,\n"
PASS = "          .promise = Promise::bit_exact,\n          .pass = fold,\n"
FOR_REWRITES = {"tests/rules/rules_test.cc": "class EveryRewrite {};\n"}
LIST = {"rewriter/rules/list.cc": "", "rewriter/rules/fusion/fuse_conv_bn.cc": PASS}
CLEAN = LIST | FOR_REWRITES | {"tests/rules/fusion_test.cc": "TEST(FuseConvBn, Folds) {}\n", SIGNS: REWRITES,
                               "rewriter/rules/lowering/signs.cc": MEASURED}
PLANTED = [(LIST, "rewriter/rules/fusion/fuse_conv_bn.cc:1: no file in tests/rules/ mentions fuse_conv_bn"),
           (LIST | {"tests/rules/other_test.cc": "TEST(Other, Case) {}\n"}, "mentions fuse_conv_bn"),
           ({SIGNS: REWRITES, "tests/rules/other_test.cc": ""}, "mentions signs"),
           (FOR_REWRITES | {SIGNS: REWRITES + "          .pass = fold,\n"}, "mentions signs"),
           (FOR_REWRITES | {SIGNS: REWRITES + PASS}, "mentions signs")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
