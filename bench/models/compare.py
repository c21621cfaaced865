"""Optimised models beside their peers: compare.py PROGRAM FOLDER [--only NAME,...] [--batch N,...] [--threads N,...] [--bf16] [--int8] [--check]

For each model, batch and number of threads: the median forward of the module itself (eager), of what `PROGRAM optimize --target
cpu` saved, in plain LibTorch (ours) and in `PROGRAM run --hold-memory` (held), of torch.jit.optimize_for_inference and of ONNX
Runtime where npm has onnxruntime-node. They run turn about, held and ONNX Runtime in processes of their own; before each turn one
waits until the threads of the last one sleep, which look out for more work for up to 50 ms. The ratio is the best peer's time to
ours; --bf16 adds what `--dtype bf16` saves, with its own error, as a column that takes no part in it; --check fails when the
geometric mean of ratios is below 1, one is below 0.85, or a result is off by more than 1e-4. With --int8 models of 8-bit numbers
are shown in place of these, beside Python's own (int8.py); --check fails when ours takes a quarter longer."""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

TURN = 0.002  # seconds
PATIENCE = 1  # seconds
ONNXRUNTIME = "onnxruntime-node@1.20.1"
SERVER = """
const ort = require('onnxruntime-node'), fs = require('fs'), [name, threads, type, ...sizes] = process.argv.slice(2);
(async () => {
  const session = await ort.InferenceSession.create(name + '.onnx',
    {intraOpNumThreads: +threads, interOpNumThreads: 1, graphOptimizationLevel: 'all', executionMode: 'sequential'});
  const bytes = fs.readFileSync(name + '.in'), at = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const data = type == 'int64' ? new BigInt64Array(at) : new Float32Array(at);
  const feeds = {[session.inputNames[0]]: new ort.Tensor(type, data, sizes.map(Number))};
  await session.run(feeds);
  console.log('ready');
  for await (const line of require('readline').createInterface({input: process.stdin})) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < +line; ++i) await session.run(feeds);
    console.log(Number(process.hrtime.bigint() - start) / 1e9 / +line);
  }
})();
"""


