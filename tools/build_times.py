#!/usr/bin/env python3
"""Prints the minutes of each step of a build by Ninja, the longest first: build_times.py BUILD_FOLDER [SINCE]

A step is a target, or what is made beside targets; it has the time of its commands together, of those that ended after SINCE
(seconds since 1970)."""

import re
import sys
from collections import Counter
from pathlib import Path


def steps(folder, since):
    """[(seconds, step)] of the commands whose output is newer."""
    took = {}
    for line in (folder / ".ninja_log").read_text(encoding="utf-8").splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        took[output] = (int(end) - int(begin)) / 1000
    sums = Counter()
    for output, seconds in took.items():
        path = folder / output
        if not path.is_absolute() or path.is_relative_to(folder.absolute()):
            if path.exists() and path.stat().st_mtime >= since:
                target = re.match(r"(?:.*/)?CMakeFiles/(.*?)\.dir/", output)
                sums[target.group(1) if target else f"making {Path(output).name}"] += seconds
    return sums.most_common()


def main():
    folder, since = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0
    for step, seconds in steps(folder, since):
        if seconds >= 1:
            print(f"{seconds / 60:6.1f} min  {step}")


if __name__ == "__main__":
    main()
