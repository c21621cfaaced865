#!/usr/bin/env python3
"""Run the benchmarks and read them: the table of speed goals, the regression gate, and comparison with another revision.

  bench_table.py PROGRAM [--filter RE] [--min-time S] [--repetitions N]    print the table
  bench_table.py PROGRAM --check BASELINE       fail when a counter changed, a ratio fell out of its band, or a slope grew
  bench_table.py PROGRAM --update BASELINE      write the baseline
  bench_table.py PROGRAM --against OTHER        paired runs of two builds

Every benchmark is run several times, in turn with the others, and its median counts. Every time that is judged is a ratio
of two times measured in one run on one machine; counters are compared exactly."""
import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import typing


class Row(typing.NamedTuple):
    """A line of the table: its work, and its goals at 30 003 nodes. A row without a goal is shown all the same."""
    work: str
    ns: float | None = None      # per node
    peer: str | None = None      # the benchmark of the peer
    ratio: float | None = None   # the peer's time to ours
    mlir: float | None = None    # MLIR's time to ours

    @property
    def mlir_peer(self):
        return "Mlir" + self.work


GOALS = [
    Row("Build", 50, "JitBuild", 12, 4),
    Row("Clone", 30, "JitClone", 30, 8),
    Row("Lint", 25, "JitLint", 100, 6),
    Row("DeadCode", 15, "JitDeadCode", 80, 15),
    Row("CommonSubexpression", 80, "JitCommonSubexpression", 10, 6),
    Row("MatchMiss", 0.1, "JitMatchMiss", 100, 100),
    Row("MatchMiss64", 10, "JitMatchMiss64", 100, 100),
    Row("MatchMiss200"),
    Row("MatchNearMiss"),
    Row("MatchHit", peer="JitMatchHit"),
    Row("MatchByHand"),
    Row("RewriteAll", 100, "JitRewriteAll", 50, 5),
    Row("Rewrite64Rules", peer="JitRewrite64Rules"),
    Row("Rewrite200Rules"),
    Row("FixedPoint64Rules"),
    Row("Cascade"),
    Row("Overlap"),
    Row("Liveness", 20, "JitLiveness", mlir=7),
    Row("Dominators", 20, "BoostDominators", 20),
    Row("UseDef"),
    Row("Effects", peer="JitEffects"),
    Row("Print", 150, "JitPrint"),
    Row("Parse", 250, "JitParse"),
    Row("Codegen", peer="JitCodegen"),
    Row("Recompile", peer="JitRecompile"),
]
AT = 10000            # blocks: 30 003 nodes
SLOPE = (333, 333333)
SLOPE_LIMIT = 1.1
SLOPE_NOISE = 1.0     # ns per node; work that takes less does not depend on the graph's size
BAND = 0.35           # a ratio may fall by this much before it is measured again, and must stay there to fail
SLOPE_BAND = 0.1      # the same for slopes
CONFIRMATIONS = 5
MACHINE_DEPENDENT = {"ns_per_node"}
FIXED = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
         "iterations", "real_time", "cpu_time", "time_unit"}


