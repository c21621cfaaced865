#!/usr/bin/python3
"""Write what torch.fx prints, for tests of the text parser: fx_dump.py OUT

For each torchvision model, each hand-made model that symbolic_trace accepts and each graph of fx_syntax.py: OUT/NAME.fx, which is
str(graph), and OUT/NAME.py, the Python code torch.fx makes of it. Needs Debian's python3-torch and python3-torchvision."""
import sys
import warnings
from pathlib import Path

import torch

import control_flow_models
import conv_bn_models
import fx_syntax
import operator_models
from torchvision_models import MODELS


def graphs():
    for name, (make, *_) in MODELS.items():
        yield name, fx_syntax.Tracer().trace(make().eval())
    for case in [*conv_bn_models.CASES, *control_flow_models.CASES, *operator_models.CASES]:
        try:
            yield case.name, fx_syntax.Tracer().trace(case.build())
        except Exception as error:  # what the tracer refuses is no matter of ours, whatever it raises
            print(f"{case.name}: not traced: {str(error).splitlines()[0]:.90}")
    yield from fx_syntax.graphs()


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: fx_dump.py OUT")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    count = 0
    for name, graph in graphs():
        (out / f"{name}.fx").write_text(f"{graph}\n")
        (out / f"{name}.py").write_text(graph.python_code("self").src)
        count += 1
    print(f"{count} graphs in {out}")


if __name__ == "__main__":
    main()
