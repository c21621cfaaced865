#!/usr/bin/env python3
"""Exports programs with this Python's torch, and compares what fxgraph makes of them.

  exports.py export FOLDER [NAME...]            NAME.pt2, NAME.core.pt2 and NAME.io for each case, NAME.io1, … for
                                                further calls
  exports.py check FOLDER WRITTEN [RESULTS]     loads what the tests of fxgraph wrote; RESULTS is their --gtest_output=json
  exports.py compile FOLDER WRITTEN NAME...     gives those of what they wrote to AOTInductor (needs a C++ compiler)

Between export and check: FXGRAPH_TEST_PT2=FOLDER FXGRAPH_TEST_PT2_KEEP=WRITTEN fxgraph_pt2_test --gtest_filter='OfPython/*'.
A recording is what torch.save wrote of (inputs, outputs, gradients, state, inputs after the call, outputs after a step
of SGD), all of them flat. Exits 1 when a program differs.
"""

import io
import json
import logging
import os
import re
import sys
import tempfile
import warnings
import zipfile

import torch

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
tree = torch.utils._pytree
STEP = 0.01
# A refusal is an answer, many are a fault. TorchScript has no words for what nests graphs or values of several types.
MOST_REFUSED = {"SavedArchive.IsTheProgramThatWasLoaded": 0.05, "Converted.ToTorchScriptAndBack": 0.2}


def copies(values):
    copy = lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v
    return tree.tree_map(copy, values)


# What LibTorch's reader of torch.save's files has no words for goes as another type of the same bytes, with its name.
BYTES = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64, torch.complex32: torch.int32,
         torch.float8_e5m2: torch.int8, torch.float8_e4m3fn: torch.int8}


def plain(values):
    def kept(v):
        if not isinstance(v, torch.Tensor):
            return v
        v = v.detach().clone()
        return (f"{v.dtype}", v.contiguous().view(BYTES[v.dtype])) if v.dtype in BYTES else v
    return tuple(map(kept, values))


def restored(values):
    as_before = lambda v: v[1].view(getattr(torch, v[0].split(".")[1])) if isinstance(v, tuple) else v
    return tuple(map(as_before, values))


def loss_of(outputs):
    total = 0
    for value in outputs:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            total = total + (value.real if value.is_complex() else value).double().sum()
    return total


def record(path, args, kwargs):
    module = torch.export.load(path).module()
    run_args, run_kwargs = copies(args), copies(kwargs)
    torch.manual_seed(0)
    outputs = tree.tree_leaves(module(*run_args, **run_kwargs))
    seen = plain(outputs)
    loss, differentiates = loss_of(outputs), True
    if isinstance(loss, torch.Tensor):
        try:
            loss.backward()
        except RuntimeError:  # a decomposed program may write what its gradient needs
            module.zero_grad(set_to_none=True)
            differentiates = False
    parameters = [(name, p) for name, p in module.named_parameters() if p.grad is not None]
    gradients = tuple((name, p.grad.clone()) for name, p in parameters)
    state = tuple((name, *plain([b])) for name, b in module.named_buffers())
    after = plain(tree.tree_leaves((run_args, run_kwargs)))
    with torch.no_grad():
        for _, parameter in parameters:
            parameter -= STEP * parameter.grad
    torch.manual_seed(0)
    stepped = plain(tree.tree_leaves(module(*copies(args), **copies(kwargs))))
    return plain(tree.tree_leaves((args, kwargs))), seen, gradients, state, after, stepped if differentiates else ()


def record_more(path, case, stem):
    for i, args in enumerate(case.more, 1):
        run_args, run_kwargs = copies(args), copies(case.kwargs)
        torch.manual_seed(0)
        outputs = tree.tree_leaves(torch.export.load(path).module()(*run_args, **run_kwargs))
        torch.save((plain(tree.tree_leaves((args, case.kwargs))), plain(outputs), (), (),
                    plain(tree.tree_leaves((run_args, run_kwargs)))), f"{stem}.io{i}")


def export(folder, names):
    from cases import CASES
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    done, refused = 0, []
    for case in CASES:
        if names and case.name not in names:
            continue
        try:
            module = case.make().train(case.training)
            program = torch.export.export(module, copies(case.args), copies(case.kwargs), dynamic_shapes=case.dynamic,
                                          strict=False)
            torch.export.save(program, f"{folder}/{case.name}.pt2")
            torch.save(record(f"{folder}/{case.name}.pt2", case.args, case.kwargs), f"{folder}/{case.name}.io")
            record_more(f"{folder}/{case.name}.pt2", case, f"{folder}/{case.name}")
            if case.core:
                core = program.run_decompositions()
                torch.export.save(core, f"{folder}/{case.name}.core.pt2")
                # Decomposed functions of random numbers draw others, and states are functional.
                torch.save(record(f"{folder}/{case.name}.core.pt2", case.args, case.kwargs),
                           f"{folder}/{case.name}.core.io")
            done += 1
        except Exception as error:  # what torch.export refuses is no matter of ours
            for file in os.listdir(folder):
                if file.split(".")[0] == case.name:
                    os.remove(f"{folder}/{file}")
            refused.append(f"{case.name}: {type(error).__name__}")
    print(f"exported {done} of {done + len(refused)} programs; torch {torch.__version__} refuses", ", ".join(refused) or "none")