class OnnxRuntime:
    """A process that runs one model as often as it is asked to, and says how long a run took."""

    def __init__(self, folder, name, model, x, threads):
        import torch
        torch.onnx.export(model, x, str(folder / f"{name}.onnx"), opset_version=13)
        x.numpy().tofile(folder / f"{name}.in")
        kind = "int64" if x.dtype == torch.int64 else "float32"
        self.process = subprocess.Popen(["node", "server.js", name, str(threads), kind, *map(str, x.shape)], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("ONNX Runtime does not run it")

    def __call__(self, calls):
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class HeldRuns:
    """What was saved in a process of its own for each turn, which keeps its memory from run to run. Its first runs ask the system
    for that memory, page by page; it says the median, so that there must be enough others."""

    RUNS = 15

    def __init__(self, program, file, shape, threads):
        self.command = [program, "run", file, "--input", shape, "--threads", str(threads), "--hold-memory", "--format", "json"]

    def __call__(self, calls):
        done = subprocess.run([*self.command, "--repeat", str(max(calls, self.RUNS))], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["seconds"]


def install_onnxruntime(folder):
    """True when it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not shutil.which("npm") or not shutil.which("node"):
        return False
    if not (folder / "node_modules" / "onnxruntime-node").is_dir():
        subprocess.run(["npm", "init", "-y"], cwd=folder, capture_output=True, check=False)
        subprocess.run(["npm", "i", "--ignore-scripts", ONNXRUNTIME], cwd=folder, capture_output=True, check=False)
    (folder / "server.js").write_text(SERVER)
    return (folder / "node_modules" / "onnxruntime-node").is_dir()


def seconds_of(run, calls):
    """Of one call, when there are several at once."""
    if isinstance(run, (OnnxRuntime, HeldRuns)):
        return run(calls)
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def spins(process):
    """Whether a thread of a process, other than the one that asks, is running."""
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            if int(task.name) != threading.get_native_id() and (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            pass
    return False


def wait_for_sleep(runs):
    """Pools of threads look out for more work before they sleep, on cores that the next one wants."""
    processes = [os.getpid()] + [run.process.pid for run in runs.values() if isinstance(run, OnnxRuntime)]
    start = time.perf_counter()
    while any(map(spins, processes)) and time.perf_counter() - start < PATIENCE:
        time.sleep(0.002)


def measure(runs, budget):
    """Median seconds by name, and half of what lies between the quartiles. They run turn about, each turn beginning with another
    one; a turn is TURN at least, after a call that is not timed, or who comes after another process would be timed with cold caches
    and sleeping threads."""
    times = {name: [] for name in runs}
    calls = {}
    for name, run in runs.items():
        seconds_of(run, 1)
        calls[name] = max(1, math.ceil(TURN / max(seconds_of(run, 3), 1e-6)))
    order, start = list(runs), time.perf_counter()
    while len(times["ours"]) < 5 or (time.perf_counter() - start < budget and len(times["ours"]) < 200):
        for name in order:
            wait_for_sleep(runs)
            if not isinstance(runs[name], HeldRuns):  # it begins with such a call
                seconds_of(runs[name], 1)
            times[name].append(seconds_of(runs[name], calls[name]))
        order.append(order.pop(0))
    quartiles = {name: statistics.quantiles(each, n=4) for name, each in times.items()}
    return {name: (q[1], (q[2] - q[0]) / 2) for name, q in quartiles.items()}


def child(program, folder, name, batch, threads, budget, with_ort, with_bf16):
    """Measures one model; prints a line of JSON."""
    import torch
    import zoo
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model, x = zoo.make(name, batch)
    script = torch.jit.trace(model, x, check_trace=False)
    source = folder / f"{name}.pt"
    script.save(str(source))

    def optimized(kind, *how):
        saved = folder / f"{name}.{kind}.pt"
        command = [program, "optimize", str(source), "--target", "cpu", "--threads", str(threads), "--input", zoo.shape_of(x),
                   "-o", str(saved), *how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return str(saved), torch.jit.load(str(saved))

    def error_of(run):
        expected, found = model(x), run(x)
        return ((found - expected).abs().max() / expected.abs().max()).item()

    fast, ours = optimized("fast")
    peer = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, x, check_trace=False)))
    errors = {"error": error_of(ours)}
    runs = {"eager": lambda: model(x), "ours": lambda: ours(x), "held": HeldRuns(program, fast, zoo.shape_of(x), threads),
            "jit": lambda: peer(x)}
    if with_bf16:
        rounded = optimized("bf16", "--dtype", "bf16")[1]
        runs["bf16"] = lambda: rounded(x)
        errors["bf16 error"] = error_of(rounded)
    ort = None
    if with_ort:
        try:
            ort = runs["ort"] = OnnxRuntime(folder / "ort", name, model, x, threads)
        except Exception as failed:  # pylint: disable=broad-except
            print(f"compare: ONNX Runtime is left out for {name}: {str(failed).splitlines()[0]}", file=sys.stderr)
    times = measure(runs, budget)
    if ort:
        ort.close()
    print(json.dumps({"times": times, **errors}))


def show(name, batch, threads, result):
    times = result["times"]
    peers = [times[each][0] for each in ("jit", "ort") if each in times]
    ratio, held, eager = (each / times[ours][0] for each, ours in
                          ((min(peers), "ours"), (min(peers), "held"), (times["eager"][0], "ours")))
    shown = "  ".join(f"{each} {median * 1e3:7.3g} ± {spread * 1e3:5.2g}" for each, (median, spread) in times.items())
    errors = "  ".join(f"{each} {value:.0e}" for each, value in result.items() if each.endswith("error"))
    print(f"{name:20s} {batch:3d} {threads:2d}  {shown} ms  best peer / ours {ratio:4.2f}, held {held:4.2f}  eager / ours {eager:4.2f}  {errors}",
          flush=True)
    return ratio, held


def main():
    import int8
    import zoo
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--batch", type=numbers, default=[1, 16])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--budget", type=float, default=4, help="seconds for each row, beyond the least number of runs")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--ort", type=int, default=0)
    options = parser.parse_args()
    known = int8.NAMES if options.int8 else zoo.NAMES
    names = options.only.split(",") if options.only else known
    for name in names:
        if name not in known:
            parser.error(f"there is no model {name!r}; there are {', '.join(known)}")
    warnings.filterwarnings("ignore")
    options.folder.mkdir(parents=True, exist_ok=True)
    program, folder = str(Path(options.program).resolve()), options.folder.resolve()
    if options.child:
        name, batch, threads = options.child
        child(program, folder, name, int(batch), int(threads), options.budget, options.ort, options.bf16)
        return 0
    if options.int8:
        ratios = int8.rows(program, folder, names, measure, options.budget)
        return int(options.check and min(ratios) < 0.8)
    with_ort = install_onnxruntime(folder / "ort")
    if not with_ort:
        print("compare: npm has no onnxruntime-node here; torch.jit.optimize_for_inference is the only peer", file=sys.stderr)
    print(f"{'model':20s} batch threads, medians of interleaved forwards ± half the distance of the quartiles")
    ratios, held, wrong = [], [], []
    for threads in options.threads:
        for batch in options.batch:
            for name in names:
                command = [sys.executable, __file__, program, str(folder), "--child", name, str(batch), str(threads), "--ort",
                           str(int(with_ort)), "--budget", str(options.budget), *["--bf16"] * options.bf16]
                environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
                done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
                sys.stderr.write("".join(line + "\n" for line in done.stderr.splitlines() if line.startswith("compare:")))
                if done.returncode:
                    print(f"{name:20s} {batch:3d} {threads:2d}  failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}")
                    wrong.append(name)
                    continue
                result = json.loads(done.stdout.strip().splitlines()[-1])
                for rows, ratio in zip((ratios, held), show(name, batch, threads, result)):
                    rows.append(ratio)
                if not result["error"] <= 1e-4:
                    wrong.append(name)
    mean, held_mean = (math.exp(statistics.fmean(map(math.log, each))) if each else 0 for each in (ratios, held))
    print(f"geometric mean of best peer / ours over {len(ratios)} rows: {mean:.2f}; the lowest: {min(ratios, default=0):.2f}; "
          f"held: {held_mean:.2f}; {min(held, default=0):.2f}"
          + (f"; wrong or failed: {', '.join(wrong)}" if wrong else ""))
    return int(options.check and (mean < 1 or min(ratios, default=0) < 0.85 or bool(wrong)))


if __name__ == "__main__":
    sys.exit(main())
