#!/usr/bin/env python3
"""Every public name is documented: what src/fxgraph/fx.h brings, directly and through what it includes, as tools/docs writes it
down. Doxygen reads the headers and names what has no comment, and comments that speak of parameters that do not exist. It forgets
some (types without members, templates of operators), so what it wrote is looked through, too. Nothing need be said of destructors, of
constructors without parameters and of what is deleted; the values of an enumeration may be told by its own comment."""

import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import house

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from reference import make_reference, public_headers  # noqa: E402

SKIPPED = 77  # ctest takes it for a test that was left out
TYPES = ("class", "struct", "union", "concept")
UNDOCUMENTED = re.compile(r"(?:Compound|Member) (?P<name>.+?) (?:\(\w+\) of .+ )?is not documented\.")
ABSENT = re.compile(r"argument '(?P<parameter>\w+)' of command @param is not found in the argument list of (?P<name>.+)")


def advice(text):
    """What is wrong in words of ours."""
    if found := UNDOCUMENTED.search(text):
        return f"{found['name']} has no comment; say with /// what its user must know"
    if found := ABSENT.search(text):
        return f"{found['name']} has no parameter {found['parameter']}; mend the comment"
    return f"Doxygen cannot read a comment: {text}"


def is_empty(element, *names):
    parts = [element.find(name) for name in names]
    return not any("".join(part.itertext()).strip() for part in parts if part is not None)


def speaks_for_itself(member):
    name, arguments = member.findtext("name"), member.findtext("argsstring") or ""
    if member.get("kind") == "friend":
        return arguments == ""  # a class
    is_constructor = is_empty(member, "type") and not name.startswith("operator")
    return name.startswith("~") or is_constructor and arguments.startswith("()") or bool(re.search(r"=\s*(delete|default)", arguments))


def without_comment(folder):
    """What stands in Doxygen's XML and nothing is said of: (header, line, name)."""
    for path in sorted(folder.glob("*fx*.xml")):
        for compound in ElementTree.parse(path).iter("compounddef"):
            if compound.get("prot", "public") == "private":
                continue
            names = [(compound, compound.findtext("compoundname"))] if compound.get("kind") in TYPES else []
            names += [(member, member.findtext("qualifiedname") or member.findtext("name")) for member in compound.iter("memberdef")
                      if member.get("prot") != "private" and not speaks_for_itself(member)]
            for element, name in names:
                if is_empty(element, "briefdescription", "detaileddescription"):
                    place = element.find("location")
                    yield place.get("file").removeprefix("fxgraph/"), int(place.get("line")), name


def check(root, _options):
    with tempfile.TemporaryDirectory() as directory:
        found = {(path, line): advice(text) for path, line, text in make_reference(root, Path(directory), html=False)}
        headers = public_headers(root)
        for header, line, name in without_comment(Path(directory) / "xml"):
            found.setdefault((headers[header], line), advice(f"Member {name} is not documented."))
    yield from (house.Violation(*place, text) for place, text in sorted(found.items()))


UMBRELLA = {"src/fxgraph/fx.h": "// All.\n#pragma once\n#include <fxgraph/ir/a.h>\n"}


def tree(text):
    return UMBRELLA | {"src/ir/a.h": f"// A header.\n#pragma once\n#include <fxgraph/ir/b.h>\nnamespace fx {{\n{text}\n}}\n",
                       "src/ir/b.h": "// Another.\n#pragma once\n"}


CLEAN = tree("/// Adds one to `x`.\nint f(int x);\n/// A thing.\nstruct S {\n  S();\n  ~S();\n  int a = 0;  ///< its size\n"
             "  /// Both ends.\n  /// @{\n  int begin = 0;\n  int end = 0;\n  /// @}\n private:\n  int b = 0;\n};\n"
             "/// Yes or no.\nenum class E { yes, no };\nnamespace internal {\nint g();\n}") | {"src/ir/c.h": "int nobody_includes_this();\n"}
PLANTED = [
    (tree("int f(int x);"), "src/ir/a.h:5: f(int x) has no comment"),
    (tree("struct S {};"), "src/ir/a.h:5: fx::S has no comment"),
    (tree("template <typename T>\nconcept C = sizeof(T) == 1;"), "fx::C has no comment"),
    (tree("/// A thing.\nstruct S {\n  int a = 0;\n};"), "src/ir/a.h:7: a has no comment"),
    (tree("/// A thing.\nstruct S {\n  S() = default;\n  template <typename T> int operator()(T t);\n};"), "operator()(T t) has no comment"),
    (tree("/// A thing.\nstruct S {\n  explicit operator bool() const;\n};"), "src/ir/a.h:7: operator bool() const has no comment"),
    (tree("enum class E { yes, no };"), "src/ir/a.h:5: E has no comment"),
    (tree("/// Adds one.\n/// @param y the number\nint f(int x);"), "has no parameter y"),
    (tree("/// Adds <b>one.\nint f(int x);"), "Doxygen cannot read a comment"),
    (tree("") | {"src/ir/b.h": "// Another.\n#pragma once\nint f();\n"}, "src/ir/b.h:3: f() has no comment"),
]

if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        print("Doxygen is not installed, so nobody looked for public names without a comment; tools/install-deps --with-doxygen")
        sys.exit(SKIPPED)
    house.main(check, CLEAN, PLANTED)
