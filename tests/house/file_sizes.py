#!/usr/bin/env python3
"""Source files stay readable: 400 lines at most, unless a reason stands here."""

import house
from pathlib import Path

LIMIT = 400
CMAKE_LIMIT = 150
EXCEPTIONS = {
    "src/ops/records/builtin_schemas.cc": (2000, "a table, one operator schema a line"),
}


def limit_of(path):
    if str(path) in EXCEPTIONS:
        return EXCEPTIONS[str(path)][0]
    return CMAKE_LIMIT if path.name == "CMakeLists.txt" else LIMIT


def check(root, _options):
    for path in house.files(root, ".h", ".cc", ".py", ".sh", "CMakeLists.txt"):
        count, limit = len(house.lines(root, path)), limit_of(path)
        if count > limit:
            yield house.Violation(path, limit + 1, f"{count} lines, {limit} allowed; split it by concept")
    if root == house.ROOT:
        for path in EXCEPTIONS:
            if not (root / path).is_file():
                yield house.Violation(Path(path), 1, "an exception for a file that is not there; drop it")


CLEAN = {"src/ir/a.cc": "\n" * LIMIT, "tests/a.txt": "\n" * 5000}
PLANTED = [
    ({"src/ir/a.cc": "\n" * (LIMIT + 1)}, f"src/ir/a.cc:{LIMIT + 1}: {LIMIT + 1} lines"),
    ({"CMakeLists.txt": "\n" * (CMAKE_LIMIT + 1)}, "split it"),
]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
