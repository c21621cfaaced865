#!/usr/bin/env python3
"""What tools/bench calls slower is slower, and nothing else is: programs that pretend to take a time, with noise as a busy machine
makes it (a half longer now and then, never shorter), are judged by tools/bench_judge.py."""
import contextlib
import io
import random
import re
import statistics
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import bench_judge  # noqa: E402
from bench_runs import SLOPE, only  # noqa: E402

WORKS = ("Build", "Clone", "Lint", "DeadCode")


class Pretender:
    """Benchmarks of WORKS that take 10 ns per node, their peers ten times that, but for what `times` says of some."""

    def __init__(self, seed, times=None, allocations=1.0):
        self.random = random.Random(seed)
        self.allocations = allocations
        self.times = {f"{work}/{blocks}": 10.0 for work in WORKS for blocks in (333, 10000, 333333)}
        self.times |= {f"Jit{work}/10000": 100.0 for work in WORKS} | (times or {})

    def __call__(self, pattern, repetitions=3, pick=statistics.median):
        wanted = [name for name in self.times
                  if (not re.search(pattern[1:], "BM_" + name) if pattern.startswith("-") else re.search(pattern, "BM_" + name))]
        return {name: {"ns_per_node": pick(self.time(name) for _ in range(repetitions)),
                       "allocations_per_node": self.allocations} for name in wanted}

    def time(self, name):
        disturbed = self.random.random() < 0.3
        return self.times[name] * (1 + abs(self.random.gauss(0, 0.02)) + disturbed * self.random.random() / 2)


def compared(now, then):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        bench_judge.compare(now, then)
    return said.getvalue()


class Comparison(unittest.TestCase):
    def test_nothing_moves_between_equals(self):
        for seed in range(50):
            self.assertIn("0 got slower and 0 faster", compared(Pretender(seed), Pretender(1000 + seed)))

    def test_a_tenth_is_found(self):
        for seed in range(50):
            said = compared(Pretender(seed, {"Lint/10000": 11.0, "Clone/333": 9.0}), Pretender(1000 + seed))
            self.assertRegex(said, r"Lint/10000 is (\d|1\d)% slower")
            self.assertRegex(said, r"Clone/333 is (\d|1\d)% faster")
            self.assertIn("1 got slower and 1 faster", said)

    def test_counters_that_differ_are_told(self):
        self.assertIn("Lint/333: allocations_per_node is 1.0, was 2.0", compared(Pretender(1), Pretender(2, allocations=2.0)))

    def test_builds_without_a_benchmark_in_common_are_refused(self):
        other = Pretender(1)
        other.times = {"Other/1": 1.0}
        with self.assertRaisesRegex(SystemExit, "no benchmark in common"):
            compared(Pretender(1), other)


class Gate(unittest.TestCase):
    BASELINE = {"ratios": {work: 10.0 for work in WORKS}, "slopes": {work: 1.0 for work in WORKS},
                "counters": {"Build/333": {"allocations_per_node": 1.0}}}

    def judged(self, program):
        """What the gate complains about; empty when it lets the program pass."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                bench_judge.check(program, program(""), self.BASELINE)
            except SystemExit:
                return said.getvalue()
        self.assertEqual(said.getvalue(), "")
        return ""

    def test_noise_passes(self):
        for seed in range(100):
            self.assertEqual(self.judged(Pretender(seed)), "")

    def test_a_third_of_the_speed_fails(self):
        for seed in range(50):
            said = self.judged(Pretender(seed, {"Lint/10000": 30.0}))
            self.assertRegex(said, r"^bench: Lint: [34]\.\d× as fast as its peer in the best of 5 more rounds, was 10.0×\n$")

    def test_a_slope_fails(self):
        said = self.judged(Pretender(1, {f"DeadCode/{SLOPE[1]}": 60.0}))
        self.assertRegex(said, r"^bench: DeadCode: time grows as N\^1\.2\d")

    def test_a_counter_fails(self):
        self.assertIn("Build/333: allocations_per_node is 1.5, was 1.0", self.judged(Pretender(1, allocations=1.5)))


class Names(unittest.TestCase):
    def test_a_pattern_selects_what_it_names_and_no_more(self):
        pattern = only(["Lint/333", "Clone/fan/10"])
        for name, selected in (("BM_Lint/333", True), ("BM_Clone/fan/10/manual_time", True), ("BM_Lint/3333", False),
                               ("BM_JitLint/333", False)):
            self.assertEqual(bool(re.search(pattern, name)), selected, name)


if __name__ == "__main__":
    unittest.main()
