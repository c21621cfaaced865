#!/usr/bin/env python3
"""Documents name files and folders that are there: links between documents, and paths between backticks."""

import re
from pathlib import Path

import house

ROOMS = ("src", "analysis", "matchers", "rewriter", "bench", "tests", "examples", "docs", "tools", "cmake", "packaging")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(ROOMS))
HEADER = re.compile(r"<fxgraph/([\w./]+\.h)>")
MADE_BY_CMAKE = {"config.h"}


def problems(root, document, line):
    for link in LINK.findall(line):
        if not link.startswith(("http:", "https:", "mailto:")) and not (root / document.parent / link).exists():
            yield f"there is no {link}"
    for path in QUOTED.findall(line):
        if not (root / path).exists() and not (root / path.rstrip("/.")).exists() and not stem_exists(root, path):
            yield f"there is no {path}"
    for header in HEADER.findall(line):
        places = (root / "src" / header, root / header, root / "src/fxgraph" / header)
        if header not in MADE_BY_CMAKE and not any(place.is_file() for place in places):
            yield f"there is no header <fxgraph/{header}>"


def stem_exists(root, path):
    """`src/run/plan` stands for the .h and .cc of that name."""
    return any((root / path).parent.glob(Path(path).name + ".*")) if (root / path).parent.is_dir() else False


def check(root, _options):
    for document in house.files(root, ".md"):
        if document.parts[0] == "tests":
            continue
        for number, line in house.lines(root, document):
            for problem in problems(root, document, line):
                yield house.Violation(document, number, f"{problem}; mend the document")


CLEAN = {"README.md": "see [ir](docs/ir.md#graph), `src/ir/graph.h`, `src/ir/graph` and <fxgraph/ir/graph.h>, `docs/*.md`\n",
         "docs/ir.md": "[up](../README.md) [far](https://example.org/none)\n", "src/ir/graph.h": ""}
PLANTED = [(CLEAN | {"README.md": text}, words) for text, words in [
    ("see [ir](docs/gone.md)\n", "README.md:1: there is no docs/gone.md"),
    ("\n`src/module/graph.cc`\n", "README.md:2: there is no src/module/graph.cc"),
    ("#include <fxgraph/ir/gone.h>\n", "there is no header <fxgraph/ir/gone.h>"),
]]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
