"""Pipelines beside their plans: pipelines.py PROGRAM [--only NAME,...] [--stages N,...] [--turns T] [--repeat R] [--batch B]
[--micro-batches M]

Cuts each model, runs its stages as processes on this machine with one thread each, and prints for each pipeline what was
measured and what its plan said, which knows of the machine's processors: the time of a batch, samples a second, the part of
their time that the stages compute, the bubble (what is left of it on average) and the bytes sent. The pipelines take turns:
a figure is the median of T turns, behind it half the distance of the quartiles."""
import argparse
import concurrent.futures
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import torch

import zoo


def program(path, *arguments):
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"pipelines: {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(path, folder, stages, repeat):
    """The lines of all ranks."""
    master = f"127.0.0.1:{free_port()}"
    with concurrent.futures.ThreadPoolExecutor(stages) as pool:
        ranks = [pool.submit(program, path, "run", folder, "--rank", str(rank), "--world", str(stages), "--master", master,
                             "--repeat", str(repeat), "--format", "json") for rank in range(stages)]
        return [rank.result() for rank in ranks]


def spread(values):
    if len(values) < 2:
        return 0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="resnet50,bert,gpt")
    parser.add_argument("--stages", default="2,4")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--micro-batches", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pipelines = {}
        for name in options.only.split(","):
            module, x = zoo.make(name, options.batch)
            file = str(Path(folder) / f"{name}.pt")
            with torch.no_grad():
                torch.jit.trace(module, x).save(file)
            for stages in map(int, options.stages.split(",")):
                place = str(Path(folder) / f"{name}_{stages}")
                program(options.program, "pipeline", file, "--stages", str(stages), "--input", zoo.shape_of(x), "--micro-batches",
                        str(options.micro_batches), "--threads", "1", "-o", place, "--format", "json")
                pipelines[name, stages] = place
        turns = {key: [] for key in pipelines}
        for _ in range(options.turns):
            for (name, stages), place in pipelines.items():
                turns[name, stages].append(run(options.program, place, stages, options.repeat))
    print(f"batch {options.batch} in {options.micro_batches} micro-batches, {os.cpu_count()} processors, "
          f"{options.turns} turns of {options.repeat}")
    print("model     stages  ms a batch       plan  samples/s   plan  computing %  plan  bubble %  plan    sent MiB   plan")
    for (name, stages), all_turns in turns.items():
        plan = [rank["forecast"] for rank in all_turns[0]]
        seconds = [max(rank["seconds"] for rank in turn) for turn in all_turns]
        busy = [100 * statistics.mean(rank["busy"] for rank in turn) for turn in all_turns]
        planned = 100 * statistics.mean(rank["busy"] for rank in plan)
        sent = sum(rank["sent_bytes"] for rank in all_turns[0]) / 2 ** 20
        expected = sum(rank["sent_bytes"] for rank in plan) / 2 ** 20
        took = statistics.median(seconds)
        print(f"{name:10}{stages:6}{1e3 * took:9.1f} ±{1e3 * spread(seconds):5.1f}{1e3 * plan[0]['seconds']:10.1f}"
              f"{options.batch / took:11.1f}{options.batch / plan[0]['seconds']:7.1f}"
              f"{statistics.median(busy):9.0f} ±{spread(busy):2.0f}{planned:6.0f}"
              f"{100 - statistics.median(busy):10.0f}{100 - planned:6.0f}{sent:12.2f}{expected:7.2f}")


if __name__ == "__main__":
    main()