def run(program, options, pattern=None, repetitions=None):
    """Benchmark name -> its counters, each the median of the repetitions. A wrong answer ends the run."""
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={options.min_time}",
               f"--benchmark_repetitions={repetitions or options.repetitions}", "--benchmark_enable_random_interleaving=true"]
    if pattern or options.filter:
        command.append(f"--benchmark_filter={pattern or options.filter}")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {program} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}")
    if not done.stdout.strip():
        sys.exit(f"bench: no benchmark matches {pattern or options.filter}; list them with tools/bench --raw --benchmark_list_tests")
    seen = {}
    for row in json.loads(done.stdout)["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"bench: {row['name']}: {row['error_message']}")
        if row["run_type"] != "iteration":
            continue
        name = row["name"].removeprefix("BM_").split("/repeats:")[0].removesuffix("/manual_time")
        for counter, value in row.items():
            if counter not in FIXED:
                seen.setdefault(name, {}).setdefault(counter, []).append(value)
    return {name: {counter: statistics.median(values) for counter, values in row.items()} for name, row in seen.items()}


def ns(results, work, blocks=AT):
    return results.get(f"{work}/{blocks}", {}).get("ns_per_node")


def slope(results, work):
    """The exponent of N in the time for N nodes, between 10^3 and 10^6."""
    low, high = (ns(results, work, blocks) for blocks in SLOPE)
    if not low or not high:
        return None
    low_nodes, high_nodes = (3 * blocks + 3 for blocks in SLOPE)
    return math.log(high * high_nodes / (low * low_nodes)) / math.log(high_nodes / low_nodes)


def text(value, form):
    return "–" if value is None else form.format(value)


def short(value):
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def times(over, under):
    return over / under if over and under else None


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
        if not workload or workload[0].isdigit() or "ns_per_node" not in row:
            continue
        if workload[0] not in columns:
            columns.append(workload[0])
        found.setdefault(work, {})[workload[0]] = row["ns_per_node"]
    if not found:
        return
    print("\nns per node on other graphs")
    print(" " * 21 + "".join(f"{column:>21}" for column in columns))
    for work, row in found.items():
        print(f"{work:<21}" + "".join(f"{short(row.get(column)):>21}" for column in columns))


def ratios(results):
    found = {row.work: times(ns(results, row.peer), ns(results, row.work)) for row in GOALS}
    return {work: ratio for work, ratio in found.items() if ratio}


def slopes(results):
    found = {row.work: slope(results, row.work) for row in GOALS if (ns(results, row.work) or 0) > SLOPE_NOISE}
    return {work: steep for work, steep in found.items() if steep}


def counters(results):
    rows = {name: {k: v for k, v in row.items() if k not in MACHINE_DEPENDENT}
            for name, row in results.items() if not re.match("Jit|Boost|Mlir", name)}
    return {name: row for name, row in rows.items() if row}


def update(results, path):
    baseline = {"ratios": {work: round(ratio, 2) for work, ratio in ratios(results).items()},
                "slopes": {work: round(steep, 2) for work, steep in slopes(results).items()},
                "counters": counters(results)}
    with open(path, "w") as file:
        json.dump(baseline, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"\nbench: wrote {path}: {len(baseline['ratios'])} ratios, {len(baseline['slopes'])} slopes, "
          f"{len(baseline['counters'])} benchmarks with counters")


def confirmed(program, options, names, measure, worse):
    """Measures again, alone and several times, what seemed worse; returns the median if it still does, else None."""
    pattern = "^BM_(" + "|".join(names) + ")(/manual_time)?$"
    value = measure(run(program, options, pattern, CONFIRMATIONS))
    return value if value is not None and worse(value) else None


def check(program, results, options):
    try:
        with open(options.check) as file:
            baseline = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"bench: cannot read {options.check}: {error}; write it with tools/bench --update")
    failures = []
    now = counters(results)
    chosen = {name: row for name, row in baseline["counters"].items() if not options.filter or re.search(options.filter, "BM_" + name)}
    for name, expected in chosen.items():
        for counter, value in expected.items():
            found = now.get(name, {}).get(counter)
            if found is None or not math.isclose(found, value, rel_tol=1e-9):
                failures.append(f"{name}: {counter} is {found}, was {value}")
    for work, ratio in ratios(results).items():
        limit = baseline["ratios"].get(work, 0) * (1 - BAND)
        peer = next(row.peer for row in GOALS if row.work == work)
        if ratio < limit:
            again = confirmed(program, options, [f"{work}/{AT}", f"{peer}/{AT}"], lambda r: ratios(r).get(work), lambda v: v < limit)
            if again:
                failures.append(f"{work}: {again:.1f}× its peer in {CONFIRMATIONS} more runs, was {baseline['ratios'][work]:.1f}×")
    for work, steep in slopes(results).items():
        limit = baseline["slopes"].get(work, math.inf) + SLOPE_BAND
        if steep > limit:
            again = confirmed(program, options, [f"{work}/{blocks}" for blocks in SLOPE], lambda r: slope(r, work), lambda v: v > limit)
            if again:
                failures.append(f"{work}: time grows as N^{again:.2f} in {CONFIRMATIONS} more runs, was N^{baseline['slopes'][work]:.2f}")
    for failure in failures:
        print(f"bench: {failure}", file=sys.stderr)
    if failures:
        sys.exit(f"bench: slower or different than {options.check}; if that is meant, run tools/bench --update")
    print(f"\nbench: {sum(map(len, chosen.values()))} counters equal, {len(ratios(results))} ratios and {len(slopes(results))} slopes "
          "within their bands")


def against(program, options):
    pairs = {}
    for _ in range(CONFIRMATIONS):
        new, old = run(program, options, repetitions=1), run(options.against, options, repetitions=1)
        for name in new.keys() & old.keys():
            if "ns_per_node" in new[name] and not re.match("Jit|Boost|Mlir", name):
                pairs.setdefault(name, []).append(new[name]["ns_per_node"] / old[name]["ns_per_node"])
    if not pairs:
        sys.exit("bench: the two builds have no benchmark in common")
    print(f"{'benchmark':<40}{'now / then':>12}{'spread':>16}")
    for name, seen in sorted(pairs.items()):
        print(f"{name:<40}{statistics.median(seen):>12.2f}{min(seen):>9.2f}–{max(seen):.2f}")


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
    if options.against:
        return against(options.program, options)
    results = run(options.program, options)
    table(results)
    if options.check:
        check(options.program, results, options)
    if options.update:
        update(results, options.update)


if __name__ == "__main__":
    main()
