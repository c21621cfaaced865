"""Hand-made models for the importer: kinds of inputs, outputs and arguments, torch.nn leaves, operators and their effects."""
import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from case import Case, image
from randomise import made

X = (image(2, 4, 8, 8),)
ROWS = (image(3, 8),)
SEQUENCE = (image(5, 2, 8),)  # time, batch, features


class TupleOutput(nn.Module):
    def forward(self, x):
        return x + 1, (x * 2, x.size(0)), 3


class DictOutput(nn.Module):
    def forward(self, x) -> Dict[str, Tensor]:
        return {"sum": x.sum(), "max": x.amax(1)}


class ListOutput(nn.Module):
    def forward(self, x) -> List[Tensor]:
        return [x.relu(), x.neg()]


class Pair(NamedTuple):
    value: Tensor
    rest: Optional[Tensor]


class NamedTupleOutput(nn.Module):
    def forward(self, x):
        return Pair(x.relu(), None)


class SubmoduleTuple(nn.Module):
    """A submodule that returns a tuple, unpacked by its caller."""

    def __init__(self):
        super().__init__()
        self.inner = TupleOutput()

    def forward(self, x):
        a, (b, n), k = self.inner(x)
        return a + b * n - k


class DictInput(nn.Module):
    def forward(self, x: Dict[str, Tensor]):
        return x["a"] - x["b"]


class TupleInput(nn.Module):
    def forward(self, x: Tuple[Tensor, Tensor]):
        a, b = x
        return a - b


class ListInput(nn.Module):
    def forward(self, x: List[Tensor]):
        return torch.cat(x, 0)


class WrittenState(nn.Module):
    """A counter kept in a buffer: a write that outlives the call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Printing(nn.Module):
    def forward(self, x):
        print("shape", x.shape)
        return x.relu()


class Leaf(nn.Module):
    """One torch.nn module, called as the inputs say; of a tuple result all of it is returned."""

    def __init__(self, leaf):
        super().__init__()
        self.leaf = leaf

    def forward(self, x):
        return self.leaf(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, q, k, v):
        out, weights = self.attention(q, k, v, need_weights=True)
        return out, weights


class LstmState(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h + c


class Interpolate(nn.Module):
    def forward(self, x):
        a = F.interpolate(x, scale_factor=2.0, mode="nearest")
        b = F.interpolate(x, size=[16, 16], mode="bilinear", align_corners=False)
        return a + b


class Upsample(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)

    def forward(self, x):
        return self.up(x).relu()


class Sizes(nn.Module):
    def forward(self, x):
        b, c, h, w = x.size()
        y = x.view(b, c // 2, 2, h * w).transpose(1, 2).contiguous().view(x.shape[0], -1)
        y = y / math.sqrt(y.size(-1)) + float(x.size(0))
        return torch.flatten(x, 1) + y.reshape(x.size(0), x.numel() // b)


class Splits(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        c, d = torch.split(x, [1, 3], dim=1)
        e = x.split(2, 1)
        values, index = torch.topk(x, 2, dim=-1)
        top = x.max(dim=-1)
        return a * b + c, d.mean(), e[1], values, index, top[0], x.unbind(0)[0]


class Slices(nn.Module):
    def forward(self, x):
        y = x[:, 1:3, ::2, -1] + x[:, :2, :4, 0]
        z = x[0][None, ..., 1]
        mask = x > 0
        rows = x[torch.tensor([1, 0])]
        return y, z, x[mask], rows


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y += 1
        y.mul_(2).clamp_(min=0)
        y[:, 0] = 5
        y[:, 1:2] += x[:, 1:2]
        z = F.relu(y, inplace=True)
        return y, z + torch.add(x, y, alpha=2, out=torch.empty_like(x))


class DropoutTrain(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(x) + F.dropout(x, 0.25, training=self.training)


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(10, 8, padding_idx=0), nn.Linear(8, 4)

    def forward(self, ids):
        return self.linear(self.embedding(ids)).mean(1)


class Factories(nn.Module):
    def forward(self, x):
        n = x.size(-1)
        y = x + torch.ones(n) * torch.arange(n, dtype=x.dtype, device=x.device)
        return y + torch.zeros_like(x) + torch.tensor([1.0, float("inf"), -2.0])[2] + torch.full([1], -3.5)


class Casts(nn.Module):
    def forward(self, x):
        y = x.to(torch.float64).to("cpu", torch.float32)
        return y + x.double().float() + x.to(y) + x.long().type_as(x), (x > 0).int()


class Einsum(nn.Module):
    def forward(self, x, y):
        return torch.einsum("bchw,bdhw->bcd", x, y), torch.matmul(x, y) @ x


class Literals(nn.Module):
    """Strings, None, infinities, negative and large numbers as arguments."""

    def forward(self, x):
        y = F.pad(x, [1, 1, 0, 2], mode="reflect")
        z = torch.div(x, 3, rounding_mode="floor").clamp(None, 1.0).clamp(min=-2)
        z = torch.nan_to_num(z / 0, 0.0, float("inf"), -1e30)
        return y, torch.clamp(z, max=1e10), x.argmax(), x.sum(-1, keepdim=True, dtype=None)


class Scale(nn.Module):
    """Not a torch.nn module: inlined, its parameter becomes get_attr."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(image(4, 1, 1))

    def forward(self, x):
        return x * self.gain


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Scale(), nn.Sequential(Scale(), nn.Conv2d(4, 2, 1))

    def forward(self, x):
        return self.second(self.first(x)) + self.first.gain.sum()


