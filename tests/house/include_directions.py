#!/usr/bin/env python3
"""Includes follow the layers of the house: a file includes its own folder and what that folder depends on, as the
fxgraph_library() lines of CMakeLists.txt say. LibTorch and Boost headers stay in the folders that may see them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import house

# What CMakeLists.txt may not grant, whatever it says.
MAY_SEE_TORCH = {"nn", "run", "module", "shapes", "torchscript", "pt2", "trace", "retrace", "program", "rules", "quantize", "partition", "testing",
                 "cli_torch"}
MAY_SEE_BOOST = {"analysis", "ops", "effects", "partition"}
STRANGERS = {("analysis", "matchers"), ("matchers", "analysis")}

HOUSE = ("src", "analysis", "matchers", "rewriter")
AROUND = ("tests", "bench", "examples")
UMBRELLA = Path("src/fxgraph")
# A stranger's project, built against the package, and one with a copy of fxgraph of its own.
CONSUMERS = {Path("tests/house/consumer"), Path("tests/copies")}
CONFIGURED = "fxgraph/config.h"  # made by CMake
GUIDE = Path("CONTRIBUTING.md")
ROW = re.compile(r"^\| `(\S+)` \|.*\| ?([^|]*?) ?\|$")
LIBRARY = re.compile(r"^fxgraph_library\((\w+) (\S+?)((?: [^)]*)?)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
BOOST = re.compile(r"^boost/")


@dataclass
class Library:
    name: str
    folder: Path
    torch: bool
    deps: list = field(default_factory=list)


def libraries(cmake):
    found = {}
    for name, folder, rest in LIBRARY.findall(cmake):
        words = rest.split()
        deps = []
        if "DEPS" in words:
            for word in words[words.index("DEPS") + 1:]:
                if word.isupper():
                    break
                deps.append(word)
        found[name] = Library(name, Path(folder), "TORCH" in words, deps)
    return found


def closure(all_libraries, name):
    reached, pending = set(), [name]
    while pending:
        current = pending.pop()
        if current not in reached:
            reached.add(current)
            pending += all_libraries[current].deps if current in all_libraries else []
    return reached


def owner(all_libraries, path):
    """The library whose folder is the innermost one around `path`."""
    around = [library for library in all_libraries.values() if library.folder in path.parents]
    return max(around, key=lambda library: len(library.folder.parts), default=None)


PREFIX = "fxgraph/"


def resolve(root, bracket, include):
    """The project's file that an include names: <fxgraph/ir/graph.h> is src/ir/graph.h, "tests/…" and "bench/…" are
    paths from the root."""
    if bracket == "<" and include.startswith(PREFIX):
        path = include[len(PREFIX):]
        candidates = [Path("src", path), Path(path), UMBRELLA / path, Path("tests", path)]
    elif bracket == '"' and include.startswith(AROUND):
        candidates = [Path(include)]
    else:
        return None
    return next((path for path in candidates if (root / path).is_file()), None)


class Place:
    """A file's part of the house, and so what it may include."""

    def __init__(self, all_libraries, path):
        self.path, self.libraries = path, all_libraries
        self.library = owner(all_libraries, path)
        self.around = path.parts[0] if path.parts[0] in AROUND else None
        if self.around == "tests":
            name = path.parts[1]
            if name == "fuzz":
                name = path.stem.removesuffix("_fuzz")  # a target may see what it gives bytes to
            self.library = self.library or all_libraries.get(name + "_torch", all_libraries.get(name))
        self.umbrella = UMBRELLA in path.parents
        self.is_consumer = not CONSUMERS.isdisjoint(path.parents)

    def may_see_torch(self):
        if self.around in ("bench", "examples") or self.umbrella or self.is_consumer:
            return True
        return self.library is not None and self.library.torch

    def may_see_boost(self):
        if self.around in ("bench", "examples"):
            return True
        return self.library is not None and self.library.name in MAY_SEE_BOOST

    def objection(self, target):
        """Why this file may not include the project's file `target`, or None."""
        if target.parts[0] in AROUND and owner(self.libraries, target) is None:
            return None if self.around in ("tests", "bench") else f"{target.parts[0]}/ is not part of the library"
        if self.around or self.umbrella:
            other = owner(self.libraries, target)
            if other is not None and other.torch and not self.may_see_torch():
                return f"{other.folder} needs LibTorch and {self.path.parent} does without"
            return None
        if UMBRELLA in target.parents:
            return "the umbrella header is for users; include what the file needs"
        other = owner(self.libraries, target)
        allowed = closure(self.libraries, self.library.name)
        if other is None or other.name in allowed:
            return None
        names = ", ".join(sorted(allowed - {self.library.name})) or "nothing"
        return f"{self.library.folder} may include {names}; move the code to a folder that may see both"


