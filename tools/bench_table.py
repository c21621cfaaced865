#!/usr/bin/env python3
"""Run the benchmarks and print the table of speed goals; on request judge them too (bench_judge.py).

  bench_table.py PROGRAM [--filter RE] [--min-time S] [--repetitions N]    print the table
  bench_table.py PROGRAM --check BASELINE       fail when a counter changed, a ratio fell out of its band, or a slope grew
  bench_table.py PROGRAM --update BASELINE      write the baseline
  bench_table.py PROGRAM --against OTHER        paired runs of two builds

Every benchmark is run several times, in turn with the others, and its median counts. Every time that is judged is a ratio
of two times measured in one run on one machine; counters are compared exactly."""
import argparse

import bench_judge
from bench_runs import AT, GOALS, SLOPE_NOISE, TIME, Program, ns, slope, times

SLOPE_LIMIT = 1.1


def text(value, form):
    return "–" if value is None else form.format(value)


def short(value):
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(results):
    """A line for each row; the columns about MLIR only where it was measured."""
    with_mlir = any(ns(results, row.mlir_peer) for row in GOALS)
    print(f"{'work':<21}{'ns/node':>8}{'goal':>6}{'peer':>8}{'ratio':>9}{'goal':>6}"
          + (f"{'MLIR':>8}{'ratio':>9}{'goal':>6}" if with_mlir else "") + f"{'slope':>7}{'allocs':>8}  ")
    for row in GOALS:
        ours = ns(results, row.work)
        if ours is None:
            continue
        theirs, mlir = ns(results, row.peer), ns(results, row.mlir_peer)
        ratio, mlir_ratio, steep = times(theirs, ours), times(mlir, ours), slope(results, row.work)
        missed = [what for what, bad in (("time", row.ns and ours > row.ns), ("ratio", row.ratio and ratio and ratio < row.ratio),
                                         ("MLIR", row.mlir and mlir_ratio and mlir_ratio < row.mlir),
                                         ("slope", steep and steep > SLOPE_LIMIT and ours > SLOPE_NOISE)) if bad]
        verdict = "missed: " + ", ".join(missed) if missed else "met" if row.ns or row.ratio or row.mlir or steep else ""
        allocations = results[f"{row.work}/{AT}"].get("allocations_per_node")
        print(f"{row.work:<21}{short(ours):>8}{text(row.ns, '{:g}'):>6}" + against_peer(theirs, ratio, row.ratio)
              + (against_peer(mlir, mlir_ratio, row.mlir) if with_mlir else "")
              + f"{text(steep, '{:.2f}'):>7}{text(allocations, '{:.3f}'):>8}  {verdict}")
    memory = results.get(f"Build/{AT}", {}).get("bytes_per_node")
    if memory:
        print(f"\nmemory: {memory:.0f} bytes per node of the chain (goal 160)")
    other_workloads(results)


def against_peer(theirs, ratio, goal):
    return f"{short(theirs):>8}{text(ratio, '{:.1f}×'):>9}{text(goal, '{:g}×'):>6}"


def other_workloads(results):
    """ns per node on the graphs that are no chains: a line for each work, a column for each graph."""
    found = {}
    columns = []
    for name, row in results.items():
        work, *workload = name.split("/")
        if not workload or workload[0].isdigit() or TIME not in row:
            continue
        if workload[0] not in columns:
            columns.append(workload[0])
        found.setdefault(work, {})[workload[0]] = row[TIME]
    if not found:
        return
    print("\nns per node on other graphs")
    print(" " * 21 + "".join(f"{column:>21}" for column in columns))
    for work, row in found.items():
        print(f"{work:<21}" + "".join(f"{short(row.get(column)):>21}" for column in columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--filter", default="")
    parser.add_argument("--min-time", default="0.02")
    parser.add_argument("--repetitions", type=int, default=3)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", metavar="BASELINE")
    action.add_argument("--update", metavar="BASELINE")
    action.add_argument("--against", metavar="OTHER")
    options = parser.parse_args()
    program = Program(options.program, options.min_time)
    if options.against:
        bench_judge.compare(program, Program(options.against, options.min_time), options.filter)
        return
    results = program(options.filter, options.repetitions)
    table(results)
    if options.check:
        bench_judge.check(program, results, bench_judge.read(options.check), options.filter)
    if options.update:
        bench_judge.update(results, options.update)


if __name__ == "__main__":
    main()
