#!/usr/bin/env python3
"""Code that a document shows is code that runs: a block under `<!-- examples/NAME.cc: PART -->` is the text between
`// [PART]` and `// [end]` in that example, without its indentation. `--write` puts it there."""

import re
import textwrap
from pathlib import Path

import house

BLOCK = re.compile(r"<!-- (examples/[\w.]+): ([\w ]+) -->\n```cpp\n(.*?)```\n", re.DOTALL)


def part_of(text, part):
    """The lines between the marks, or None."""
    found = re.search(rf"^[ ]*// \[{re.escape(part)}\]\n(.*?)^[ ]*// \[end\]$", text, re.DOTALL | re.MULTILINE)
    return textwrap.dedent(found.group(1)) if found else None


def blocks(root):
    """Document, line, example, part, shown text and the text that the example has (None: there is none)."""
    for path in house.files(root, ".md"):
        text = (root / path).read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            example, part, shown = block.groups()
            source = root / example
            wanted = part_of(source.read_text(encoding="utf-8"), part) if source.is_file() else None
            yield path, text.count("\n", 0, block.start()) + 1, example, part, shown, wanted


def check(root, options):
    for path, line, example, part, shown, wanted in blocks(root):
        if wanted is None:
            yield house.Violation(path, line, f"{example} has no part [{part}]; mark it with // [{part}] and // [end]")
        elif shown != wanted and not getattr(options, "write", False):
            yield house.Violation(path, line, f"this is not what {example} has as [{part}]; "
                                              "run tests/house/example_snippets.py --write")
    if getattr(options, "write", False):
        write(root)


def write(root):
    def cut(block):
        text = part_of((root / block.group(1)).read_text(encoding="utf-8"), block.group(2))
        return f"<!-- {block.group(1)}: {block.group(2)} -->\n```cpp\n{text}```\n"

    for path in {block[0] for block in blocks(root)}:
        text = (root / path).read_text(encoding="utf-8")
        (root / path).write_text(BLOCK.sub(cut, text), encoding="utf-8")


EXAMPLE = {"examples/a.cc": "int main() {\n  // [call]\n  if (x) {\n    f();\n  }\n  // [end]\n}\n"}
CLEAN = EXAMPLE | {"README.md": "Text\n<!-- examples/a.cc: call -->\n```cpp\nif (x) {\n  f();\n}\n```\n"}
PLANTED = [(EXAMPLE | {"README.md": "<!-- examples/a.cc: call -->\n```cpp\nf();\n```\n"}, "README.md:1: this is not what"),
           (EXAMPLE | {"README.md": "\n<!-- examples/a.cc: other -->\n```cpp\nf();\n```\n"}, "README.md:2: examples/a.cc has no part"),
           ({"README.md": "<!-- examples/b.cc: call -->\n```cpp\nf();\n```\n"}, "examples/b.cc has no part [call]")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED, lambda parser: parser.add_argument("--write", action="store_true"))
