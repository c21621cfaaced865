#!/usr/bin/env python3
"""Writes small models in the forms in which one model comes: tests/corpus/forms.

  forms.py FOLDER

With torch 1.13 NAME.pt (torch.jit.trace), with a newer one NAME.pt2 and NAME.core.pt2 (run_decompositions()).
"""

import io
import math
import sys
import zipfile

import torch
import torch.nn.functional as F
from torch import nn


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.c2, self.b2 = nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4)
        self.l, self.b3 = nn.Linear(4, 3), nn.BatchNorm1d(3)
        for norm in (self.b1, self.b2, self.b3):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)

    def forward(self, v):
        y = F.relu(self.b1(self.c1(v)))
        y = F.relu(y + self.b2(self.c2(y)))
        return self.b3(self.l(y.mean((2, 3))))


class Activations(nn.Module):
    def forward(self, v):
        return (v * torch.sigmoid(v), v * F.relu6(v + 3) / 6, v * 0.5 * (1 + torch.erf(v / math.sqrt(2))),
                0.5 * v * (1 + torch.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * torch.pow(v, 3)))),
                torch.where(v > 0, v, 0.1 * v))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b, self.l = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(8)), nn.Linear(8, 8)

    def forward(self, v):
        centred = v - v.mean(-1, keepdim=True)
        y = centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * self.w + self.b
        return self.l(y), F.dropout(y, 0.1, self.training)


class Attention(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (l(x).view(b, t, self.heads, w // self.heads).permute(0, 2, 1, 3) for l in (self.q, self.k, self.v))
        p = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(w // self.heads), -1)
        return self.o(torch.matmul(p, v).permute(0, 2, 1, 3).reshape(b, t, w))


class CausalAttention(Attention):
    """As GPT has it: one linear for all three, a mask that is added, views that are transposed."""

    def __init__(self, width=16, heads=2):
        super().__init__(width, heads)
        self.all = nn.Linear(width, 3 * width)
        self.register_buffer("mask", torch.full((32, 32), -1e9).triu(1))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, w // self.heads).transpose(1, 2) for y in self.all(x).split(w, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(w // self.heads)) + self.mask[:t, :t]
        return self.o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, w))


MODELS = {"convolutions": (Convolutions, (2, 3, 8, 8)), "activations": (Activations, (3, 8)), "norms": (Norms, (3, 8)),
          "attention": (Attention, (2, 5, 16)), "causal_attention": (CausalAttention, (2, 5, 16))}


def save_without_lines(traced, path):
    """Without the places in this file that TorchScript keeps beside the code: where it lies is nobody's business."""
    whole = io.BytesIO()
    torch.jit.save(traced, whole)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as plain:
        for part in archive.namelist():
            if not part.endswith(".debug_pkl"):
                plain.writestr(zipfile.ZipInfo(part), archive.read(part))


def main(folder):
    torch.manual_seed(0)
    for name, (make, sizes) in MODELS.items():
        model, x = make().eval(), torch.randn(*sizes)
        if torch.__version__.startswith("1."):
            save_without_lines(torch.jit.trace(model, x), f"{folder}/{name}.pt")
            continue
        program = torch.export.export(model, (x,), strict=False)
        torch.export.save(program, f"{folder}/{name}.pt2")
        torch.export.save(program.run_decompositions(), f"{folder}/{name}.core.pt2")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
