#!/usr/bin/python3
"""Write the test models and their expected results into a folder: make_models.py OUT [--only NAME]... [--by-day]

Each model NAME gives NAME.scripted.pt and NAME.traced.pt (TorchScript) and NAME.io.pt: a scripted module with the attributes
  inputs   tuple of all positional inputs (tensors, or tuples, lists, dicts of them)
  output   the result: a tensor, or tuples, lists, dicts of tensors, numbers and None (named tuples become tuples)
  input    inputs[0], where that is a tensor
OUT/manifest.json is a list, an entry a file:
  name, kind ("scripted", "traced", "bad"), file, io (null for bad files), inputs ([{shape, dtype}], nested as the inputs are)
  expected.loads        true, false, or null where either is right; with false, or null refused, the error shows expected.error
  expected.foldable_bn  BatchNorm calls that conv+bn fusion must remove
  expected.unfoldable_bn  those that must stay; expected.optional_bn: those that may do either
  rtol      max |difference| / max |output| allowed
  compare   false: the result is random, compare shapes only
  runs      false: no CPU kernels for this dtype; io comes from the float32 version, compare in float32
  note      why the case is there
Needs Debian's python3-torch and python3-torchvision."""
import argparse
import json
import sys
import warnings
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import torch
from torch import Tensor, nn

import control_flow_models
import conv_bn_models
import operator_models
from case import Case, image
from check_saved import difference
from randomise import randomise
from torchvision_models import BY_DAY, MODELS


class Holder(nn.Module):
    """Nothing but attributes: what a C++ program reads with module.attr("inputs")."""

    def __init__(self, inputs, output):
        super().__init__()
        for name, value in (("input", inputs[0]), ("output", output)):
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            elif name == "output":
                self.output = value
        self.inputs = inputs

    def forward(self):
        return self.inputs


def plain(value):
    """The same value with named tuples as tuples and tensors as dense copies."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def structure(value):
    """The nesting of a value, to see whether two results are alike."""
    if isinstance(value, (tuple, list)):
        return [structure(v) for v in value]
    if isinstance(value, dict):
        return {k: structure(v) for k, v in value.items()}
    return type(value).__name__


def describe(value):
    if isinstance(value, Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).split(".")[1]}
    if isinstance(value, dict):
        return {k: describe(v) for k, v in value.items()}
    return [describe(v) for v in value]


def floating(value):
    """The same inputs in float32."""
    if isinstance(value, Tensor):
        return value.float() if value.is_floating_point() else value
    return tuple(floating(v) for v in value)


def run(case, model):
    if case.runs:
        return plain(model(*plain(case.inputs)))
    return model.float()(*floating(case.inputs)).to(case.inputs[0].dtype)


def save_io(path, inputs, output):
    torch.jit.script(Holder(inputs, output)).save(str(path))


def trace(case):
    """Traced; what the tracing run wrote into weights and buffers is put back."""
    model = case.build()
    state = [(tensor, tensor.clone()) for tensor in model.state_dict().values()]
    traced = torch.jit.trace(model, plain(case.inputs), check_trace=False, strict=False)
    for tensor, before in state:
        tensor.copy_(before)
    return traced


def check(case, module, output):
    """The module about to be saved must give the expected output itself."""
    if not case.compare or not case.runs:
        return
    worst = difference(output, plain(module(*plain(case.inputs))))
    if not worst <= case.rtol:
        sys.exit(f"{case.name}: TorchScript differs from eager by {worst}")


def entry(case, kind, file, io):
    loads = True if kind == "traced" else case.loads
    expected = {"loads": loads, "foldable_bn": case.foldable, "unfoldable_bn": case.kept, "optional_bn": case.optional}
    if not loads and case.error:
        expected["error"] = case.error
    return {"name": case.name, "kind": kind, "file": file, "io": io, "inputs": describe(case.inputs), "expected": expected,
            "rtol": case.rtol, "compare": case.compare, "runs": case.runs, "note": case.note}


def write(case, out):
    """All files of one case; returns its manifest entries."""
    eager = run(case, case.build())
    save_io(out / f"{case.name}.io.pt", case.inputs, eager)
    kinds = [("scripted", lambda: torch.jit.script(case.build()))] * case.scripted + [("traced", lambda: trace(case))] * case.traced
    entries = []
    for kind, build in kinds:
        module = build()
        file, io, output = f"{case.name}.{kind}.pt", f"{case.name}.io.pt", eager
        module.save(str(out / file))
        if case.runs:
            own = plain(torch.jit.load(str(out / file))(*plain(case.inputs)))
            if structure(own) != structure(eager):  # GoogLeNet's scripted form always returns a tuple
                io, output = f"{case.name}.{kind}.io.pt", own
                save_io(out / io, case.inputs, own)
        check(case, torch.jit.load(str(out / file)), output)
        entries.append(entry(case, kind, file, io))
    return entries


def torchvision_cases():
    for name, (make, size, foldable, kept) in MODELS.items():
        def seeded(make=make, size=size):
            return randomise(make(), image(8, 3, size, size, seed=7))
        yield Case(name, seeded, (image(2, 3, size, size),), foldable=foldable, kept=kept)


class NoForward(nn.Module):
    @torch.jit.export
    def predict(self, x):
        return x + 1


BAD = {
    "state_dict": "weights without a program",
    "pickled_module": "a Python pickle",
    "truncated": "the last third is missing",
    "broken_code": "a good archive, but its program does not parse",
    "empty": "no bytes",
    "no_forward": "TorchScript without a forward method",
}


def write_bad(out):
    """Files that are no model: loading must fail and say why."""
    def path(name):
        return out / f"{name}.bad.pt"
    model = randomise(nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)))
    torch.save(model.state_dict(), path("state_dict"))
    torch.save(model, path("pickled_module"))
    torch.jit.script(model).save(str(path("broken_code")))
    whole = path("broken_code").read_bytes()
    path("truncated").write_bytes(whole[:len(whole) * 2 // 3])
    with ZipFile(BytesIO(whole)) as good, ZipFile(path("broken_code"), "w") as bad:
        for member in good.namelist():
            data = good.read(member)
            bad.writestr(member, data.replace(b"def forward(", b"def forward((") if member.endswith(".py") else data)
    path("empty").write_bytes(b"")
    torch.jit.script(NoForward()).save(str(path("no_forward")))
    return [{"name": name, "kind": "bad", "file": path(name).name, "io": None, "inputs": [], "rtol": 0, "compare": False,
             "runs": False, "note": note, "expected": {"loads": False, "foldable_bn": 0, "unfoldable_bn": 0, "optional_bn": 0}}
            for name, note in BAD.items()]


def main():
    parser = argparse.ArgumentParser(description="Write the test models, their inputs and outputs, and a manifest.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this model (repeatable)")
    parser.add_argument("--by-day", action="store_true", help="of torchvision's only the small ones")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    options.out.mkdir(parents=True, exist_ok=True)

    cases = [*conv_bn_models.CASES, *control_flow_models.CASES, *operator_models.CASES]
    cases = [*(case for case in torchvision_cases() if not options.by_day or case.name in BY_DAY), *cases]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        sys.exit("two cases have the same name")
    entries = []
    for case in cases:
        if not options.only or case.name in options.only:
            entries += write(case, options.out)
    if not options.only:
        entries += write_bad(options.out)
    (options.out / "manifest.json").write_text(json.dumps(entries, indent=1) + "\n")
    print(f"{len(entries)} files in {options.out}")


if __name__ == "__main__":
    main()
