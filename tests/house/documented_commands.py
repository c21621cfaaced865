#!/usr/bin/env python3
"""What the documents tell a reader to type exists: the scripts in tools/, the subcommands and options of `fxgraph` (when
the program is built), and the files that links lead to."""

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
    for path in house.files(root, ".md"):
        for number, problem in check_document(root, path, program):
            yield house.Violation(path, number, f"{problem}; mend the text or the thing")


FAKE = {"fxgraph": "#!/bin/sh\nif [ $1 = --help ]; then echo '  show  print it'; else echo '  --format TEXT'; fi\n", "tools/test": ""}
CLEAN = FAKE | {"README.md": "Run `tools/test`, see [this](docs/a.md#part) or [that](https://example.org).\n"
                             "```console\n$ fxgraph show a.pt \\\n    --format table  # not --this\nfxgraph 0.1\n```\n", "docs/a.md": ""}
PLANTED = [(FAKE | {"README.md": text}, words) for text, words in [
    ("Run `tools/no-such`.\n", "README.md:1: there is no tools/no-such"),
    ("See [this](docs/none.md).\n", "docs/none.md, which is not there"),
    ("```console\n$ fxgraph paint a.pt\n```\n", "README.md:2: fxgraph has no command 'paint'"),
    ("```sh\nfxgraph show a.pt \\\n  --colour\n```\n", "README.md:3: fxgraph show has no option --colour"),
]]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED,
               lambda parser: parser.add_argument("--program", default="", help="the program fxgraph; skipped when it is not built"))
