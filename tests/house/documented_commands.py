#!/usr/bin/env python3
"""What the documents tell a reader to type exists: the scripts in tools/, the subcommands and options of `fxgraph` (when
the program is built), and the files that links lead to. And the program says what each of its options is for."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import house

FENCE = re.compile(r"^\s*```(\w*)")
SHELL = {"", "sh", "console"}
PROGRAM = re.compile(r"^(?:\$ )?(?:\S*/)?fxgraph +([a-z][a-z-]*)(.*)")
TOOL = re.compile(r"(?<![\w/.-])(tools/[\w-]+)(?![\w-]*[./])")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
COMMENT = re.compile(r"\s#.*")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# In what --help prints: the name of a command, the name of an option, and that with its description, which begins in column 30.
COMMAND = re.compile(r"^  ([a-z][a-z-]*)  ", re.MULTILINE)
ENTRY = re.compile(r"^  (\S[^ ]*)")
DESCRIBED = re.compile(r"^  \S.{26} \S")


@lru_cache(maxsize=None)
def help_text(program, *subcommand):
    run = subprocess.run([program, *subcommand, "--help"], text=True, capture_output=True, check=False)
    return run.stdout + run.stderr


def wrong_command(program, line):
    """Yields what in a command line the program does not know."""
    found = PROGRAM.match(line)
    if not found or not program:
        return
    subcommand, rest = found.groups()
    if not re.search(rf"^ +{subcommand}\b", help_text(program), re.MULTILINE):
        yield f"fxgraph has no command '{subcommand}'"
        return
    for option in OPTION.findall(rest):
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", help_text(program, subcommand)):
            yield f"fxgraph {subcommand} has no option {option}"


def undescribed(text):
    """Yields the options and arguments in a help text that have a name alone; a description may begin on the next line."""
    section, printed = "", text.splitlines()
    for line, following in zip(printed, printed[1:] + [""]):
        section = line if re.match(r"^[A-Z]\w*:$", line) else section
        entry = ENTRY.match(line)
        if entry and section in ("Positionals:", "Options:") and not DESCRIBED.match(line) and not re.match(r"^ {30}\S", following):
            yield entry.group(1)


def undescribed_options(program):
    for subcommand in [(), *((name,) for name in COMMAND.findall(help_text(program).partition("Subcommands:")[2]))]:
        for option in undescribed(help_text(program, *subcommand)):
            yield f"{' '.join(('fxgraph', *subcommand))} --help says nothing of {option}"


def check_document(root, path, program):
    language, command = None, ""
    for number, line in house.lines(root, path):
        fence = FENCE.match(line)
        if fence:
            language = fence.group(1) if language is None else None
            continue
        for tool in TOOL.findall(line):
            if not (root / tool).exists():
                yield number, f"there is no {tool}"
        if language is None:
            for link in LINK.findall(line):
                if not (root / path.parent / link).exists():
                    yield number, f"the link leads to {link}, which is not there"
        elif language in SHELL:
            command += COMMENT.sub("", line).rstrip("\\") + " "
            if not line.endswith("\\"):
                for problem in wrong_command(program, command):
                    yield number, problem
                command = ""


def check(root, options):
    program = options.program if options.program and Path(options.program).exists() else None
    if options.self_test:
        program = root / "fxgraph"
        program.chmod(0o755)
    for problem in undescribed_options(program) if program else []:
        yield house.Violation(Path("src/cli/program.cc"), 1, f"{problem}; give it a description")
    for path in house.files(root, ".md"):
        for number, problem in check_document(root, path, program):
            yield house.Violation(path, number, f"{problem}; mend the text or the thing")


HELP = "#!/bin/sh\nif [ $1 = --help ]; then echo 'Subcommands:\n  show  print it'; else echo 'Options:\n  --format TEXT{}'; fi\n"
FAKE = {"fxgraph": HELP.format("\n                              of what form"), "tools/test": ""}
CLEAN = FAKE | {"README.md": "Run `tools/test`, see [this](docs/a.md#part) or [that](https://example.org).\n"
                             "```console\n$ fxgraph show a.pt \\\n    --format table  # not --this\nfxgraph 0.1\n```\n", "docs/a.md": ""}
PLANTED = [(FAKE | {"README.md": text}, words) for text, words in [
    ("Run `tools/no-such`.\n", "README.md:1: there is no tools/no-such"),
    ("See [this](docs/none.md).\n", "docs/none.md, which is not there"),
    ("```console\n$ fxgraph paint a.pt\n```\n", "README.md:2: fxgraph has no command 'paint'"),
    ("```sh\nfxgraph show a.pt \\\n  --colour\n```\n", "README.md:3: fxgraph show has no option --colour"),
]] + [(FAKE | {"fxgraph": HELP.format("")}, "src/cli/program.cc:1: fxgraph show --help says nothing of --format")]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED,
               lambda parser: parser.add_argument("--program", default="", help="the program fxgraph; skipped when it is not built"))
