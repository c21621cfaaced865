#!/usr/bin/env python3
"""Words that docs/glossary.md replaces leave the product code for good: budget.json says in how many files one still is, a
word that it does not name is gone. `budget.py --update` takes what has left into it."""

import json
import re
from collections import Counter

import house
from budget import BUDGET, in_product

GLOSSARY = "docs/glossary.md"


def replaced(root):
    """{word: the word to use} of the last columns of the glossary's tables; a row without a first cell goes on with the last."""
    words, use = {}, ""
    for _, line in house.lines(root, GLOSSARY):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3:
            use = cells[0] or use
            words |= {word: use for word in re.findall(r"`([^`]+)`", cells[2])}
    return words


def files_with(root, words):
    """{word: number of files}. A word is whole; what includes a file named by it has it, too."""
    counts = Counter()
    for path in filter(in_product, house.files(root, ".cc", ".h")):
        counts.update(words & set(re.findall(r"\w+", (root / path).read_text(encoding="utf-8"))))
    return counts


def check(root, _options):
    words = replaced(root)
    leaving = json.loads((root / BUDGET).read_text(encoding="utf-8")).get("words", {})
    counts = files_with(root, words.keys())
    for word in sorted(words.keys() | leaving.keys()):
        now, then = counts[word], leaving.get(word, 0)
        if word not in words:
            yield house.Violation(BUDGET, 1, f"'{word}' is not in {GLOSSARY}; drop it")
        elif now > then:
            yield house.Violation(GLOSSARY, 1, f"'{word}' is in {now} files, {then} are allowed; say {words[word]}")
        elif now < then:
            yield house.Violation(BUDGET, 1, f"'{word}' has left files ({then} then, {now} now); run budget.py --update")


TABLE = "| Word | Means | Instead of |\n|---|---|---|\n| probe | A run. | sample, `trial` |\n| | | `sampled` |\n"
CLEAN = {GLOSSARY: TABLE, str(BUDGET): '{"words": {"trial": 1}}', "src/ir/a.h": "int trial, trials;\n", "docs/a.md": "sampled"}
PLANTED = [(CLEAN | {"src/ir/b.h": "// One trial.\n"}, "'trial' is in 2 files, 1 are allowed; say probe"),
           (CLEAN | {"src/ir/b.h": "int sampled;\n"}, "'sampled' is in 1 files, 0 are allowed; say probe"),
           (CLEAN | {"src/ir/a.h": ""}, "'trial' has left files (1 then, 0 now)"),
           (CLEAN | {str(BUDGET): '{"words": {"trial": 1, "other": 2}}'}, "'other' is not in")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