def broken_promises(all_libraries):
    for name, library in all_libraries.items():
        if library.torch and name not in MAY_SEE_TORCH:
            yield f"{name} may not see LibTorch; drop TORCH"
        for dep in sorted(closure(all_libraries, name)):
            if (name, dep) in STRANGERS:
                yield f"{name} may not know {dep}; the rewriter joins them"
            if dep in all_libraries and all_libraries[dep].torch and not library.torch:
                yield f"{name} does without LibTorch and so may not depend on {dep}"


def wrong_rows(root, all_libraries):
    """The table of CONTRIBUTING.md says what CMakeLists.txt says, by the names of folders."""
    if not (root / GUIDE).is_file():
        return
    rows = {}
    for number, line in house.lines(root, GUIDE):
        found = ROW.match(line)
        if found:
            rows[Path(found.group(1))] = (number, [word for word in found.group(2).split(", ") if word])
    for library in all_libraries.values():
        number, deps = rows.get(library.folder, (1, None))
        if deps is None and not any(folder in library.folder.parents for folder in rows):
            yield house.Violation(GUIDE, number, f"the table has no row for {library.folder}")
        folders = [all_libraries[dep].folder.name if dep in all_libraries else dep for dep in library.deps]
        if deps is not None and deps not in (["everything"], folders):
            yield house.Violation(GUIDE, number, f"{library.folder} depends on {', '.join(folders)}; mend the row")


def check(root, _options):
    cmake = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    known = libraries(cmake)
    for promise in broken_promises(known):
        yield house.Violation(Path("CMakeLists.txt"), 1, promise)
    yield from wrong_rows(root, known)
    for path in house.files(root, ".h", ".cc"):
        if path.parts[0] not in HOUSE + AROUND:
            continue
        place = Place(known, path)
        if path.parts[0] in HOUSE and place.library is None and not place.umbrella:
            yield house.Violation(path, 1, "in no library; give its folder an fxgraph_library() line in CMakeLists.txt")
            continue
        for number, line in house.lines(root, path):
            included = INCLUDE.match(line)
            problem = included and problem_with(root, place, *included.groups())
            if problem:
                yield house.Violation(path, number, f"includes {included.group(2)}: {problem}")


def problem_with(root, place, bracket, include):
    if TORCH.match(include):
        return None if place.may_see_torch() else "LibTorch headers stay in " + ", ".join(sorted(MAY_SEE_TORCH))
    if BOOST.match(include):
        return None if place.may_see_boost() else "Boost headers stay in " + ", ".join(sorted(MAY_SEE_BOOST))
    target = resolve(root, bracket, include)
    if target is not None:
        return place.objection(target)
    if bracket == '"' or include.startswith(PREFIX) and include != CONFIGURED:
        return "no such file; write <fxgraph/ir/graph.h> for the library's headers, \"tests/…\" for the tests'"
    return None


