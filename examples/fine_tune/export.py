"""Exports a model for fine_tune.cc: python3 export.py model.pt2"""

import sys

import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


batch = torch.export.Dim("batch", min=1, max=64)
program = torch.export.export(Classifier(), (torch.rand(3, 8),), dynamic_shapes=({0: batch},))
torch.export.save(program, sys.argv[1])
