#!/usr/bin/env python3
"""Prints the public headers: those that src/fxgraph/fx.h includes, directly and through what these include.

tools/public_headers.py [ROOT]
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r"^\s*#\s*include\s*<fxgraph/([^>]+)>", re.MULTILINE)


def place(root, name):
    """<fxgraph/ir/graph.h> is src/ir/graph.h, <fxgraph/analysis/view.h> is analysis/view.h; None for what a build makes."""
    return next((path for path in (Path("src") / name, Path(name)) if (root / path).is_file()), None)


def public_headers(root):
    """Paths from `root`, sorted."""
    found, left = set(), [Path("src/fxgraph/fx.h")]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        names = INCLUDE.findall((root / path).read_text(encoding="utf-8"))
        left += [header for header in (place(root, name) for name in names) if header is not None]
    return sorted(found)


if __name__ == "__main__":
    print(*public_headers(Path(sys.argv[1] if len(sys.argv) > 1 else ".")), sep="\n")
