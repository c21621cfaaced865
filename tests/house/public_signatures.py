#!/usr/bin/env python3
"""What users call takes and returns public types: no `internal::` stands in the public declarations of the headers that
src/fxgraph/fx.h brings. Private members may name internal types, and so may friends, bodies of functions, values of variables,
definitions of aliases and concepts (which give an internal type a public name), and namespaces called internal."""

import re
import sys
from pathlib import Path

import house

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from reference import public_headers  # noqa: E402

NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                      re.DOTALL | re.MULTILINE)
TYPE = re.compile(r"\b(class|struct|union)\s+(?:\w+\(\w*\)\s+)?[\w:]+(?:<[^{]*>)?(?:\s+final)?\s*(?::[^{]*)?$", re.DOTALL)
NAMESPACE = re.compile(r"\bnamespace\s+([\w:]*)\s*$")
ACCESS = re.compile(r"\b(public|protected|private)\s*:(?!:)")
# What may name internal types: the first declares no signature, the others do behind the name that they give or keep back.
FREE = re.compile(r"^\s*(?:(?:template\s*<[^;]*>\s*)?friend\b|(?:template\s*<[^;]*>\s*)?(?:using|concept)\b)", re.DOTALL)
PRIVATE_BASE = re.compile(r"\bprivate\s+(?:\w+::)*\w+")


def code_of(text):
    """The text with blanks in place of comments, strings and directives: places stay."""
    return NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def declared(statement):
    """What a declaration says to its users: neither what members and variables begin with nor private bases."""
    head = re.split(r"\)\s*(?:noexcept\s*)?:(?!:)", statement, maxsplit=1)[0]  # a constructor's members
    if re.match(r"[^(<]*=", head):  # a variable
        head = head.split("=")[0]
    return PRIVATE_BASE.sub(lambda found: " " * len(found[0]), head)


def statements(code):
    """(place, text) of each declaration that users see, and of the heads of what has a body."""
    scopes = []  # "open" for what is looked into and public, "private", "body"
    start = at = 0
    depth = 0  # of parentheses
    while at < len(code):
        letter = code[at]
        hidden = any(scope != "open" for scope in scopes)
        in_body = "body" in scopes
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "{":
            head = code[start:at]
            space = NAMESPACE.search(head)
            if not hidden and not space and depth == 0:
                yield start, head
            if depth > 0 or in_body:
                scopes.append("body")
            elif space:
                scopes.append("private" if "internal" in space[1].split("::") else "open")
            elif TYPE.search(head):
                scopes.append("private" if TYPE.search(head)[1] == "class" else "open")
            else:
                scopes.append("body")
            start = at + 1 if depth == 0 else start
        elif letter == "}":
            if scopes:
                scopes.pop()
            start = at + 1 if depth == 0 else start
        elif letter == ";" and depth == 0:
            if not hidden:
                yield start, code[start:at]
            start = at + 1
        elif letter == ":" and depth == 0 and scopes and not in_body:
            if found := ACCESS.search(code, max(start, at - 12), at + 1):
                if found.end() == at + 1:
                    scopes[-1] = "private" if found[1] == "private" else "open"
                    start = at + 1
        at += 1


def check(root, _options):
    for path in public_headers(root).values():
        code = code_of((root / path).read_text(encoding="utf-8"))
        for start, statement in statements(code):
            if FREE.match(statement):
                continue
            for found in re.finditer(r"\binternal::(\w+)", declared(statement)):
                line = code.count("\n", 0, start + found.start()) + 1
                yield house.Violation(path, line, f"a public declaration names {found[0]}; keep it private (a friend may reach it), "
                                                  "or declare this in an internal header")


def header(text):
    return {"src/fxgraph/fx.h": "#include <fxgraph/ir/a.h>\n", "src/ir/a.h": text,
            "src/ir/unseen.h": "namespace fx {\nvoid f(internal::Part);\n}\n"}


CLEAN = header("""#define PART internal::Part
namespace fx {
namespace internal { struct Part {}; void g(internal::Part); }
// internal::Part
/// internal::Part
class A : private internal::Base {
  internal::Part first_;
 public:
  using iterator = internal::Part;
  A(int i) : part_(internal::made(i)), other_{internal::made(i)} {}
  int size() const { return internal::size(part_, [] { return internal::Part(); }); }
  int limit = internal::kLimit;
  template <typename T>
  void set(T&& t) { set_part(internal::made(t)); }
  struct Inner { int i; };
 protected:
  void h();
 private:
  friend struct internal::Part;
  struct Own { internal::Part part; };
  void k(internal::Part part);
  internal::Part part_;
};
template <typename F>
concept Fits = internal::fits<F>();
inline int number() { if (true) { return internal::number(); } return 0; }
}
""")
PLANTED = [
    (header("namespace fx {\nvoid f(internal::Part part);\n}\n"), "src/ir/a.h:2: a public declaration names internal::Part"),
    (header("namespace fx {\ninternal::Part f() { return {}; }\n}\n"), "src/ir/a.h:2: a public"),
    (header("namespace fx {\nclass A {\n public:\n  const internal::Part& part() const { return *part_; }\n};\n}\n"), "src/ir/a.h:4: a public"),
    (header("namespace fx {\nclass A {\n public:\n  int f() { return 1; }\n  explicit A(std::shared_ptr<const internal::Part> part) : part_(part) {}\n"
            "};\n}\n"), "src/ir/a.h:5: a public"),
    (header("namespace fx {\nclass A {\n int i_;\n protected:\n  void f(int i,\n         internal::Part part = {});\n};\n}\n"), "src/ir/a.h:6: a public"),
    (header("namespace fx {\nstruct A : internal::Base {\n  int i;\n};\n}\n"), "src/ir/a.h:2: a public"),
    (header("namespace fx {\nstruct A {\n  internal::Part part;\n};\n}\n"), "src/ir/a.h:3: a public"),
    (header("namespace fx {\nclass A {\n  class B { public: int i; };\n public:\n  class C { public: internal::Part part; };\n};\n}\n"), "src/ir/a.h:5: a public"),
    (header("namespace fx {\ntemplate <typename F>\nrequires(internal::fits<F>()) struct A {\n};\n}\n"), "src/ir/a.h:3: a public"),
]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
