#!/usr/bin/python3
"""Does a saved TorchScript file still give the expected output in Python's torch?

  check_saved.py IO SAVED [--rtol R]     IO: an io file of make_models.py
  check_saved.py --pairs LIST            LIST: lines "IO SAVED [RTOL]", "-" for standard input; many files, one start of Python
Exit status 0 when all are equal within RTOL (max |difference| / max |expected|, 1e-4 unless told), else 1; a line a file."""
import argparse
import sys
import warnings

import torch
from torch import Tensor


def pairs(expected, found, where="output"):
    """The (expected, found, where) leaves of two results of the same structure; ValueError where they are not the same."""
    if isinstance(expected, (tuple, list)) and isinstance(found, (tuple, list)):
        if len(expected) != len(found):
            raise ValueError(f"{where}: {len(expected)} elements expected, {len(found)} found")
        for i, (e, f) in enumerate(zip(expected, found)):
            yield from pairs(e, f, f"{where}[{i}]")
    elif isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            raise ValueError(f"{where}: keys {sorted(expected)} expected, {sorted(found)} found")
        for key in expected:
            yield from pairs(expected[key], found[key], f"{where}[{key!r}]")
    elif isinstance(expected, Tensor) and isinstance(found, Tensor):
        if expected.shape != found.shape or expected.dtype != found.dtype:
            raise ValueError(f"{where}: {expected.dtype} {list(expected.shape)} expected, {found.dtype} {list(found.shape)} found")
        yield expected, found, where
    elif expected != found or type(expected) is not type(found):
        raise ValueError(f"{where}: {expected!r:.60} expected, {found!r:.60} found")


def relative(expected, found):
    """max |difference| / max |expected|; infinite where one is nan or infinite and the other is not the same."""
    if not expected.numel():
        return 0.0
    expected, found = expected.double(), found.double()
    special = ~expected.isfinite() | ~found.isfinite()
    same = (expected == found) | (expected.isnan() & found.isnan())
    if bool((special & ~same).any()):
        return float("inf")
    scale = expected.masked_fill(special, 0).abs().max().item()
    worst = (expected - found).masked_fill(special, 0).abs().max().item()
    return worst / scale if scale else worst


def difference(expected, found):
    """The largest relative difference of all tensors in two results."""
    return max((relative(e, f) for e, f, _ in pairs(expected, found)), default=0.0)


def cast(value, dtype):
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    return tuple(cast(v, dtype) for v in value)


def call(module, inputs):
    """The module's result; in float32 where this torch has no half-precision kernel for the CPU."""
    try:
        return module(*inputs)
    except RuntimeError as error:
        if "not implemented for 'Half'" not in str(error):
            raise
        return cast(module.float()(*cast(inputs, torch.float32)), torch.float16)


def check(io_file, saved_file, rtol):
    """One line of verdict, and whether it is good."""
    try:
        io = torch.jit.load(io_file)
        torch.manual_seed(0)
        worst = difference(io.output, call(torch.jit.load(saved_file), io.inputs))
    except (RuntimeError, ValueError) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return f"{saved_file}: {lines[-1].strip() if lines else error}", False
    if not worst <= rtol:
        return f"{saved_file}: differs by {worst:.2e}, more than {rtol:.0e}", False
    return f"{saved_file}: equal within {worst:.1e}", True


def main():
    parser = argparse.ArgumentParser(description="Compare what saved TorchScript files compute with what was expected.")
    parser.add_argument("files", nargs="*", metavar="IO SAVED")
    parser.add_argument("--pairs", metavar="LIST", help='lines "IO SAVED [RTOL]"; - for standard input')
    parser.add_argument("--rtol", type=float, default=1e-4)
    options = parser.parse_args()
    if bool(options.pairs) == bool(options.files) or len(options.files) not in (0, 2):
        parser.error("give IO and SAVED, or --pairs LIST")

    jobs = [[*options.files, options.rtol]]
    if options.pairs:
        with (sys.stdin if options.pairs == "-" else open(options.pairs)) as lines:
            jobs = [words for words in map(str.split, lines) if words]
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    good = True
    for io_file, saved_file, *rtol in jobs:
        line, equal = check(io_file, saved_file, float(rtol[0]) if rtol else options.rtol)
        good &= equal
        print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