class SharedPaths(nn.Module):
    """One submodule under two names, and called twice under one of them."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(self.a(x)))


class Direct(nn.Module):
    """Parameter, buffer, plain-number and tensor attributes used without a module."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(image(5, 8))
        self.register_buffer("shift", image(5, seed=1))
        self.register_buffer("scratch", image(5, seed=2), persistent=False)
        self.power, self.sizes = 2, [1, 5]

    def forward(self, x):
        y = F.linear(x, self.weight, self.shift) ** self.power
        return y + self.weight.t()[0] + self.scratch.view(self.sizes)


class NoGrad(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.exp()
        return y + x.detach()


def leaf(kind, *args, **kwargs):
    return made(lambda: Leaf(kind(*args, **kwargs)))


def train_mode():
    return DropoutTrain().train()


def value_cases():
    """Inputs and outputs of other kinds than one tensor."""
    yield Case("tuple_output", made(TupleOutput), X, traced=False)
    yield Case("dict_output", made(DictOutput), X)
    yield Case("list_output", made(ListOutput), X)
    yield Case("named_tuple_output", made(NamedTupleOutput), X, traced=False)
    yield Case("dict_input", made(DictInput), ({"a": X[0], "b": X[0] * 2},))
    yield Case("tuple_input", made(TupleInput), ((X[0], X[0] * 2),))
    yield Case("list_input", made(ListInput), ([X[0], X[0] * 2],))
    yield Case("submodule_tuple", made(SubmoduleTuple), X)
    yield Case("splits", made(Splits), X)
    yield Case("slices", made(Slices), X)
    yield Case("literals", made(Literals), X)
    yield Case("embedding", made(Embed), (torch.tensor([[1, 2, 0], [9, 3, 4]]),))


def leaf_cases():
    yield Case("lstm", leaf(nn.LSTM, 8, 6), SEQUENCE)
    yield Case("lstm_state", made(LstmState), SEQUENCE + (image(4, 2, 6), image(4, 2, 6, seed=1)))
    yield Case("gru", leaf(nn.GRU, 8, 6, batch_first=True), SEQUENCE)
    yield Case("multihead_attention", made(Attention), SEQUENCE * 3)
    yield Case("transformer_layer", leaf(nn.TransformerEncoderLayer, 8, 2, 16), SEQUENCE)
    yield Case("transformer", leaf(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)), SEQUENCE,
               note="nn.TransformerEncoder is a leaf: the loop inside it is not the importer's business")
    yield Case("layer_norm", leaf(nn.LayerNorm, [8]), ROWS)
    yield Case("group_norm", leaf(nn.GroupNorm, 2, 4), X)
    yield Case("softmax_gelu", leaf(nn.Sequential, nn.Softmax(-1), nn.GELU(), nn.LeakyReLU(0.2), nn.Flatten()), X)
    yield Case("upsample", made(Upsample), X)
    yield Case("pools", leaf(nn.Sequential, nn.MaxPool2d(2, ceil_mode=True), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((2, 1))), X)
    yield Case("bilinear", made(lambda: nn.Bilinear(8, 8, 3)), ROWS * 2, note="the whole model is one torch.nn module")


def operator_cases():
    yield Case("sizes", made(Sizes), X)
    yield Case("in_place", made(InPlace), X)
    yield Case("dropout_train", train_mode, X, compare=False, note="training mode: dropout must stay, random")
    yield Case("factories", made(Factories), X)
    yield Case("casts", made(Casts), X)
    yield Case("interpolate", made(Interpolate), X, loads=None, note="the functional branches on the rank of its input")
    yield Case("einsum", made(Einsum), X * 2)
    yield Case("custom_submodule", made(Custom), X)
    yield Case("shared_paths", made(SharedPaths), ROWS)
    yield Case("direct_attributes", made(Direct), ROWS)
    yield Case("written_state", made(WrittenState), X, note="the buffer's write must not be removed")
    yield Case("printing", made(Printing), X, loads=None, note="prim::Print: a side effect")
    yield Case("no_grad", made(NoGrad), X, loads=None, note="prim::Enter and prim::Exit")


CASES = [*value_cases(), *leaf_cases(), *operator_cases()]
