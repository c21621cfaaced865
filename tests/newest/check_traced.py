#!/usr/bin/env python3
"""Loads archives that fxgraph wrote of C++ models, and compares them with what C++ computed, at every size recorded.

  check_traced.py FOLDER [--compile NAME...]

FOLDER has NAME.pt2 and NAME.pt2.0.io, NAME.pt2.1.io, …: FXGRAPH_TEST_PT2_KEEP=FOLDER fxgraph_trace_test
--gtest_filter='SavedArchive*' leaves them. --compile gives those named to aoti_compile_and_package, too (a C++ compiler).
"""

import glob
import os
import sys
import tempfile
import warnings

import torch

from exports import load_example

warnings.simplefilter("ignore")
tree = torch.utils._pytree


def differences(run, path):
    for recording in sorted(glob.glob(path + ".*.io")):
        inputs, outputs = torch.load(recording, weights_only=False)
        got, wanted = tree.tree_leaves(run(*inputs)), tree.tree_leaves(outputs)
        sizes = [tuple(v.shape) for v in tree.tree_leaves(inputs)]
        if len(got) != len(wanted):
            yield f"at {sizes}: {len(got)} results for {len(wanted)}"
        elif not all(torch.allclose(a, b, 1e-3, 1e-5) for a, b in zip(got, wanted)):
            yield f"at {sizes}: the outputs differ"


def main(folder, compiled=()):
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(0 if check(folder, compiled, scratch) else 1)


def check(folder, compiled, scratch):
    paths, good = sorted(glob.glob(folder + "/*.pt2")), 0
    for path in paths:
        name = os.path.basename(path).removesuffix(".pt2")
        try:
            load_example(path)
            program = torch.export.load(path)
            wrong = list(differences(program.module(), path))
            program.run_decompositions()
            if name in compiled:
                package = torch._inductor.aoti_compile_and_package(program, package_path=f"{scratch}/{name}.pt2")
                wrong += [f"compiled, {each}" for each in differences(torch._inductor.aoti_load_package(package), path)]
        except Exception as error:
            wrong = [f"{type(error).__name__}: {str(error)[:300]}"]
        if not wrong and len(glob.glob(path + ".*.io")) < 2:
            wrong = ["recorded at one size only"]
        good += not wrong
        print(" ", name, *(wrong or ["equal, sizes " + ", ".join(f"{k} {v}" for k, v in program.range_constraints.items())]))
    print(f"traced in C++, written, run by Python at two sizes or more, equal: {good} of {len(paths)}")
    return bool(paths) and good == len(paths)


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[2] == "--compile":
        main(sys.argv[1], sys.argv[3:])
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
