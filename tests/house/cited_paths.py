#!/usr/bin/env python3
"""Documents name files and folders that are there: links between documents, and paths between backticks. Lists of what is in
a folder name all of it."""

import re
from pathlib import Path

import house

ROOMS = ("src", "analysis", "matchers", "rewriter", "bench", "tests", "examples", "docs", "tools", "cmake", "packaging")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
QUOTED = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(ROOMS))
HEADER = re.compile(r"<fxgraph/([\w./]+\.h)>")
MADE_BY_CMAKE = {"config.h"}
# Which document lists what is in which folder, and how it spells an entry. An entry with a suffix is a file, any other a folder.
LISTS = [("docs/decisions/README.md", "docs/decisions", ".md", r"\]\({}\)"),
         ("README.md", "docs", ".md", r"\]\(docs/{}\)"),
         ("README.md", ".", "", r"`{}`|`{}/"),
         ("README.md", "src", "", r"`src/{}`"),
         ("CONTRIBUTING.md", "src", "", r"`src/{}`"),
         ("CONTRIBUTING.md", "rewriter", "", r"`rewriter/{}`"),
         ("CONTRIBUTING.md", "rewriter/rules", "", r"`rewriter/rules/[<\w|]*\b{}\b")]


def problems(root, document, line):
    for link in LINK.findall(line):
        if not link.startswith(("http:", "https:", "mailto:")) and not (root / document.parent / link).exists():
            yield f"there is no {link}"
    for path in QUOTED.findall(line):
        if not (root / path).exists() and not (root / path.rstrip("/.")).exists() and not stem_exists(root, path):
            yield f"there is no {path}"
    for header in HEADER.findall(line):
        places = (root / "src" / header, root / header, root / "src/fxgraph" / header, root / "tests" / header)
        if header not in MADE_BY_CMAKE and not any(place.is_file() for place in places):
            yield f"there is no header <fxgraph/{header}>"


def stem_exists(root, path):
    """`src/run/plan` stands for the .h and .cc of that name."""
    return any((root / path).parent.glob(Path(path).name + ".*")) if (root / path).parent.is_dir() else False


def entries(root, folder, suffix):
    """The names of the files with that suffix in a folder, or of the folders in it; a README lists and is not listed."""
    inside = [path.relative_to(folder) for path in house.files(root) if path.is_relative_to(folder)]
    return sorted({path.parts[0] for path in inside if not path.parts[0].startswith((".", "README"))
                   and (len(path.parts) == 1 and path.suffix == suffix if suffix else len(path.parts) > 1)})


def check(root, _options):
    for document, folder, suffix, spelling in LISTS:
        if not (root / document).is_file():
            continue
        text = (root / document).read_text(encoding="utf-8")
        for name in entries(root, folder, suffix):
            if not re.search(spelling.replace("{}", re.escape(name)), text):
                yield house.Violation(document, 1, f"{folder}/{name} is not in its list; add a line")
    for document in house.files(root, ".md"):
        if document.parts[0] == "tests":
            continue
        for number, line in house.lines(root, document):
            for problem in problems(root, document, line):
                yield house.Violation(document, number, f"{problem}; mend the document")


CLEAN = {"README.md": "see [ir](docs/ir.md#graph), `src/ir/graph.h`, `src/ir/graph` and <fxgraph/ir/graph.h>, `docs/*.md`\n"
                      "| `src/ir` | | `docs` | [ir](docs/ir.md)\n",
         "docs/ir.md": "[up](../README.md) [far](https://example.org/none)\n", "src/ir/graph.h": ""}
PLANTED = [(CLEAN | {"README.md": text}, words) for text, words in [
    ("see [ir](docs/gone.md)\n", "README.md:1: there is no docs/gone.md"),
    ("\n`src/module/graph.cc`\n", "README.md:2: there is no src/module/graph.cc"),
    ("#include <fxgraph/ir/gone.h>\n", "there is no header <fxgraph/ir/gone.h>"),
    ("`docs` `src/`\n[ir](docs/ir.md)\n", "README.md:1: src/ir is not in its list"),
]] + [(CLEAN | tree, words) for tree, words in [
    ({"docs/decisions/README.md": "none\n", "docs/decisions/a.md": ""}, "docs/decisions/README.md:1: docs/decisions/a.md is not in its list"),
    ({"CONTRIBUTING.md": "`src/ir` `rewriter/rules/<old|newer>/`\n", "rewriter/rules/new/a.cc": ""}, "rewriter/rules/new is not in its list"),
]]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
