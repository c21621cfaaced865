#!/usr/bin/env python3
"""docs/from-torch-fx.md names things that exist: each name in code in the second column of its tables is a word of some header,
a rule, or a command of the program."""

import re
from pathlib import Path

import house

PAGE = Path("docs/from-torch-fx.md")
CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
# Words of C++ and of the page's own snippets.
OTHERS = {"auto", "at", "std", "cout", "torch", "fx", "gm", "graph", "node", "n", "t", "a", "b", "x", "file", "true", "false", "side_effect"}


def names(code):
    """`replace_pattern(gm, p)` -> replace_pattern; `fuse-conv-bn` and `fxgraph draw` are looked up whole."""
    head = code.split("(")[0]
    return [code] if "-" in head else WORD.findall(head)


def check(root, _options):
    headers = [path for path in house.files(root, ".h", ".cc") if path.parts[0] not in ("tests", "bench", "examples")]
    known = {word for path in headers for _, line in house.lines(root, path) for word in WORD.findall(line)}
    text = "\n".join((root / path).read_text(encoding="utf-8") for path in headers if path.suffix == ".cc")
    for number, line in house.lines(root, PAGE) if (root / PAGE).is_file() else []:
        cells = line.split("|")
        if len(cells) < 4 or set(cells[1].strip()) <= {"-"}:
            continue
        for code in CODE.findall(cells[2]):
            for name in names(code):
                if name not in known and name not in OTHERS and f'"{name}"' not in text:
                    yield house.Violation(PAGE, number, f"there is no '{name}' in the sources; correct the table")


SOURCES = {"src/a.h": "class Tracer { void trace(); };\n", "src/r.cc": 'rule("fuse-conv-bn");\n'}
TABLE = "| torch.fx | here | |\n|---|---|---|\n| `Tracer` | {} | a note about `nothing` |\n"
CLEAN = SOURCES | {str(PAGE): TABLE.format("`Tracer::trace(x)`, the rule `fuse-conv-bn`")}
PLANTED = [(SOURCES | {str(PAGE): TABLE.format("`Recorder`")}, "docs/from-torch-fx.md:3: there is no 'Recorder'"),
           (SOURCES | {str(PAGE): TABLE.format("`fuse-bn-conv`")}, "there is no 'fuse-bn-conv'")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
