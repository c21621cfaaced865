#!/usr/bin/env python3
"""Nothing in the repository points to one machine's directories or puts work off to later."""

import re

import house

# Spelt in halves, or this file would break its own rule.
DIRECTORIES = ["/wo" "rk/", "/ho" "me/", "/ro" "ot/"]
LATER = ["TO" "DO", "FIX" "ME", "XX" "X"]
PATTERNS = [
    (re.compile(r"(?<![\w.}])(" + "|".join(DIRECTORIES) + ")"), "names a directory of one machine; use a relative path"),
    (re.compile(r"\b(" + "|".join(LATER) + r")\b"), "puts work off; do it, or open an issue"),
]


def check(root, _options):
    for path in house.files(root):
        for number, line in house.lines(root, path):
            for pattern, advice in PATTERNS:
                found = pattern.search(line)
                if found:
                    yield house.Violation(path, number, f"'{found.group(1)}' {advice}")


CLEAN = {"README.md": "a network/ of home/ roots; mktemp /tmp/a." + "X" * 6 + "\n", "src/frame" + DIRECTORIES[0] + "a.cc": ""}
PLANTED = [({"docs/a.md": f"\nsee {word}\n"}, f"docs/a.md:2: '{word}'") for word in DIRECTORIES + LATER]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
