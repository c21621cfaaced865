"""Hand-made models for the importer: control flow that a file decides, and control flow that only data or the caller decides."""
import enum
from typing import Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from case import Case, image
from randomise import made

X = (image(2, 4, 8, 8),)


class FlagIf(nn.Module):
    """The condition is an attribute: known when the file is loaded."""

    flag: bool

    def __init__(self, flag):
        super().__init__()
        self.flag, self.act, self.mode = flag, nn.ReLU(), "double"

    def forward(self, x):
        if self.flag:
            x = self.act(x)
        else:
            x = torch.sigmoid(x)
        if self.mode == "double":
            x = x * 2
        return x


class TrainingGuard(nn.Module):
    def forward(self, x):
        if self.training:
            return x + torch.rand_like(x)
        return x.neg()


class EarlyReturn(nn.Module):
    """Returns inside conditions on attributes: nested prim::If with a value each."""

    def __init__(self):
        super().__init__()
        self.depth, self.skip = 2, None

    def forward(self, x):
        if self.skip is not None:
            return x
        if self.depth > 1:
            if self.depth > 2:
                return x.abs()
            return x.exp()
        return x.tanh()


class ModuleListLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(3)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(4) for _ in range(3)])

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(layer(x)))
        for i, layer in enumerate(self.layers):
            x = layer(x) * i
        return x


class ModuleDictLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"left": nn.Linear(8, 3), "right": nn.Linear(8, 2)})

    def forward(self, x) -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        for name, head in self.heads.items():
            out[name] = head(x)
        return out


class AssertDim(nn.Module):
    def forward(self, x):
        assert x.dim() == 4, f"expected 4 dimensions, got {x.dim()}"
        return x.relu()


class RaiseDim(nn.Module):
    def forward(self, x):
        if x.dim() != 4:
            raise ValueError(f"expected 4 dimensions, got {x.dim()}")
        if x.size(1) != 4:
            raise RuntimeError("expected 4 channels")
        else:
            x = x.relu()
        return x


class AssertValues(nn.Module):
    """The assertion reads the data: it must stay, and nothing else depends on it."""

    def forward(self, x):
        assert bool((x < 100).all()), "value out of range"
        return x + 1


class ListAppendCat(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([nn.Conv2d(4, n, 1) for n in (1, 2, 3)])

    def forward(self, x):
        out: List[Tensor] = [x]
        for branch in self.branches:
            out.append(branch(x))
        out.append(out[0] * out[-1].mean())
        return torch.cat(out, 1)


class OptionalInput(nn.Module):
    def forward(self, x, mask: Optional[Tensor] = None, scale: float = 2.0):
        if mask is not None:
            x = x * mask
        return x * scale


class OptionalInside(nn.Module):
    """The parent decides: None in one call, a tensor in the other."""

    def __init__(self):
        super().__init__()
        self.inner = OptionalInput()

    def forward(self, x):
        return self.inner(x) + self.inner(x, x > 0, scale=0.5)


class DataIf(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x.relu()
        return x.neg()


class DataWhile(nn.Module):
    def forward(self, x):
        while x.abs().max() > 1:
            x = x / 2
        return x


class ShapeLoop(nn.Module):
    """The number of rounds is a size of the input."""

    def forward(self, x):
        out = x[0]
        for i in range(1, x.size(0)):
            out = out + x[i] * i
        return out


class ShapeIf(nn.Module):
    def forward(self, x):
        if x.size(2) > 4:
            x = F.max_pool2d(x, 2)
        return x.relu()


class ConstantLoop(nn.Module):
    def forward(self, x):
        for i in range(3):
            x = x.sin() + i
        return x


def helper(x, low: float, high: float = 1.0):
    return x.clamp(low, high)


@torch.jit.script
def scripted_helper(x, n: int):
    return x.roll(n, 0)


class Helpers(nn.Module):
    """Plain functions, a scripted function and a method: all are inlined."""

    def shift(self, x, by: int):
        return scripted_helper(x, by) + by

    def forward(self, x):
        return self.shift(helper(x, -0.5), 1) - helper(x, 0.0, high=2.0)


class Mode(enum.Enum):
    DOUBLE = "double"
    HALVE = "halve"


class EnumMode(nn.Module):
    """What to do is a member of an Enum, as torchvision's interpolation modes are."""

    def forward(self, x):
        mode = Mode.HALVE
        if mode == Mode.DOUBLE:
            x = x * 2
        return x / 2 if mode == Mode.HALVE else x


class MixedTrace(nn.Module):
    """A scripted submodule with real control flow inside a traced parent."""

    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(FlagIf(True))

    def forward(self, x):
        return self.inner(x) + 1


def resolved_cases():
    """Control flow the importer can decide from the file alone."""
    yield Case("flag_if_true", made(FlagIf, True), X)
    yield Case("flag_if_false", made(FlagIf, False), X)
    yield Case("training_guard", made(TrainingGuard), X)
    yield Case("early_return", made(EarlyReturn), X)
    yield Case("module_list_loop", made(ModuleListLoop), X, optional=3,
               note="each convolution is called twice, once normalised")
    yield Case("module_dict_loop", made(ModuleDictLoop), (image(3, 8),), note="dict built in a loop")
    yield Case("list_append_cat", made(ListAppendCat), X)
    yield Case("constant_loop", made(ConstantLoop), X, note="prim::Loop with three rounds: unroll")
    yield Case("optional_inside", made(OptionalInside), X)
    yield Case("helpers", made(Helpers), X)
    yield Case("assert_dim", made(AssertDim), X)
    yield Case("raise_dim", made(RaiseDim), X)
    yield Case("assert_values", made(AssertValues), X)
    yield Case("enum_mode", made(EnumMode), X)
    yield Case("mixed_trace", made(MixedTrace), X, scripted=False)


def unresolved_cases():
    """Control flow that depends on data, or on what only the caller knows. Traced files have one way baked in and load."""
    yield Case("data_if", made(DataIf), X, loads=False, error="if x.sum() > 0:")
    yield Case("data_while", made(DataWhile), X, loads=False, error="while x.abs().max() > 1:")
    yield Case("shape_loop", made(ShapeLoop), X, loads=None, error="for i in range(1, x.size(0)):")
    yield Case("shape_if", made(ShapeIf), X, loads=None, error="if x.size(2) > 4:")
    yield Case("optional_input", made(OptionalInput), X, loads=None, error="if mask is not None:",
               note="decided if the default None is taken as the value")


CASES = [*resolved_cases(), *unresolved_cases()]
