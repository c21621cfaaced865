#!/usr/bin/env python3
"""A type has one definition: of two that share a name in one namespace, the linker keeps one's functions for both, silently."""

import re

import house

OPENED = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{$")
CLOSED = re.compile(r"^\}  // namespace")
DEFINED = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)(?: final)?(?: : [^;{]*)?(?: \{.*)?$")  # no specialisation, no A::B
UNNAMED = "(unnamed)"


def types_of(root, path):
    namespaces = []
    for number, line in house.lines(root, path):
        line = line.rstrip("\n")
        if opened := OPENED.match(line):
            namespaces.append(opened[1] or UNNAMED)
        elif CLOSED.match(line) and namespaces:
            namespaces.pop()
        elif (defined := DEFINED.match(line)) and UNNAMED not in namespaces:
            yield "::".join([*namespaces, defined[1]]), number


def check(root, _options):
    known = {}
    for path in house.files(root, ".h", ".cc"):
        if path.parts[0] in ("examples", "bench"):  # programs of their own
            continue
        for name, number in types_of(root, path):
            if name in known:
                yield house.Violation(path, number, f"{name} is also defined in {known[name]}; name one of them otherwise")
            known.setdefault(name, path)


CLEAN = {"src/ir/a.h": "namespace fx {\nstruct A;\nclass B : public A {\n};\n}  // namespace fx\n",
         "src/ir/a.cc": "namespace fx {\nnamespace {\nstruct C {\n};\n}  // namespace\n}  // namespace fx\n",
         "src/ir/b.cc": "namespace fx {\nnamespace {\nstruct C {\n};\n}  // namespace\n}  // namespace fx\n",
         "src/ir/c.h": "namespace fx::internal {\nstruct B {};\n}  // namespace fx::internal\n"}
PLANTED = [(CLEAN | {"src/run/b.h": "namespace fx {\nclass B final {\n};\n}  // namespace fx\n"}, "fx::B is also defined in"),
           (CLEAN | {"src/run/b.h": "namespace fx {\nnamespace internal {\nstruct B {};\n}  // namespace internal\n}  // namespace fx\n"},
            "fx::internal::B is also defined in")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
