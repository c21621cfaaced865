"""What the checks of the house share. A check is a script with

    check(root, options)  yields a Violation for every place that breaks the rule
    CLEAN                 a small tree, {path: text or bytes}, in which it finds nothing
    PLANTED               [(tree, words)]: trees with a violation planted, and words its report must contain

`<script>` checks the repository; `<script> --self-test` proves on CLEAN and PLANTED that the check can pass and can fail.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", "build", "install", "__pycache__", ".cache"}


@dataclass(frozen=True)
class Violation:
    path: Path
    line: int
    message: str  # what is wrong, and what to do

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


def files(root, *suffixes):
    """The files of the project as paths from `root`, sorted: what git tracks or would track; all, where there is no git."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listing.returncode == 0:
        paths = [Path(os.fsdecode(name)) for name in listing.stdout.split(b"\0") if name]
    else:
        paths = [path for path in (found.relative_to(root) for found in root.rglob("*")) if not NOT_OURS & set(path.parts)]
    return sorted({path for path in paths
                   if (not suffixes or path.suffix in suffixes or path.name in suffixes) and (root / path).is_file()})


def lines(root, path):
    """The numbered lines of a text file; none for a binary file, and for what another test took away meanwhile."""
    try:
        text = (root / path).read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return []
    return [] if "\0" in text else list(enumerate(text.splitlines(), start=1))


def main(check, clean, planted, add_options=lambda parser: None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--self-test", action="store_true")
    add_options(parser)
    options = parser.parse_args()
    if options.self_test:
        sys.exit(self_test(check, clean, planted, options))
    violations = list(check(options.root, options))
    for violation in violations:
        print(violation)
    sys.exit(f"{len(violations)} violations" if violations else 0)


def self_test(check, clean, planted, options):
    failures = 0
    for tree, words in [(clean, None)] + planted:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for path, text in tree.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
            report = "\n".join(str(violation) for violation in check(root, options))
        if (report != "") if words is None else (words not in report):
            failures += 1
            print(f"expected {words or 'nothing'!r} for {tree}\nreported {report!r}\n")
    print(f"{1 + len(planted)} trees, {failures} failures")
    return 1 if failures else 0
