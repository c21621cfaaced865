#!/usr/bin/env python3
"""Loads archives that fxgraph wrote of C++ models, and compares them with what C++ computed, at every size recorded.

  check_traced.py FOLDER [--compile NAME]

FOLDER has NAME.pt2 and NAME.pt2.0.io, NAME.pt2.1.io, …: FXGRAPH_TEST_PT2_KEEP=FOLDER fxgraph_trace_test
--gtest_filter='SavedArchive*' leaves them. --compile gives NAME to aoti_compile_and_package, too (a C++ compiler).
"""

import glob
import os
import sys
import warnings

import torch

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


def main(folder, compiled=None):
    failed = 0
    for path in sorted(glob.glob(folder + "/*.pt2")):
        name = os.path.basename(path).removesuffix(".pt2")
        try:
            program = torch.export.load(path)
            wrong = list(differences(program.module(), path))
            program.run_decompositions()
            if name == compiled:
                package = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/{name}.aoti.pt2")
                wrong += [f"compiled, {each}" for each in differences(torch._inductor.aoti_load_package(package), path)]
        except Exception as error:
            wrong = [f"{type(error).__name__}: {str(error)[:300]}"]
        failed += bool(wrong)
        print(name, *(wrong or ["equal, sizes " + ", ".join(f"{k} {v}" for k, v in program.range_constraints.items())]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] == "--compile":
        main(sys.argv[1], sys.argv[3])
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
