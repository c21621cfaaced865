#!/usr/bin/env python3
"""docs/from-torch-fx.md says what there is: each name in code in the second column of its tables is a word of some header,
a rule, or a command of the program; a name that has "–" there is declared in no public header; and the first column has
every public name of torch.fx, where the version of PyTorch that the page is about is installed (`module.*` is all of a
module). Sections that are named like classes are about their members."""

import ast
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

import house

PAGE = Path("docs/from-torch-fx.md")
VERSION = "1.13."  # LibTorch's on Debian 12
DEBIANS = Path("/usr/lib/python3/dist-packages/torch")  # for a Python that is not Debian's
CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
WHOLE = re.compile(r"([\w.]+)\.\*")
COMMENT = re.compile(r"//.*")
# Words of C++ and of the page's own snippets.
OTHERS = {"auto", "at", "std", "cout", "torch", "fx", "gm", "graph", "node", "n", "t", "a", "b", "x", "file", "true", "false", "side_effect"}
CLASSES = {"Tracer": ("Tracer", "TracerBase"), "Graph": ("Graph",), "Node": ("Node",), "GraphModule": ("GraphModule",),
           "Interpreter and Transformer": ("Interpreter", "Transformer")}


def names(code):
    """`replace_pattern(gm, p)` -> replace_pattern; `fuse-conv-bn` and `fxgraph draw` are looked up whole."""
    head = code.split("(")[0]
    return [code] if "-" in head else WORD.findall(head)


def rows(root):
    """Yields number, section and cells of each row of the page's tables."""
    section = ""
    for number, line in house.lines(root, PAGE) if (root / PAGE).is_file() else []:
        section = line[3:] if line.startswith("## ") else section
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 4 and not set(cells[1]) <= {"-"}:
            yield number, section, cells


def declares(text, name):
    return re.search(rf"\b(?:class|struct|enum|using|concept) {name}\b|(?<!return)(?:\w|[>&*]) [&*]?{name}\(", text)


def wrongly_none(section, cells, headers):
    """Yields what a row without a counterpart names and a header has all the same."""
    classes = CLASSES.get(section, ())
    for code in CODE.findall(cells[1]) if cells[2] == "–" else []:
        name = (WORD.findall(code.split("(")[0]) or [""])[-1]
        for spelling in () if code.endswith(".*") else {name, name.removeprefix("get_")}:
            for path, text in headers.items():
                if (not classes or any(re.search(rf"\bclass {owner}\b[^;]*{{", text) for owner in classes)) and declares(text, spelling):
                    yield f"{path} declares '{spelling}'; say in the table what it is to '{name}'"


# ── torch.fx ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def installed():
    """The folder of the torch.fx that the page is about; none where it is not installed, or another version."""
    found = importlib.util.find_spec("torch")
    for package in [Path(place) for place in (found.submodule_search_locations or [] if found else [])] + [DEBIANS]:
        if (package / "version.py").is_file() and f"'{VERSION}" in (package / "version.py").read_text(encoding="utf-8"):
            return package / "fx"
    return None


def own_names(tree):
    """`__all__` where a module has it, else its functions and classes."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return [entry.value for entry in node.value.elts]
    return [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


@lru_cache(maxsize=None)
def public_names(package):
    """Pairs of a module's name and a public name in it, the members of CLASSES among them, which are in no module."""
    found = set()
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name == "__init__.py":
            for node in tree.body:
                found |= {(module, alias.asname or alias.name) for alias in getattr(node, "names", []) if getattr(node, "level", 0)
                          and not list(path.parent.glob(alias.name + "*"))}
        elif not re.search(r"(^|\.)(_|tests\b)", module):
            found |= {(module, name) for name in own_names(tree)}
        members = [node for node in tree.body if isinstance(node, ast.ClassDef) and any(node.name in owners for owners in CLASSES.values())]
        found |= {("", entry.name) for node in members for entry in node.body if isinstance(entry, ast.FunctionDef)}
    return {(module, name) for module, name in found if not name.startswith("_") and name != "*"}


def left_out(package, cells):
    codes = [code for _, _, row in cells for code in CODE.findall(row[1])]
    words = {word for code in codes for word in WORD.findall(code)}
    whole = tuple(f".{match.group(1)}." for code in codes if (match := WHOLE.fullmatch(code)))
    for module, name in sorted(public_names(package)):
        if name not in words and not any(prefix in f".{module}." for prefix in whole):
            yield f"torch.fx has '{name}'{' in ' + module if module else ''}, and no row names it; add one"


def check(root, options):
    headers = [path for path in house.files(root, ".h", ".cc") if path.parts[0] not in ("tests", "bench", "examples", "torch")]
    known = {word for path in headers for _, line in house.lines(root, path) for word in WORD.findall(line)}
    texts = {path: (root / path).read_text(encoding="utf-8") for path in headers}
    sources = "\n".join(text for path, text in texts.items() if path.suffix == ".cc")
    public = {path: COMMENT.sub("", text) for path, text in texts.items() if path.suffix == ".h" and "cli" not in path.parts}
    table = list(rows(root))
    for number, section, cells in table:
        for name in (name for code in CODE.findall(cells[2]) for name in names(code)):
            if name not in known and name not in OTHERS and f'"{name}"' not in sources:
                yield house.Violation(PAGE, number, f"there is no '{name}' in the sources; correct the table")
        for problem in wrongly_none(section, cells, public):
            yield house.Violation(PAGE, number, problem)
    package = root / "torch" if options.self_test else installed()
    for problem in left_out(package, table) if package and package.is_dir() else []:
        yield house.Violation(PAGE, 1, problem)


SOURCES = {"src/a.h": "class Tracer { void trace(); };\nvoid source_partitions(int);\n", "src/r.cc": 'rule("fuse-conv-bn");\n'}
TABLE = "| torch.fx | here | |\n|---|---|---|\n| `Tracer` | {} | a note about `nothing` |\n"
CLEAN = SOURCES | {str(PAGE): TABLE.format("`Tracer::trace(x)`, the rule `fuse-conv-bn`")}
NONE = "| `{}` | – | |\n"
FX = {"torch/__init__.py": "from .node import Tracer, wrap\nfrom . import node\n", "torch/passes/a.py": "def run(): pass\ndef _no(): pass\n",
      "torch/node.py": "__all__ = ['Tracer']\nclass Tracer:\n  def path(self): pass\ndef wrap(): pass\n"}
TRACER = "## Tracer\n" + TABLE.format("`Tracer`") + NONE.format("path")
PLANTED = [(SOURCES | {str(PAGE): TABLE.format("`Recorder`")}, "docs/from-torch-fx.md:3: there is no 'Recorder'"),
           (SOURCES | {str(PAGE): TABLE.format("`fuse-bn-conv`")}, "there is no 'fuse-bn-conv'"),
           (CLEAN | {str(PAGE): NONE.format("utils.get_source_partitions(graph)")}, "docs/from-torch-fx.md:1: src/a.h declares 'source_partitions'"),
           (CLEAN | {str(PAGE): TRACER + NONE.format("trace(f)")}, "src/a.h declares 'trace'"),
           (SOURCES | FX | {str(PAGE): TRACER + NONE.format("passes.*")}, "docs/from-torch-fx.md:1: torch.fx has 'wrap' in __init__, and"),
           (SOURCES | FX | {str(PAGE): TRACER + NONE.format("wrap")}, "torch.fx has 'run' in passes.a, and"),
           (SOURCES | FX | {str(PAGE): TRACER.replace("path", "wrap")}, "torch.fx has 'path', and")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
