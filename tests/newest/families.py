"""Families of operators that decompose into others: resizing by factors and to sizes, convolutions, recurrent layers,
attention, indices, caches that are written.

`families(case)` adds them, as programs(case) does.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from programs import B, Buffers, S, T, Of, x

AUTO = Dim.AUTO
RESIZES = (
    ("nearest3", "nearest", (2, 3, 5), {}),
    ("linear3", "linear", (2, 3, 5), {"align_corners": True}),
    ("nearest4", "nearest", (2, 3, 5, 6), {}),
    ("exact4", "nearest-exact", (2, 3, 5, 6), {}),
    ("bilinear4", "bilinear", (2, 3, 5, 6), {}),
    ("antialias4", "bilinear", (2, 3, 5, 6), {"antialias": True}),
    ("bicubic4", "bicubic", (2, 3, 5, 6), {"align_corners": True}),
    ("area4", "area", (2, 3, 6, 8), {}),
)


def resize_by_factor(mode, options):
    return Of(lambda s, v: F.interpolate(v, scale_factor=2.5, mode=mode, **options))


def resize_to_size(mode, options):
    return Of(lambda s, v: F.interpolate(v, size=(v.shape[2] * 2 - 1,) + (4,) * (v.dim() - 3), mode=mode, **options))


def resizes(case):
    for name, mode, shape, options in RESIZES:
        more = [(x(3, shape[1], 7, *shape[3:]),)]
        for kind, make in (("by", resize_by_factor), ("to", resize_to_size)):
            case(f"i_{name}_{kind}", lambda make=make, mode=mode, options=options: make(mode, options), x(*shape),
                 dynamic=(({0: AUTO, 2: AUTO},),), more=more)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.grouped = nn.Conv1d(4, 6, 3, 2, padding=2, dilation=2, groups=2, padding_mode="reflect")
        self.same = nn.Conv1d(6, 6, 4, padding="same", groups=6, bias=False)
        self.transposed = nn.ConvTranspose1d(6, 4, 3, 2, 1, output_padding=1, groups=2, dilation=2)
        self.volume = nn.Conv3d(2, 4, (1, 3, 2), (1, 2, 1), (0, 1, 1), padding_mode="circular")
        self.up = nn.ConvTranspose3d(4, 2, 3, 2, 1, bias=False)

    def forward(self, line, volume):
        return self.transposed(self.same(self.grouped(line))), self.up(self.volume(volume))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
        self.gru = nn.GRU(4, 3, bidirectional=True, batch_first=True)
        self.cell = nn.RNNCell(6, 5)
        self.gates = nn.LSTMCell(5, 5)
        self.last = nn.GRUCell(5, 5, bias=False)

    def forward(self, v, state):
        y, (h, c) = self.lstm(v, state)
        y, g = self.gru(y.transpose(0, 1))
        return y, h, c, g, self.last(self.gates(self.cell(y[:, -1]))[0])


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Conv2d(3, 3, 3, padding=1)
        self.outer = nn.Conv2d(6, 2, 1)

    def forward(self, v):
        low = self.inner(F.max_pool2d(v, 2))
        return self.outer(torch.cat([F.interpolate(low, size=v.shape[2:]), v], 1))


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.register_buffer("k", torch.zeros(1, 8, 4))

    def forward(self, v, at):
        self.k.index_copy_(1, at, self.l(v))
        return F.scaled_dot_product_attention(v, self.k, self.k, attn_mask=(torch.arange(8) <= at[-1])[None])


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("at", torch.tensor(0))

    def forward(self, v):
        self.rows.index_copy_(0, self.at.view(1), v[None])
        self.at.copy_((self.at + 1) % 4)
        return self.rows.mean(0), self.rows


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.rand(4), persistent=False)

    def forward(self, v):
        angles = torch.outer(torch.arange(v.shape[1]).float(), self.frequencies)
        pairs = torch.view_as_complex(v.reshape(*v.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(2)


def sets(s, v, i, w):
    y = v.clone()
    y[i, :, 0] = w
    y[..., 1] += 1
    y[:, i] *= 2
    y[y > 1] = y.mean()
    y[None, 0] = 5
    y[0, 1] -= y[1, 0]
    return y


def scatters(s, v, i):
    return (v.scatter(1, i, 2.0), v.scatter_add(1, i, v), v.scatter_reduce(1, i, v, "mean", include_self=False),
            v.gather(1, i), v.select_scatter(v[0], 0, 1), v.slice_scatter(v[:2], 0, 1, 3),
            v.diagonal_scatter(torch.zeros(3)), v.masked_scatter(v > 0, v * 3), v.index_reduce(0, i[0], v, "amax"))


def pads(s, v):
    return (F.pad(v, (1, 0, 2, 1), mode="reflect"), F.pad(v, (2, 2, 1, 1), mode="replicate"),
            F.pad(v, (1, 1, 2, 2), mode="circular"), F.pad(v, (-1, 2, 0, -2), value=3.5))


def typed(dtype):
    """Inputs, buffers that are read and written, views and results of one type."""
    wide = torch.complex64 if dtype.is_complex else torch.float32

    def forward(s, v, i):
        s.kept.copy_(i)
        return v * s.numbers.to(wide), i.to(wide) + s.kept.to(wide), s.numbers.clone(), i, s.numbers.view(3, 1), v.to(dtype)

    return Buffers(forward, numbers=torch.tensor([1.0, 2, 3]).to(dtype), kept=torch.zeros(3).to(dtype))


def types(case):
    for name in ("uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "complex32", "bfloat16", "int8"):
        dtype = getattr(torch, name)
        case(f"t_{name}", lambda dtype=dtype: typed(dtype), torch.tensor([0.5, 1, 2]), torch.tensor([4.0, 5, 6]).to(dtype))


def families(case):
    resizes(case)
    types(case)
    case("c_all", Convolutions, x(2, 4, 12), x(2, 2, 3, 5, 6), dynamic=({0: B, 2: AUTO}, {0: B}),
         more=[(x(3, 4, 16), x(3, 2, 3, 5, 6))])
    case("c_fold", lambda: Of(lambda s, v: F.fold(F.unfold(v, 3, padding=1, stride=2), v.shape[2:], 3, padding=1,
         stride=2)), x(2, 3, 7, 9), dynamic=(({0: B, 2: AUTO, 3: AUTO},),), more=[(x(4, 3, 9, 11),)])
    case("c_unet", Unet, x(2, 3, 8, 10), dynamic=({0: B, 2: AUTO, 3: AUTO},), more=[(x(1, 3, 13, 11),)])
    case("c_pads", lambda: Of(pads), x(2, 3, 6, 7), dynamic=(({0: B, 2: AUTO, 3: AUTO},),), more=[(x(3, 3, 9, 8),)])
    case("s_rnn_all", Recurrent, x(5, 2, 3), (x(4, 2, 2), x(4, 2, 4)), dynamic=({1: B}, ({1: B}, {1: B})),
         more=[(x(5, 3, 3), (x(4, 3, 2), x(4, 3, 4)))])
    case("s_spectral", lambda: nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 5, 3)), x(2, 3, 6, 6),
         dynamic=({0: B},), more=[(x(4, 3, 6, 6),)])
    case("s_cache", Cache, x(1, 2, 4), torch.tensor([3, 4]), dynamic=({1: AUTO}, {0: AUTO}),
         more=[(x(1, 3, 4), torch.tensor([0, 1, 2]))])
    case("s_ring", Ring, x(3))
    case("o_rotary", Rotary, x(2, 5, 8), dynamic=({0: B, 1: S},), more=[(x(3, 7, 8),)])
    case("o_grouped", lambda: Of(lambda s, q, k, m: F.scaled_dot_product_attention(q, k, k * 2, attn_mask=m,
         enable_gqa=True)), x(2, 4, 6, 8), x(2, 2, 5, 8), x(2, 1, 6, 5), dynamic=(({0: B, 2: S}, {0: B, 2: T}, {0: B, 2: S,
         3: T}),), more=[(x(3, 4, 7, 8), x(3, 2, 9, 8), x(3, 1, 7, 9))])
    case("w_sets", lambda: Of(sets), x(3, 3, 4), torch.tensor([0, 2]), x(2, 3))
    case("o_scatters", lambda: Of(scatters), x(3, 3), torch.tensor([[0, 1, 2], [2, 2, 0], [1, 0, 0]]))
