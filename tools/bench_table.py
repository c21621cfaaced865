#!/usr/bin/env python3
"""Run the benchmarks and read them: the table of speed goals, the regression gate, and comparison with another revision.

  bench_table.py PROGRAM [--filter RE] [--min-time S]           print the table
  bench_table.py PROGRAM --check BASELINE                       fail when a counter changed or a ratio fell out of its band
  bench_table.py PROGRAM --update BASELINE                      write the baseline
  bench_table.py PROGRAM --against OTHER_PROGRAM                paired runs of two builds

Every figure that is judged is a ratio of two times measured in one run on one machine; counters are compared exactly."""
import argparse
import json
import math
import statistics
import subprocess
import sys

# work, goal in ns per node at 30 003 nodes, goal as a multiple of torch::jit there, name of the peer's benchmark
GOALS = [
    ("Build", 50, 12, "JitBuild"),
    ("Clone", 30, 30, "JitClone"),
    ("Lint", 25, 100, "JitLint"),
    ("DeadCode", 15, 80, "JitDeadCode"),
    ("CommonSubexpression", 80, 10, "JitCommonSubexpression"),
    ("MatchMiss", 0.1, 100, "JitMatchMiss"),
    ("MatchMiss64", 10, 100, "JitMatchMiss"),
    ("MatchHit", None, None, None),
    ("RewriteAll", 100, 50, "JitRewriteAll"),
    ("Rewrite64Rules", None, None, None),
    ("Liveness", 20, None, None),
    ("Dominators", 20, 20, "BoostDominators"),
    ("UseDef", None, None, None),
    ("Print", 150, None, "JitPrint"),
    ("Parse", 250, None, None),
    ("Codegen", None, None, None),
    ("Recompile", None, None, None),
]
AT = 10000          # blocks: 30 003 nodes
SLOPE = (333, 333333)
SLOPE_LIMIT = 1.1
BAND = 0.35         # a ratio may fall by this much before it is measured again, and must stay there to fail
CONFIRMATIONS = 5
TIMES = {"ns_per_node"}


def run(program, pattern, min_time):
    """Benchmark name -> {real_time, counters}. An erroneous benchmark (a wrong answer) ends the run."""
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={min_time}"]
    if pattern:
        command.append(f"--benchmark_filter={pattern}")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {program} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}")
    results = {}
    for row in json.loads(done.stdout)["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"bench: {row['name']}: {row['error_message']}")
        fixed = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index",
                 "threads", "iterations", "real_time", "cpu_time", "time_unit"}
        results[row["name"].removeprefix("BM_")] = {k: v for k, v in row.items() if k not in fixed}
    return results


def ns(results, work, blocks=AT):
    row = results.get(f"{work}/{blocks}")
    return row["ns_per_node"] * 1e9 if row and "ns_per_node" in row else None


def slope(results, work):
    low, high = (ns(results, work, blocks) for blocks in SLOPE)
    if not low or not high:
        return None
    low_nodes, high_nodes = (3 * blocks + 3 for blocks in SLOPE)
    return math.log(high * high_nodes / (low * low_nodes)) / math.log(high_nodes / low_nodes)


def table(results):
    def text(value, form):
        return "–" if value is None else form.format(value)

    print(f"{'work':<22}{'ns/node':>9}{'goal':>8}{'peer':>10}{'ratio':>9}{'goal':>7}{'slope':>7}  ")
    for work, goal, goal_ratio, peer in GOALS:
        ours = ns(results, work)
        if ours is None:
            continue
        theirs = ns(results, peer) if peer else None
        ratio = theirs / ours if theirs else None
        steep = slope(results, work)
        missed = [what for what, bad in (("time", goal and ours > goal), ("ratio", goal_ratio and ratio and ratio < goal_ratio),
                                         ("slope", steep and steep > SLOPE_LIMIT and ours > 1)) if bad]
        verdict = "missed: " + ", ".join(missed) if missed else "met" if goal or goal_ratio else ""
        print(f"{work:<22}{ours:>9.3g}{text(goal, '{:g}'):>8}{text(theirs, '{:.0f}'):>10}{text(ratio, '{:.1f}×'):>9}"
              f"{text(goal_ratio, '{:g}×'):>7}{text(steep, '{:.2f}'):>7}  {verdict}")


def ratios(results):
    found = {}
    for work, _, _, peer in GOALS:
        ours, theirs = ns(results, work), ns(results, peer) if peer else None
        if ours and theirs:
            found[work] = theirs / ours
    return found


def counters(results):
    return {name: {k: v for k, v in sorted(row.items()) if k not in TIMES and "Jit" not in name}
            for name, row in sorted(results.items())}


def update(results, path):
    baseline = {"ratios": {k: round(v, 3) for k, v in ratios(results).items()},
                "counters": {k: v for k, v in counters(results).items() if v}}
    with open(path, "w") as file:
        json.dump(baseline, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"bench: wrote {path}: {len(baseline['ratios'])} ratios, {len(baseline['counters'])} benchmarks with counters")


def check(program, results, path, min_time):
    with open(path) as file:
        baseline = json.load(file)
    failures = []
    now = counters(results)
    for name, expected in baseline["counters"].items():
        for counter, value in expected.items():
            found = now.get(name, {}).get(counter)
            if found is None or not math.isclose(found, value, rel_tol=1e-9):
                failures.append(f"{name}: {counter} is {found}, was {value}")
    suspects = [work for work, ratio in ratios(results).items() if ratio < baseline["ratios"].get(work, 0) * (1 - BAND)]
    for work in suspects:
        peer = next(peer for name, _, _, peer in GOALS if name == work)
        seen = [ratios(run(program, f"^BM_({work}|{peer})/{AT}$", min_time)).get(work, 0) for _ in range(CONFIRMATIONS)]
        if statistics.median(seen) < baseline["ratios"][work] * (1 - BAND):
            failures.append(f"{work}: {statistics.median(seen):.1f}× its peer in {CONFIRMATIONS} runs, was {baseline['ratios'][work]:.1f}×")
    for failure in failures:
        print(f"bench: {failure}", file=sys.stderr)
    if failures:
        sys.exit("bench: slower or different than bench/baseline.json; if that is meant, run tools/bench --update")
    print(f"bench: {len(baseline['ratios'])} ratios within {BAND:.0%} of the baseline or better, "
          f"{sum(map(len, baseline['counters'].values()))} counters equal")


def against(program, other, pattern, min_time):
    pairs = {}
    for _ in range(CONFIRMATIONS):
        new, old = run(program, pattern, min_time), run(other, pattern, min_time)
        for name in new.keys() & old.keys():
            if "ns_per_node" in new[name] and "Jit" not in name:
                pairs.setdefault(name, []).append(new[name]["ns_per_node"] / old[name]["ns_per_node"])
    print(f"{'benchmark':<34}{'now / then':>12}{'spread':>16}")
    for name, seen in sorted(pairs.items()):
        print(f"{name:<34}{statistics.median(seen):>12.2f}{min(seen):>9.2f}–{max(seen):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--filter", default="")
    parser.add_argument("--min-time", default="0.1")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", metavar="BASELINE")
    action.add_argument("--update", metavar="BASELINE")
    action.add_argument("--against", metavar="OTHER_PROGRAM")
    options = parser.parse_args()
    if options.against:
        return against(options.program, options.against, options.filter, options.min_time)
    results = run(options.program, options.filter, options.min_time)
    table(results)
    if options.check:
        check(options.program, results, options.check, options.min_time)
    if options.update:
        update(results, options.update)


if __name__ == "__main__":
    main()
