#!/usr/bin/env python3
"""Nothing in the repository points to one machine's directories or puts work off to later, and no two tests share a file."""

import io
import re
import zipfile
import zlib

import house

# Spelt in halves, or this file would break its own rule.
DIRECTORIES = ["/wo" "rk/", "/ho" "me/", "/ro" "ot/"]
LATER = ["TO" "DO", "FIX" "ME", "XX" "X"]
SHARED = ["temp_directory" "_path", "Temp" "Dir"]
SCRATCH = "tests/support/scratch_folder.h"
PATTERNS = [
    (re.compile(r"(?<![\w.}])(" + "|".join(DIRECTORIES) + ")"), "names a directory of one machine; use a relative path"),
    (re.compile(r"\b(" + "|".join(LATER) + r")\b"), "puts work off; do it, or open an issue"),
]
IN_TESTS = PATTERNS + [
    (re.compile(r"\b(" + "|".join(SHARED) + r")\b"), f"is shared by tests that run side by side; use ScratchFolder ({SCRATCH})"),
]


# On purpose, for a fuzz target; and what another test took away meanwhile.
DAMAGED = (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, FileNotFoundError)


def in_archive(root, path):
    """What the parts of an archive say: models keep the lines of the program that they come from."""
    words = re.compile("|".join(DIRECTORIES).encode())
    try:
        archive = zipfile.ZipFile(root / path) if zipfile.is_zipfile(root / path) else None
    except DAMAGED:
        return
    if not archive:
        return
    with archive:
        for part in archive.namelist():
            try:
                content = archive.read(part)
            except DAMAGED:
                continue
            found = words.search(content)
            if found:
                yield house.Violation(path, 0, f"'{found.group(0).decode()}' in {part} {PATTERNS[0][1]}")


def check(root, _options):
    for path in house.files(root):
        yield from in_archive(root, path)
        patterns = IN_TESTS if path.parts[0] == "tests" and str(path) != SCRATCH else PATTERNS
        for number, line in house.lines(root, path):
            for pattern, advice in patterns:
                found = pattern.search(line)
                if found:
                    yield house.Violation(path, number, f"'{found.group(1)}' {advice}")


def archive_of(text):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("model/lines.debug_pkl", text)
    return made.getvalue()


CLEAN = {"README.md": "a network/ of home/ roots; mktemp /tmp/a." + "X" * 6 + "\n", "src/frame" + DIRECTORIES[0] + "a.cc": "",
         "tests/corpus/a.pt": archive_of("forms.py")}
PLANTED = [({"docs/a.md": f"\nsee {word}\n"}, f"docs/a.md:2: '{word}'") for word in DIRECTORIES + LATER]
PLANTED += [({"tests/a_test.cc": f"\nfs::{word}()\n"}, f"tests/a_test.cc:2: '{word}'") for word in SHARED]
PLANTED += [({"tests/corpus/a.pt": archive_of(word + "forms.py")}, f"tests/corpus/a.pt:0: '{word}'") for word in DIRECTORIES]

if __name__ == "__main__":
    house.main(check, CLEAN, PLANTED)