CMAKE = """fxgraph_library(ir src/ir)
fxgraph_library(analysis analysis DEPS ir LINKS Boost::headers)
fxgraph_library(matchers matchers DEPS ir)
fxgraph_library(rewriter rewriter EXCLUDE rules DEPS analysis matchers)
fxgraph_library(rules rewriter/rules TORCH DEPS rewriter)
"""
HEADERS = {"CMakeLists.txt": CMAKE, "src/ir/graph.h": "", "analysis/a.h": "", "matchers/m.h": "", "rewriter/r.h": "",
           "rewriter/rules/fuse.h": "", "tests/support/random.h": "", "src/fxgraph/fx.h": ""}
TABLE = "| `src/ir` | graph | |\n| `analysis` | | ir |\n| `matchers` | | ir |\n| `rewriter` | | analysis, matchers |\n"
CLEAN = HEADERS | {
    "CONTRIBUTING.md": TABLE,
    "src/ir/graph.cc": '#include <fxgraph/ir/graph.h>\n#include <vector>\n',
    "analysis/a.cc": '#include <boost/graph/dfs.hpp>\n#include <fxgraph/ir/graph.h>\n',
    "rewriter/r.cc": '#include <fxgraph/analysis/a.h>\n#include <fxgraph/matchers/m.h>\n#include <fxgraph/ir/graph.h>\n',
    "rewriter/rules/fuse.cc": '#include <torch/script.h>\n#include <fxgraph/rewriter/r.h>\n',
    "tests/analysis/a_test.cc": '#include <boost/graph/dfs.hpp>\n#include <fxgraph/matchers/m.h>\n#include "tests/support/random.h"\n',
    "tests/rules/fuse_test.cc": '#include <ATen/ATen.h>\n',
    "examples/first.cc": '#include <fxgraph/fx.h>\n#include <torch/torch.h>\n',
}
PLANTED = [(HEADERS | tree, words) for tree, words in [
    ({"src/ir/x.cc": '\n#include <fxgraph/analysis/a.h>\n'}, "src/ir/x.cc:2: includes fxgraph/analysis/a.h: src/ir may include nothing"),
    ({"analysis/x.h": '#include <fxgraph/matchers/m.h>\n'}, "analysis may include ir"),
    ({"rewriter/x.h": '#include <fxgraph/rewriter/rules/fuse.h>\n'}, "rewriter may include analysis, ir, matchers"),
    ({"src/ir/x.h": "#include <c10/core/Device.h>\n"}, "LibTorch headers stay"),
    ({"tests/ir/x_test.cc": "#  include <torch/torch.h>\n"}, "LibTorch headers stay"),
    ({"tests/ir/x_test.cc": '#include <fxgraph/rewriter/rules/fuse.h>\n'}, "needs LibTorch"),
    ({"matchers/x.cc": "#include <boost/graph/dfs.hpp>\n"}, "Boost headers stay"),
    ({"src/ir/x.cc": '#include "graph.h"\n'}, "no such file"),
    ({"src/ir/x.cc": '#include "tests/support/random.h"\n'}, "not part of the library"),
    ({"rewriter/x.cc": "#include <fxgraph/fx.h>\n"}, "umbrella"),
    ({"src/stray/x.cc": ""}, "in no library"),
    ({"CONTRIBUTING.md": TABLE.replace("analysis, matchers", "matchers")}, "CONTRIBUTING.md:4: rewriter depends on analysis, m"),
    ({"CONTRIBUTING.md": TABLE.replace("src/ir", "src/it")}, "no row for src/ir"),
    ({"CMakeLists.txt": CMAKE.replace("matchers DEPS ir", "matchers TORCH DEPS ir")}, "matchers may not see LibTorch"),
    ({"CMakeLists.txt": CMAKE.replace("matchers DEPS ir", "matchers DEPS analysis")}, "matchers may not know analysis"),
    ({"CMakeLists.txt": CMAKE + "fxgraph_library(late src/late DEPS rules)\n"}, "may not depend on rules"),
]]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
