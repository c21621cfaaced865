"""Models of 8-bit numbers: what `PROGRAM quantize` saves beside what Python's FX quantization makes of the same weights and
samples, both in plain LibTorch, on one thread, turn about."""
import json
import subprocess
import sys
from pathlib import Path

MAKER = Path(__file__).resolve().parents[2] / "tests" / "quantize" / "python_models.py"
NAMES = ("mlp", "lstm", "bert_layer", "resnet18", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "googlenet", "densenet121",
         "squeezenet1_1")


def quantized(program, folder, name):
    """Makes both programs; returns their files and one sample."""
    import torch
    draw = f"{name}:1"
    subprocess.run([sys.executable, str(MAKER), str(folder), draw], check=True, stderr=subprocess.DEVNULL)
    samples = torch.load(folder / f"{draw}.samples.pt")
    mode = json.loads((folder / f"{draw}.json").read_text())["mode"]
    how = ["--mode", "dynamic"] if mode == "dynamic" else ["--calibrate", str(folder / f"{draw}.samples.pt")]
    ours = folder / f"{draw}.ours.pt"
    shape = "x".join(map(str, samples[0].shape))
    subprocess.run([program, "quantize", str(folder / f"{draw}.pt"), "--input", shape, *how, "-o", str(ours)], check=True,
                   stdout=subprocess.DEVNULL)
    return ours, folder / f"{draw}.int8.pt", samples[0]


def rows(program, folder, names, measure, budget):
    """Prints a row for each model; returns Python's time to ours of each."""
    import torch
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    ratios = []
    for name in names:
        files = quantized(program, folder, name)
        ours, python = (torch.jit.load(str(file)) for file in files[:2])
        x = files[2]
        times = measure({"ours": lambda: ours(x), "python": lambda: python(x)}, budget)  # pylint: disable=cell-var-from-loop
        shown = "  ".join(f"{each} {median * 1e3:7.3g} ± {spread * 1e3:5.2g}" for each, (median, spread) in times.items())
        ratios.append(times["python"][0] / times["ours"][0])
        print(f"{name + ' int8':26s}  1  {shown} ms  Python / ours {ratios[-1]:4.2f}", flush=True)
    return ratios
