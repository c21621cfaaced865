#!/usr/bin/env python3
"""Every header of the folders without LibTorch compiles alone, without a warning in users' own builds. Those with LibTorch
would take minutes and are left out. Without --each, all are compiled together, in either order: that takes seconds, and finds
all but what each other order hides."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import house
from include_directions import libraries, owner


WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def headers(root):
    known = libraries((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    for path in house.files(root, ".h"):
        library = owner(known, path)
        if library is not None and not library.torch:
            yield path


def complaints(root, tree, paths, options):
    """What the compiler says of the headers, included in this order."""
    includes = "".join(f"#include <fxgraph/{path.relative_to('src') if path.parts[0] == 'src' else path}>\n" for path in paths)
    command = [options.compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, "-I", tree, "-x", "c++", "-"]
    run = subprocess.run(command, cwd=root, input=includes, text=True, capture_output=True, check=False)
    return run.stderr if run.returncode else ""


def compile_alone(root, tree, path, options):
    errors = complaints(root, tree, [path], options)
    if not errors:
        return None
    cause = next((line for line in errors.splitlines() if "error:" in line), errors.strip())
    return house.Violation(path, 1, f"does not compile alone ({cause}); include what it uses")


def include_tree(root, directory):
    """Links that give the headers the names they are included by, as the build makes them."""
    tree = Path(directory) / "fxgraph"
    tree.mkdir()
    for folder in [*(root / "src").iterdir(), *(root / name for name in ("analysis", "matchers", "rewriter"))]:
        if folder.is_dir():
            (tree / folder.name).symlink_to(folder.resolve())
    return directory


def check(root, options):
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(os.cpu_count()) as pool:
        tree = include_tree(root, directory)
        paths = list(headers(root))
        orders = [] if options.each else [paths, paths[::-1]]
        if orders and not any(pool.map(lambda order: complaints(root, tree, order, options), orders)):
            return
        yield from filter(None, pool.map(lambda path: compile_alone(root, tree, path, options), paths))


def add_options(parser):
    parser.add_argument("--compiler", default="c++", help="the C++ compiler")
    parser.add_argument("--each", action="store_true", help="each header by itself")


CMAKE = {"CMakeLists.txt": "fxgraph_library(ir src/ir)\nfxgraph_library(module src/module TORCH DEPS ir)\n"}
CLEAN = CMAKE | {"src/ir/a.h": "#include <vector>\nstd::vector<int> f();\n", "src/ir/b.h": "#include <fxgraph/ir/a.h>\n",
                 "src/module/m.h": "std::vector<int> f();\n"}
PLANTED = [(CMAKE | {"src/ir/a.h": "std::vector<int> f();\n"}, "src/ir/a.h:1: does not compile alone"),
           (CMAKE | {"src/ir/a.h": "inline int f(int a) { { int a = 1; return a; } }\n"},
            "src/ir/a.h:1: does not compile alone")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED, add_options)
