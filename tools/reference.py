#!/usr/bin/env python3
"""The reference of every public name, by Doxygen. Public is what src/fxgraph/fx.h includes, directly and through that.

tools/reference.py FOLDER     writes FOLDER/html, and says what Doxygen found wrong
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r"^\s*#\s*include\s*<fxgraph/([^>]+)>", re.MULTILINE)
WARNING = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+): (?:warning: )?(?P<text>.+)")


def place(root, name):
    """Where the header <fxgraph/NAME> is, from `root`; None for one that the build makes."""
    places = (Path("src/fxgraph") / name, Path("src") / name, Path(name))
    return next((path for path in places if (root / path).is_file()), None)


def public_headers(root):
    """The names of the public headers, each with its place."""
    found, left = {}, ["fx.h"]
    while left:
        name = left.pop()
        path = place(root, name)
        if path is not None and name not in found:
            found[name] = path
            left += INCLUDE.findall((root / path).read_text(encoding="utf-8"))
    return dict(sorted(found.items()))


def make_reference(root, folder, html):
    """Runs Doxygen, whose files go to `folder`; returns what it warns of as (path from `root`, line, text), in order.

    It reads links by the names that users include headers by, as they are to stand in the reference.
    """
    headers = public_headers(root)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory).resolve()
        for name, path in headers.items():
            link = tree / "fxgraph" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((root / path).resolve())
        pages = sorted((root / "docs").glob("*.dox"))
        settings = (ROOT / "docs/Doxyfile").read_text(encoding="utf-8") + f"""
            INPUT = "{tree}/fxgraph" {" ".join(f'"{page}"' for page in pages)}
            RECURSIVE = YES
            FILE_PATTERNS = *.h *.dox
            FILTER_PATTERNS = "*.h=awk -f {ROOT}/docs/reference.awk"
            STRIP_FROM_PATH = "{tree}"
            STRIP_FROM_INC_PATH = "{tree}"
            OUTPUT_DIRECTORY = "{folder}"
            GENERATE_{"HTML" if html else "XML"} = YES
            """
        run = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True, check=False)
    if run.returncode != 0:
        sys.exit(f"doxygen failed:\n{run.stderr}")
    found = set()
    for line in run.stderr.splitlines():
        match = WARNING.match(line)
        if match is None:
            found.add((Path("docs/Doxyfile"), 1, line))
            continue
        path = Path(match["path"])
        if path.is_relative_to(tree / "fxgraph"):
            path = headers[str(path.relative_to(tree / "fxgraph"))]
        elif path.is_relative_to(root):
            path = path.relative_to(root)
        found.add((path, int(match["line"]), match["text"]))
    return sorted(found)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    WARNINGS = make_reference(ROOT, Path(sys.argv[1]).resolve(), html=True)
    for where, at, words in WARNINGS:
        print(f"{where}:{at}: {words}", file=sys.stderr)
    sys.exit(1 if WARNINGS else 0)
