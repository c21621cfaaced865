"""What got slower: a run against the baseline, and two builds against each other.

What else the machine does makes times longer, never shorter, and for seconds on end. So a time is judged by the least of a few
repetitions, and what seems to have moved is measured again in rounds of its own, minutes later than the first: only what moved in
those rounds has moved."""
import json
import math
import re
import statistics
import sys

from bench_runs import AT, GOALS, PEERS, SLOPE, TIME, counters, only, ratios, slope, slopes

BAND = 0.35           # a ratio may fall by this much before it is measured again, and must stay there to fail
SLOPE_BAND = 0.1      # the same for slopes
ROUNDS = 5            # in which it must stay there
REPETITIONS = 3       # in each round and each run of a pair
SCREENING = 3         # pairs of runs of everything
PAIRS = 10            # pairs of runs of what seems to have moved
LEAST = 0.03          # what moves by less is not looked at
OUTLIERS = 1          # pairs on each side that may be anything: of 10 pairs without a difference 1 in 50 has 9 on one side


# ---- the baseline ----------------------------------------------------------------------------------------------------
def update(results, path):
    baseline = {"ratios": {work: round(ratio, 2) for work, ratio in ratios(results).items()},
                "slopes": {work: round(steep, 2) for work, steep in slopes(results).items()},
                "counters": counters(results)}
    with open(path, "w") as file:
        json.dump(baseline, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"\nbench: wrote {path}: {len(baseline['ratios'])} ratios, {len(baseline['slopes'])} slopes, "
          f"{len(baseline['counters'])} benchmarks with counters")


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"bench: cannot read {path}: {error}; write it with tools/bench --update")


def check(measure, results, baseline, pattern=""):
    """Ends the program when `results`, or what `measure(pattern, repetitions, pick)` says of a part of them, is worse."""
    chosen = {name: row for name, row in baseline["counters"].items() if re.search(pattern, "BM_" + name)}
    failures = (list(other_counters(counters(results), chosen)) + list(worse_ratios(measure, results, baseline["ratios"]))
                + list(worse_slopes(measure, results, baseline["slopes"])))
    for failure in failures:
        print(f"bench: {failure}", file=sys.stderr)
    if failures:
        sys.exit("bench: slower or different than the baseline; if that is meant, run tools/bench --update")
    print(f"\nbench: {sum(map(len, chosen.values()))} counters equal, {len(ratios(results))} ratios and {len(slopes(results))} slopes "
          "within their bands")


def other_counters(now, then):
    for name, expected in then.items():
        for counter, value in expected.items():
            found = now.get(name, {}).get(counter)
            if found is None or not math.isclose(found, value, rel_tol=1e-9):
                yield f"{name}: {counter} is {found}, was {value}"


def worse_ratios(measure, results, baseline):
    for work, ratio in ratios(results).items():
        limit = baseline.get(work, 0) * (1 - BAND)
        if ratio >= limit:
            continue
        peer = next(row.peer for row in GOALS if row.work == work)
        best = max(rounds(measure, [f"{work}/{AT}", f"{peer}/{AT}"], lambda seen: ratios(seen)[work]))
        if best < limit:
            yield f"{work}: {best:.1f}× as fast as its peer in the best of {ROUNDS} more rounds, was {baseline[work]:.1f}×"


def worse_slopes(measure, results, baseline):
    for work, steep in slopes(results).items():
        limit = baseline.get(work, math.inf) + SLOPE_BAND
        if steep <= limit:
            continue
        best = min(rounds(measure, [f"{work}/{blocks}" for blocks in SLOPE], lambda seen: slope(seen, work)))
        if best > limit:
            yield f"{work}: time grows as N^{best:.2f} in the best of {ROUNDS} more rounds, was N^{baseline[work]:.2f}"


def rounds(measure, names, value):
    print(f"bench: {names[0].split('/')[0]} seems worse and is measured again")
    return [value(measure(only(names), REPETITIONS, min)) for _ in range(ROUNDS)]


# ---- two builds ------------------------------------------------------------------------------------------------------
def compare(now, then, pattern=""):
    """Prints how long each benchmark takes `now` for each nanosecond it took `then`, and which of them have moved."""
    print(f"bench: {SCREENING} pairs of runs, then {PAIRS} of what seems to have moved")
    first, counts = paired(now, then, pattern or f"-BM_({PEERS.pattern})", SCREENING)
    if not first:
        sys.exit("bench: the two builds have no benchmark in common")
    seem = [name for name, seen in first.items() if abs(math.log(statistics.median(seen))) > math.log1p(LEAST)]
    again, _ = paired(now, then, only(seem), PAIRS) if seem else ({}, None)
    print(f"\n{'benchmark':<40}{'now / then':>12}{'spread':>16}{'pairs':>7}")
    for name, seen in sorted((first | again).items(), key=lambda item: [part.zfill(9) for part in item[0].split("/")]):
        print(f"{name:<40}{statistics.median(seen):>12.2f}{min(seen):>11.2f}–{max(seen):.2f}{len(seen):>7}")
    print()
    report_moves(again)
    for difference in other_counters(*counts):
        print(f"bench: {difference}")


def report_moves(pairs):
    moved = {name: statistics.median(seen) for name, seen in pairs.items() if beyond_noise(seen)}
    for name, factor in sorted(moved.items(), key=lambda item: -item[1]):
        low, high = middle(pairs[name])
        percent, way = (factor - 1, "slower") if factor > 1 else (1 - factor, "faster")
        print(f"bench: {name} is {percent:.0%} {way} ({low:.2f} to {high:.2f} times as long in {PAIRS} pairs)")
    slower = sum(factor > 1 for factor in moved.values())
    print(f"bench: beyond noise, {slower} got slower and {len(moved) - slower} faster; {len(pairs) - len(moved)} others seemed to")


def middle(seen):
    """The pairs but for the outliers on both sides."""
    ordered = sorted(seen)[OUTLIERS:-OUTLIERS]
    return ordered[0], ordered[-1]


def beyond_noise(seen):
    low, high = middle(seen)
    return abs(math.log(statistics.median(seen))) > math.log1p(LEAST) and (low > 1 or high < 1)


def paired(now, then, pattern, count):
    """Benchmark -> time now by time then in `count` pairs of runs, which take turns in going first; and the counters of both."""
    pairs = {}
    for turn in range(count):
        if turn % 2 == 0:
            new, old = now(pattern, REPETITIONS, min), then(pattern, REPETITIONS, min)
        else:
            old, new = then(pattern, REPETITIONS, min), now(pattern, REPETITIONS, min)
        for name in new:
            if name in old and TIME in new[name] and not PEERS.match(name):
                pairs.setdefault(name, []).append(new[name][TIME] / old[name][TIME])
    both = counters(new), {name: row for name, row in counters(old).items() if name in new}
    return pairs, both