def same(got, wanted):
    if not isinstance(wanted, torch.Tensor):
        return got == wanted
    counted = lambda v: v.to(torch.complex128 if v.is_complex() else torch.float64)
    return (got.dtype == wanted.dtype and got.shape == wanted.shape and
            torch.allclose(counted(got), counted(wanted), 1e-3, 1e-5, equal_nan=True))


def runs_equal(program, recording, module):
    """Throws unless a fresh module() gives the outputs of each call recorded."""
    recordings = [recording] + [f"{recording}{i}" for i in range(1, 9) if os.path.exists(f"{recording}{i}")]
    for each in recordings:
        inputs, outputs = map(restored, torch.load(each, weights_only=False)[:2])
        args, kwargs = tree.tree_unflatten(list(inputs), program.call_spec.in_spec)
        torch.manual_seed(0)
        got = tree.tree_leaves(module()(*args, **kwargs))
        if len(got) != len(outputs) or not all(map(same, got, outputs)):
            raise AssertionError("the outputs differ")


def load_example(path):
    """As torch.export.load does, which only logs that the example names classes and is loaded all the same."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/data/sample_inputs/model.pt"))
        example = archive.read(name)
        if example:  # of inputs of some types there is none
            torch.load(io.BytesIO(example), weights_only=True)


def loads_equal(path, recording):
    load_example(path)
    program = torch.export.load(path)
    runs_equal(program, recording, lambda: torch.export.load(path).module())
    program.run_decompositions()


def compiles_equal(path, recording):
    program = torch.export.load(path)
    with tempfile.TemporaryDirectory() as folder:
        package = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2")
        runs_equal(program, recording, lambda: torch._inductor.aoti_load_package(package))


def recording_of(folder, name):
    own = f"{folder}/{name}.io"
    return own if os.path.exists(own) else f"{folder}/{name.removesuffix('.core')}.io"


def check(folder, written, results):
    import cases  # whose named tuples and dataclasses torch.export.load must know, too
    archives = sorted(n.removesuffix(".pt2") for n in os.listdir(folder) if n.endswith(".pt2"))
    failed = False
    refused = {}  # by test, and by archive with the reason
    if results:
        outcomes = {}
        for suite in json.load(open(results))["testsuites"]:
            for test in suite["testsuite"]:
                what, name = f"{suite['name'].split('/')[1]}.{test['name'].split('/')[0]}", test["name"].split("/")[1]
                good = outcomes.setdefault(what, [0, 0, []])
                good[1] += 1
                if "refused" in test:
                    refused.setdefault(what, {})[name] = test["refused"]
                if "failures" not in test and test.get("result") != "SKIPPED":
                    good[0] += 1
                else:
                    good[2].append(name)
        for name, (good, of, bad) in outcomes.items():
            failed |= good < of
            print(f"{name}: {good} of {of}", *(["not:", ", ".join(bad)] if bad else []))
    for what, names in refused.items():
        print(f"{what}, of these refused by name: {len(names)}")
        for name, why in names.items():
            print(f" {name} ({why[:200]})")
        failed |= len(names) > MOST_REFUSED.get(what, 0) * len(archives)
    # As tests are called: see test_name in tests/pt2/save_test.cc.
    unwritten = refused.get("SavedArchive.IsTheProgramThatWasLoaded", {})
    expected = [name for name in archives if re.sub(r"[^0-9A-Za-z]", "_", name) not in unwritten]
    return count("written and loaded by Python, equal", loads_equal, expected, folder, written) and not failed


def count(what, holds, names, folder, written):
    """Prints of how many of the names it holds, and for which it does not; whether it holds of all."""
    bad = []
    for name in names:
        try:
            holds(f"{written}/{name}.pt2", recording_of(folder, name))
        except Exception as error:
            bad.append(f"{name} ({type(error).__name__}: {re.sub(chr(10), ' ', str(error))[:200]})")
    print(f"{what}: {len(names) - len(bad)} of {len(names)}")
    for line in bad:
        print(" not", line)
    return not bad


if __name__ == "__main__":
    if len(sys.argv) >= 3 and sys.argv[1] == "export":
        export(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) >= 4 and sys.argv[1] == "check":
        sys.exit(not check(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None))
    elif len(sys.argv) >= 5 and sys.argv[1] == "compile":
        sys.exit(not count("compiled by AOTInductor, equal", compiles_equal, sys.argv[4:], sys.argv[2], sys.argv[3]))
    else:
        sys.exit(__doc__)
