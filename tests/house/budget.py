#!/usr/bin/env python3
"""The house shrinks. budget.json holds the lines of product code, a ceiling for them, and for each pattern that is on its way
out the files that still have it: files leave a list, none joins. `budget.py --update` takes what shrank into budget.json."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import house

BUDGET = Path("tests/house/budget.json")
PRODUCT = ("src", "analysis", "matchers", "rewriter")


def in_product(path):
    return path.parts[0] in PRODUCT and path.suffix in (".cc", ".h")


def in_tests(path):
    return path.parts[0] == "tests" and path.suffix in (".cc", ".h", ".py", ".cmake", ".sh") and path.parts[1:2] != ("house",)


PROCESS_CALLS = (r"\b(v?fork|posix_spawnp?|waitpid|sigaction|signal|setitimer|siglongjmp|_?sigsetjmp|process_vm_readv"
                 r"|malloc_usable_size|mmap|syscall)\s*\(|\bstruct sigaction\b")
CLOCKS = (r"\bstd::clock\b|\b(steady|system|high_resolution)_clock\b|\bclock(_gettime)?\s*\(|\bgettimeofday\b|\bru_[us]time\b"
          r"|\btime\.(time|monotonic|perf_counter|process_time)\b|\bperformance\.now\b|\bDate\.now\b")


@dataclass(frozen=True)
class Ratchet:
    name: str
    forbidden: str  # regular expression, for code without its comments
    advice: str
    outside: str = "$^"  # regular expression of the paths where it may stand
    inside: str = ""     # and of those that it is about
    of: object = in_product


RATCHETS = [
    Ratchet("the tracer", f"{PROCESS_CALLS}|{CLOCKS}|\\bmemcpy\\b", "a tracer is a guest in its process; infer from what runs do",
            inside="src/(trace|retrace)/"),
    Ratchet("the tracer's casts", r"\breinterpret_cast\b", "a tracer reads no memory that it was not given",
            inside="src/(trace|retrace)/", outside="src/trace/(dispatch|caller|program_place|session)[^/]*$"),
    Ratchet("the process", PROCESS_CALLS + r"|\b(mallopt|malloc_trim|SetCPUAllocator|SetStackTraceFetcher|set_terminate"
            r"|setQEngine)\s*\(|\bstd::signal\b", "a library leaves the process to its owner; src/process is the place",
            outside="src/(process|audit|cli|trace|retrace)/"),
    Ratchet("kinds of calls", r"\b(AtenCall|BoundCall|CallPlan|BatchCall|CostCall)\b", "what a node calls is an fx::Call"),
    Ratchet("calls", r"\b(schema_of|overload_of|bound_argument|find_schema)\b|\bfind_overload\([^()]*\btarget\(\)\)", "ask fx::Call, which binds what a node calls",
            outside="src/ops/"),
    Ratchet("Python's functions", r'"(operator\.\w+|torch\._assert|builtins\.\w+|math\.\w+|torch\.nn\.functional\.[a-z]\w*|torch\.(amp|autograd)\.[\w.]+)"', "ops/python_symbols.h names them",
            outside="src/(ir|ops|contract|text|codegen|export)/"),
    Ratchet("aliases", r"\b(EffectIndex|ChangingStorages|KeptEffects)\b", "src/effects is the one analysis of aliases"),
    Ratchet("walks over aliases", r"\bfor_each_aliased_input\b", "src/effects is the one analysis of aliases", outside="src/effects/"),
    Ratchet("sizes", r"\b(SizeFitter|SizeTerms|Polynomial|FreeSizes|SizeBounds|InputForms)\b", "SizeExpr is the one engine for sizes"),
    Ratchet("assertions", r'(python::kAssert|"torch\._assert")\)?, ', "AssertionWriter is the one writer of assertions",
            outside="src/(contract/assertions\\.cc$|ops/records/)"),
    Ratchet("prose that is read", r"\bstrtou?ll\b|\bends_with\(kReason\)|\bfind\(\" must be", "read the condition, never its message"),
    Ratchet("files", r"\bjit::(load|pickle_load|Unpickler)\b", "one file opens what somebody sent, and checks it",
            outside="src/run/stored_values\\.cc$"),
    Ratchet("tests", CLOCKS, "a test counts; only tools/bench measures time", of=in_tests),
]

COMMENT = re.compile(r"//.*|^\s*#(?!include|define|if|el|end).*")


def holds(root, path, pattern):
    """The number of the first line of code with the pattern, or 0."""
    return next((number for number, line in house.lines(root, path) if pattern.search(COMMENT.sub("", line))), 0)


def found(root, ratchet):
    """{path: line} of the files that the ratchet is about and that break its rule."""
    pattern, inside, outside = (re.compile(text) for text in (ratchet.forbidden, ratchet.inside, ratchet.outside))
    places = {}
    for path in house.files(root):
        text = str(path)
        if ratchet.of(path) and inside.match(text) and not outside.match(text):
            line = holds(root, path, pattern)
            if line:
                places[text] = line
    return places


def folder_of(path):
    """src/<folder>, analysis, matchers, rewriter and the folders in it."""
    return "/".join(path.parts[:-1][:2])


def product_lines(root):
    folders = {}
    for path in filter(in_product, house.files(root, ".cc", ".h")):
        folder = folder_of(path)
        folders[folder] = folders.get(folder, 0) + (root / path).read_bytes().count(b"\n")
    return folders


def check(root, _options):
    budget = json.loads((root / BUDGET).read_text(encoding="utf-8"))
    folders = product_lines(root)
    total = sum(folders.values())
    if total > budget["ceiling"]:
        yield house.Violation(BUDGET, 1, f"{total} lines of product code, {budget['ceiling']} allowed; take some away")
    for folder in sorted(folders.keys() | budget["folders"].keys()):
        now, then = folders.get(folder, 0), budget["folders"].get(folder, 0)
        if now != then:
            yield house.Violation(BUDGET, 1, f"{folder} has {now} lines of code, {then} are written down; run budget.py --update")
    for ratchet in RATCHETS:
        places, listed = found(root, ratchet), budget["ratchets"].get(ratchet.name, [])
        for path in sorted(places.keys() - set(listed)):
            yield house.Violation(Path(path), places[path], f"'{ratchet.name}' admits no more files: {ratchet.advice}")
        for path in sorted(set(listed) - places.keys()):
            yield house.Violation(Path(path), 1, f"has left the list of '{ratchet.name}'; run budget.py --update")


def update(root):
    import glossary  # which reads this file

    path = root / BUDGET
    budget = json.loads(path.read_text(encoding="utf-8"))
    folders = product_lines(root)
    budget["lines"] = sum(folders.values())
    budget["folders"] = dict(sorted(folders.items()))
    for ratchet in RATCHETS:
        listed = budget["ratchets"].get(ratchet.name, [])
        budget["ratchets"][ratchet.name] = sorted(set(listed) & found(root, ratchet).keys())
    counts = glossary.files_with(root, glossary.replaced(root).keys())
    budget["words"] = {word: min(then, counts[word]) for word, then in budget["words"].items() if counts[word]}
    path.write_text(json.dumps(budget, indent=1) + "\n", encoding="utf-8")


def budget_of(ceiling=100, folders=None, **ratchets):
    return json.dumps({"ceiling": ceiling, "folders": folders or {"src/ir": 1}, "ratchets": ratchets})


CLEAN = {str(BUDGET): budget_of(aliases=["src/ir/a.cc"]), "src/ir/a.cc": "EffectIndex index;  // fork() is not called\n",
         "tests/a_test.cc": "// steady_clock\n"}


def planted(path, text, words):
    folder = folder_of(Path(path))
    lines = {"src/ir": 1} | ({folder: ({"src/ir": 1}.get(folder, 0)) + text.count("\n")} if in_product(Path(path)) else {})
    return CLEAN | {path: text, str(BUDGET): budget_of(folders=lines, aliases=["src/ir/a.cc"])}, words


PLANTED = [
    planted("src/trace/a.cc", "const pid_t child = fork();\n", "src/trace/a.cc:1: 'the tracer' admits no more"),
    planted("src/trace/a.cc", "\nstd::clock();\n", "src/trace/a.cc:2: 'the tracer' admits no more"),
    planted("src/trace/a.cc", "auto p = reinterpret_cast<char*>(q);\n", "'the tracer's casts' admits no more"),
    planted("src/run/a.cc", "mallopt(M_TRIM_THRESHOLD, 1);\n", "'the process' admits no more"),
    planted("src/run/a.cc", "const AtenCall call(node);\n", "'kinds of calls' admits no more"),
    planted("analysis/a.cc", "const auto* schema = schema_of(node);\n", "analysis/a.cc:1: 'calls' admits no more"),
    planted("src/trace/a.cc", 'node.is_call("operator.getitem");\n', "'Python's functions' admits no more"),
    planted("rewriter/rules/fusion/a.cc", "EffectIndex index;\n", "'aliases' admits no more"),
    planted("rewriter/a.cc", "for_each_aliased_input(node, f);\n", "'walks over aliases' admits no more"),
    planted("src/export/a.cc", "SizeFitter fitter;\n", "'sizes' admits no more"),
    planted("src/run/a.cc", "std::strtoull(message.c_str());\n", "'prose that is read' admits no more"),
    planted("src/cli/a.cc", "torch::jit::load(path);\n", "'files' admits no more"),
    planted("tests/trace/a_test.cc", "const auto start = std::chrono::steady_clock::now();\n", "'tests' admits no more"),
    (CLEAN | {"src/ir/b.cc": "\n"}, "src/ir has 2 lines of code, 1 are written down"),
    (CLEAN | {"src/ir/a.cc": "\n"}, "src/ir/a.cc:1: has left the list of 'aliases'"),
    (CLEAN | {str(BUDGET): budget_of(0, aliases=["src/ir/a.cc"])}, "1 lines of product code, 0 allowed"),
]

if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update(house.ROOT)
    else:
        house.main(check, CLEAN, PLANTED)
