"""Loads what fine_tune.cc wrote: python3 check.py tuned.pt2"""

import sys

import torch

model = torch.export.load(sys.argv[1]).module()
for batch in (1, 5, 64):
    print(tuple(model(torch.rand(batch, 8)).shape))
