"""Graphs that show what str(torch.fx.Graph) can contain: one small function or hand-built graph for each corner of the text."""
import dis
import inspect
import math
import operator
from math import sqrt
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, fx

inf, nan = math.inf, math.nan


def arguments(x, y):
    """kwargs, nested lists, tuples and dicts, an empty tuple, None, bools."""
    a = torch.add(x, other=y, alpha=2)
    b = torch.cat([a, torch.stack((x, y), dim=-1).sum(-1)], dim=0)
    c = b.permute(*[1, 0]).sum(dim=(0, 1), keepdim=True)
    d = wrapped(c, {"k": [c, {"j": (x,)}], "e": {}, "n": [None, (), []]}, flags=(True, [False]))
    return F.pad(d, [1, 1], mode="constant", value=None)


def slices(x):
    """Slices, Ellipsis, None and the empty tuple as indices."""
    a = x[..., 0] + x[:, None, 1:-1:2][0]
    return a[::-1], x[()], x[(0,)], x[x > 0][a.size(0):]


def dtypes_devices(x):
    """dtype, device, layout and memory format as arguments, positional and keyword."""
    a = x.to(torch.float16, memory_format=torch.channels_last)
    b = torch.zeros_like(a, dtype=torch.int64, device=torch.device("cpu"), layout=torch.strided)
    return a.to("cuda:0").type(torch.complex64), b.to(torch.device("cuda", 1), torch.bool)


def numbers(x):
    """Infinities, nan, negative, large, small and complex numbers."""
    a = torch.clamp(x, -inf, inf) + nan - 1e-05 * x + 1e+20
    return a.masked_fill(a == 0, -inf) + (-3) ** x // 7 + 9223372036854775807 + (1.5 - 2j) * x


def strings(x):
    """Strings are printed bare: quotes, commas, brackets, a line break, an empty one, one like a node, one like a number."""
    a = torch.einsum("bij, bjk -> bik", x, x)
    b = wrapped(a, "it's", 'say "so"', "first\nsecond", "", "%x", "1.0", sep=", ", end=")\\n")
    return torch.div(b, 2, rounding_mode="floor")


fx.wrap("len")
fx.wrap("sqrt")


@fx.wrap
def wrapped(x, *strings, **more):
    return x


def defaults(x: Tensor, y: Optional[Tensor] = None, n: int = -1, mode: str = "a b", sizes: Tuple[int, ...] = (1, 2), eps=1e-05):
    """Type annotations and default values on placeholders."""
    return x * n + eps, y


def typed(x: List[Tensor], table: Dict[str, Tensor]) -> Tuple[Tensor, Dict[str, Tensor]]:
    """Annotated containers; getattr; a dict as the result's part."""
    y = x[0].T + table["a"].shape[-1]
    return y, {"sum": y.sum(), "all": [y, x], "n": y.grad_fn, "nothing": {}}


def operators(x, y):
    """Every kind of operator.* and of functions from other modules."""
    a = -x + ~(y > x) @ y - (x % y) ** 2 / 3 << 1
    a += y
    a = a & x | y ^ x
    return len(a), sqrt(x.size(0)), 1 - a, 2 / a, torch._C._nn.gelu(a), torch.ops.aten.relu.default(a), torch.relu_(a)


class Point(NamedTuple):
    x: Tensor
    y: Tensor


def named_tuple(x):
    return Point(x=x.relu(), y=x[1:])


def hand_built():
    """What no tracer makes: variadic placeholders, a reserved name, dead calls with effects, result types, a literal output."""
    root = torch.nn.Module()
    root.block = torch.nn.Module()
    root.block.weight = torch.nn.Parameter(torch.ones(2))
    root.block.add_module("0", torch.nn.Linear(2, 2))
    graph = fx.Graph(root)
    x = graph.placeholder("x", type_expr=Tensor)
    graph.placeholder("*rest")
    graph.placeholder("**named")
    weight = graph.get_attr("block.weight")
    linear = graph.call_module("block.0", (x,), {"input": weight}, type_expr=Tensor)
    graph.call_function(print, (linear, "unused"))
    graph.call_function(operator.setitem, (x, (0, slice(None)), 1.0))
    graph.call_function(operator.iadd, (x, (1,)))
    graph.call_function(torch.ops.aten.add.Tensor, (linear, weight), {"alpha": -1}, type_expr=Optional[Tensor])
    graph.call_function(torch.ops.aten.sum.dim_IntList, (x, [0, -1]), {"keepdim": True})
    graph.create_node("call_method", "type", (x,), {}, name="type_1")
    graph.output([3, "text", slice(x, None, 2), {"k": (weight,)}])
    return graph


def constant_output():
    """No placeholder, and nothing but a constant is returned."""
    graph = fx.Graph()
    graph.output((None, True, -2.5))
    return graph


FUNCTIONS = [arguments, slices, dtypes_devices, numbers, strings, defaults, typed, operators, named_tuple]


class Proxy(fx.Proxy):
    """torch.fx 1.13 looks for the unpacking instruction where Python 3.10 had it: found here in 3.11 too."""

    def __iter__(self):
        frame = inspect.currentframe().f_back
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)


class Tracer(fx.Tracer):
    def proxy(self, node):
        return Proxy(node, self)


def graphs():
    """(name, graph) for all of them."""
    for function in FUNCTIONS:
        yield "syntax_" + function.__name__, Tracer().trace(function)
    yield "syntax_hand_built", hand_built()
    yield "syntax_constant_output", constant_output()
