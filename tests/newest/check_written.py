#!/usr/bin/env python3
"""Loads archives that the C++ tests of fxgraph wrote, and does with them what the tests did.

  check_written.py FOLDER [--compile NAME...]

FOLDER has NAME.pt2 and its recordings NAME.pt2.0.io, NAME.pt2.1.io, … (tests/pt2/kept_archive.h):
FXGRAPH_TEST_PT2_KEEP=FOLDER fxgraph_trace_test --gtest_filter='SavedArchive*' leaves them, and fxgraph_pt2_test with
'ForPython/*'. --compile gives those named to aoti_compile_and_package, too (a C++ compiler). Says how many of how many of
each kind hold; the kind is the first word of the name.
"""

import glob
import os
import re
import sys
import tempfile
import warnings

import torch

from exports import load_example

warnings.simplefilter("ignore")
tree = torch.utils._pytree

KINDS = {
    "traced": "traced in C++, run by Python at two sizes or more, equal",
    "memory": "that share memory, run and trained by Python, shared and equal",
    "asserts": "that assert, run by Python, equal and refusing what fxgraph refuses",
    "sizes": "of which an operator's rule says the sizes, run by Python at others, equal",
    "numbers": "that compute with sizes, run by Python at others, equal",
    "data": "whose sizes data decide, run by Python on other data, equal",
}


class Archive:
    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path).removesuffix(".pt2")
        files = sorted(glob.glob(path + ".*.io"), key=lambda name: int(name.split(".")[-2]))
        self.recordings = [torch.load(file, weights_only=False) for file in files]

    def of(self, what):
        return [rest for kind, *rest in self.recordings if kind == what]

    def sizes(self):
        return {tuple(tuple(v.shape) for v in tree.tree_leaves(inputs) if isinstance(v, torch.Tensor))
                for inputs, _ in self.of("gives")}


def is_same(got, wanted):
    if not isinstance(wanted, torch.Tensor):
        return got == wanted
    return got.dtype == wanted.dtype and got.shape == wanted.shape and torch.allclose(got, wanted, 1e-3, 1e-5, True)


def wrong_calls(run, archive):
    """What `run` does otherwise than fxgraph did, call by call."""
    for kind, inputs, *outputs in (each for each in archive.recordings if each[0] in ("gives", "refuses")):
        shown = [tuple(v.shape) if isinstance(v, torch.Tensor) else v for v in tree.tree_leaves(inputs)]
        try:
            got = tree.tree_leaves(run(*inputs))
        except Exception as error:  # of which type is Python's matter
            if kind == "gives":
                yield f"at {shown}: {type(error).__name__}: {str(error)[:200]}"
            continue
        if kind == "refuses":
            yield f"at {shown}: not refused"
            continue
        wanted = tree.tree_leaves(outputs[0])
        if len(got) != len(wanted) or not all(map(is_same, got, wanted)):
            yield f"at {shown}: the outputs differ"


def wrong_steps(archive):
    for inputs, rate, losses in archive.of("trains"):
        module = torch.export.load(archive.path).module()
        sgd = torch.optim.SGD(module.parameters(), rate)
        for step, wanted in enumerate(losses):
            sgd.zero_grad()
            loss = module(*inputs).sum()
            if abs(loss.item() - wanted) > 1e-4 * (1 + abs(wanted)):
                yield f"step {step}: the loss is {loss.item()}, not {wanted}"
            loss.backward()
            sgd.step()


def wrong_memory(program, archive):
    named = {**program.state_dict, **program.constants}
    for names, in archive.of("shares"):
        if len({named[name].untyped_storage().data_ptr() for name in names}) != 1:
            yield f"{', '.join(names)} do not share memory"


def wrong_decomposition(program, archive):
    try:
        program.run_decompositions()
        refused = None
    except Exception as error:
        refused = f"run_decompositions(): {type(error).__name__}: {str(error)[:200]}"
    if archive.of("undecomposed") and not refused:
        yield "run_decompositions() takes it"
    if refused and not archive.of("undecomposed"):
        yield refused


def wrong(archive, is_compiled):
    """Yields all that does not hold of it."""
    load_example(archive.path)
    program = torch.export.load(archive.path)
    yield from wrong_calls(program.module(), archive)
    yield from wrong_steps(archive)
    yield from wrong_memory(program, archive)
    yield from wrong_decomposition(program, archive)
    if is_compiled:
        with tempfile.TemporaryDirectory() as folder:
            package = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
            yield from (f"compiled, {each}" for each in wrong_calls(torch._inductor.aoti_load_package(package), archive))
    if not archive.recordings:
        yield "nothing was recorded"
    if archive.name.startswith("traced_") and len(archive.sizes()) < 2:
        yield "recorded at one size only"


def check(folder, compiled):
    archives = [Archive(path) for path in sorted(glob.glob(folder + "/*.pt2"))]
    good = {kind: [] for kind in KINDS}
    for archive in archives:
        try:
            found = list(wrong(archive, archive.name in compiled))
        except Exception as error:
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        good[archive.name.split("_")[0]].append(not found)
        for each in found:
            print(f" not {archive.name}:", re.sub(r"\s+", " ", each))
    for kind, held in good.items():
        print(f"written in C++ {KINDS[kind]}: {sum(held)} of {len(held)}")
    missing = set(compiled) - {archive.name for archive in archives}
    if missing:
        print(" not there:", ", ".join(sorted(missing)))
    return not missing and all(held and all(held) for held in good.values())


if __name__ == "__main__":
    if len(sys.argv) == 2 or (len(sys.argv) >= 4 and sys.argv[2] == "--compile"):
        sys.exit(0 if check(sys.argv[1], sys.argv[3:]) else 1)
    sys.exit(__doc__)
