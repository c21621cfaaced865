"""Running the benchmarks and reading what they print. Results are a table: benchmark -> {counter: value}, where a benchmark is
named without its BM_ and `ns_per_node` is the one counter that depends on the machine."""
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
    Row("Edits"),
    Row("EditsHooked"),
    Row("CommonSubexpression", 80, "JitCommonSubexpression", 10, 6),
    Row("MatchMiss", 0.1, "JitMatchMiss", 100, 100),
    Row("MatchMissSpelt"),
    Row("MatchHitSpelt"),
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
SLOPE_NOISE = 1.0     # ns per node; work that takes less does not depend on the graph's size
TIME = "ns_per_node"
PEERS = re.compile("Jit|Boost|Mlir|Eager")
FIXED = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
         "iterations", "real_time", "cpu_time", "time_unit"}


class Program(typing.NamedTuple):
    """A build of the benchmarks. Each is run `repetitions` times, in turn with the others, and `pick` says which time counts:
    the median is what a user sees; the least is what other programs on the machine disturb least."""
    path: str
    min_time: str

    def __call__(self, pattern, repetitions=3, pick=statistics.median):
        command = [self.path, "--benchmark_format=json", f"--benchmark_min_time={self.min_time}",
                   f"--benchmark_repetitions={repetitions}", "--benchmark_enable_random_interleaving=true"]
        if pattern:
            command.append(f"--benchmark_filter={pattern}")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: {self.path} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}")
        if not done.stdout.strip():
            sys.exit(f"bench: no benchmark matches {pattern}; list them with tools/bench --raw --benchmark_list_tests")
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
        return {name: {counter: pick(values) for counter, values in row.items()} for name, row in seen.items()}


def only(names):
    """The pattern of these benchmarks and no others."""
    return "^BM_(" + "|".join(map(re.escape, names)) + ")(/manual_time)?$"


def ns(results, work, blocks=AT):
    return results.get(f"{work}/{blocks}", {}).get(TIME)


def slope(results, work):
    """The exponent of N in the time for N nodes, between 10^3 and 10^6."""
    low, high = (ns(results, work, blocks) for blocks in SLOPE)
    if not low or not high:
        return None
    low_nodes, high_nodes = (3 * blocks + 3 for blocks in SLOPE)
    return math.log(high * high_nodes / (low * low_nodes)) / math.log(high_nodes / low_nodes)


def times(over, under):
    return over / under if over and under else None


def ratios(results):
    """Work -> how many times as long its peer takes."""
    found = {row.work: times(ns(results, row.peer), ns(results, row.work)) for row in GOALS}
    return {work: ratio for work, ratio in found.items() if ratio}


def slopes(results):
    found = {row.work: slope(results, row.work) for row in GOALS if (ns(results, row.work) or 0) > SLOPE_NOISE}
    return {work: steep for work, steep in found.items() if steep}


def counters(results):
    """What does not depend on the machine."""
    rows = {name: {k: v for k, v in row.items() if k != TIME} for name, row in results.items() if not PEERS.match(name)}
    return {name: row for name, row in rows.items() if row}
