"""Programs beyond single modules: structures of calls, types, numbers, sizes of every kind, nested graphs, writes.

`programs(case)` adds them; `more` are further calls of the same program, at other sizes.
"""

import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

B, S, T = Dim("b", min=2, max=64), Dim("s", min=2, max=32), Dim("t", min=2, max=40)


def x(*sizes):
    return torch.randn(*sizes)


class Of(nn.Module):
    """A module of a function of itself and its inputs, with the members given."""

    def __init__(self, function, **members):
        super().__init__()
        self.function = function
        for name, member in members.items():
            setattr(self, name, member)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


class Buffers(nn.Module):
    def __init__(self, function, **buffers):
        super().__init__()
        self.function = function
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer, persistent=not name.startswith("scratch"))

    def forward(self, *args):
        return self.function(self, *args)


class Shared(nn.Module):
    """One module under three names, called four times; one parameter under two."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.again = self.l
        self.seq = nn.Sequential(self.l, nn.ReLU(), self.l)
        self.w = nn.Parameter(x(3))
        self.v = self.w

    def forward(self, v):
        return self.seq(self.l(v)) + self.again(v) * self.w + self.v


class Laid(nn.Module):
    """Weights that lie in memory as they like."""

    def __init__(self):
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6)
        self.register_buffer("t", base.t())
        self.register_buffer("wide", torch.ones(1).expand(5))
        self.register_buffer("steps", base[::2, 1::2])
        self.register_buffer("one", torch.tensor(3.5))
        self.register_buffer("none", torch.zeros(0, 3))
        self.w = nn.Parameter(torch.randn(6, 4).t())
        self.last = nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))

    def forward(self, v):
        return self.t.sum(1) + v, self.wide * v[0], self.steps, self.w @ self.t, self.last * 2, self.one + 1, self.none


class Types(nn.Module):
    TYPES = (torch.half, torch.bfloat16, torch.double, torch.complex64, torch.complex128, torch.int8, torch.uint8,
             torch.int16, torch.bool)

    def __init__(self):
        super().__init__()
        for i, kind in enumerate(self.TYPES):
            self.register_buffer(f"k{i}", (torch.arange(4) % 2).to(kind))

    def forward(self, v):
        kept = [getattr(self, f"k{i}") for i in range(len(self.TYPES))]
        return [k & (v > 0) if k.dtype == torch.bool else k + v.to(k.dtype) for k in kept]


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", 1 / 10000 ** (torch.arange(0, 8, 2) / 8), persistent=False)
        self.q = nn.Linear(16, 16, bias=False)

    def forward(self, v):
        b, t, _ = v.shape
        angles = torch.outer(torch.arange(t), self.scratch)
        both = torch.cat([angles, angles], -1)
        q = self.q(v).view(b, t, 2, 8).transpose(1, 2)
        q = q * both.cos() + torch.cat([-q[..., 4:], q[..., :4]], -1) * both.sin()
        mask = torch.full((t, t), float("-inf")).triu(1)
        return (torch.softmax(q @ q.transpose(-1, -2) / math.sqrt(8) + mask, -1) @ q).transpose(1, 2).reshape(b, t, -1)


class Numbers(nn.Module):
    def forward(self, v, n):
        return v * n + n**2 + (1 - n), n // 2, n - 1, v.new_zeros(n, 2), v.roll(n, 0)


class TwoNumbers(nn.Module):
    def forward(self, v, n, m):
        return v.new_zeros(n // 2 + m % 3) + (n - m), max(n, m)


class Bounds(nn.Module):
    def forward(self, v, w):
        n = v.shape[0]
        return v[:min(n, 4)].sum() + w[:max(2, n // 2)].sum(), v.new_ones(max(n, w.shape[0]))


class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, c, xs):
        from torch._higher_order_ops import scan
        step = lambda c, v: ({"h": torch.tanh(self.l(c["h"]) + v["a"])}, c["h"] + v["b"])
        return scan(step, {"h": c}, {"a": xs, "b": xs * 2}, dim=0)


class Map(Scan):
    def forward(self, xs, k):
        from torch._higher_order_ops.map import map as over
        return over(lambda d, k: (self.l(d["v"]) * k, d["w"] + 1), {"v": xs, "w": xs * 2}, k)


class While(nn.Module):
    def forward(self, v, n):
        from torch._higher_order_ops import while_loop
        return while_loop(lambda i, v: (i < n) & (v.abs().sum() < 1e6), lambda i, v: (i + 1, v.sin() + v),
                          (torch.tensor(0), v))


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = self.l(v)
            with torch.autocast("cpu", enabled=False):
                b = self.l(v)
        with torch.no_grad():
            c = self.l(v)
        return a.float() + b, c * self.l(v), self.l(v).detach()


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.BatchNorm2d(3), nn.BatchNorm2d(3, affine=False)
        self.g, self.i = nn.GroupNorm(3, 3), nn.InstanceNorm2d(3, track_running_stats=True, affine=True)

    def forward(self, v):
        return self.i(self.g(self.b(self.a(self.a(v)))))


class Wired(nn.Module):
    def forward(self, v, vs, d):
        return torch.cat(vs).sum(0) + d["a"].mean(0) + v.sum()


def writes(s, v, held):
    v[0] = 1
    held[0].copy_(v.sum(0))
    s.sums.add_(v.mean(0))
    s.steps += 1
    v.view(-1)[1] = 7
    s.sums[0] = 5
    return v * 2, s.steps, held[0]


def cache(s, i, v):
    s.rows.index_copy_(0, i, v)
    s.rows[1:2].mul_(2)
    return s.rows.sum(0), s.rows


def tangle(s, v):
    row = s.rows[0]
    s.rows.add_(v)
    return row, s.rows, s.rows.view(-1)


def of_shape(s, v):
    return torch.cond(v.sum() > 0, lambda v: v.sum(0) * v.shape[0], lambda v: v.mean(0), (v,))


def indices(s, v, i):
    return v[i, :, None], v[..., -1], v[::2, 1], v[i][:, i], v.index_put((i,), torch.tensor(1.0)), v[None, :, i]


def whole(s, v):
    return v // 2, v % 3, v / 2, torch.div(v, 3, rounding_mode="trunc"), v << 1, v & 3, ~v, v**2, -v, torch.remainder(v, -3)


def scattered(s, v, i):
    return (v.scatter_add(0, i, v), v.gather(1, i), v.scatter_reduce(0, i, v, "amax"), v.scatter(1, i, 2.0),
            torch.zeros(4, 3).index_add(0, i[:, 0], v))


def sorts(s, v):
    return (*v.sort(descending=True), *v.topk(2), v.argsort(), *v.max(1), v.cummax(0)[0], v.median(), v.mode(0)[0])


def algebra(s, v):
    return (torch.linalg.inv(v), torch.linalg.det(v), torch.linalg.cholesky(v @ v.T + torch.eye(3)),
            torch.linalg.svdvals(v), torch.linalg.solve(v, torch.ones(3)))


def odds(s, v):
    return (v.tril(), torch.diag_embed(v), v.unfold(0, 2, 1), v.repeat_interleave(2, 0), torch.cdist(v, v),
            torch.bucketize(v, torch.tensor([-1.0, 0, 1])), v.nan_to_num(), F.one_hot(torch.tensor([0, 2]), 3),
            v * float("nan"), v.masked_fill(v > 0, float("-inf")), v.clamp(max=float("inf")), v - 0.0)


def attended(s, q, k, v, m):
    return (F.scaled_dot_product_attention(q, k, v, attn_mask=m),
            F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
            F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True))


def programs(case):
    linear = lambda: nn.Linear(3, 3)
    case("p_out", lambda: Of(lambda s, v: {"z": v + 1, "a": [v * 2, None, (v * 3,)], "e": {}, "l": []}), x(2, 3))
    case("p_in", lambda: Of(lambda s, a: a["x"][0][1]["k"] + a["y"].sum()), {"x": [(x(2), {"k": x(3)})], "y": x(1)})
    case("p_none", lambda: Of(lambda s, v: None), x(2))
    case("p_int_keys", lambda: Of(lambda s, d: {1: d[0] * 2, 0: d[1]}), {0: x(2), 1: x(2)})
    case("p_keywords", lambda: Of(lambda s, v, *, q, p: v * q - p), x(2), kwargs={"p": x(2), "q": x(2)})
    case("p_empty", lambda: Of(lambda s, v, l, d: v + 1), x(2), [], {})
    case("p_ordered", lambda: Of(lambda s, a: [OrderedDict(b=a["u"], a=a["v"] * 2)]), OrderedDict(u=x(2), v=x(3)))
    case("p_literals", lambda: Of(lambda s, v, f, t, m: F.interpolate(v * f if t else v, scale_factor=2, mode=m)),
         x(1, 1, 2, 2), 1.5, True, "nearest")
    case("t_shared", Shared, x(2, 3))
    case("t_laid", Laid, x(6))
    case("t_types", Types, x(4).abs())
    case("t_unused", lambda: Of(lambda s, v, u: v + 1, a=linear(), q=nn.Parameter(x(2))), x(2), x(5))
    case("t_complex", lambda: nn.Linear(3, 2, dtype=torch.complex64), torch.randn(2, 3, dtype=torch.complex64))
    case("n_one", Numbers, x(5, 2), 5, dynamic=(None, Dim.DYNAMIC), more=[(x(5, 2), 7), (x(5, 2), 3)])
    case("n_two", TwoNumbers, x(2), 9, 4, dynamic=(None, Dim.DYNAMIC, Dim.DYNAMIC), more=[(x(2), 20, 7)])
    case("n_shapes", lambda: Of(lambda s, v: (v.shape, v.shape[1] * 2, v.sum())), x(4, 3), dynamic=(({0: B},),),
         more=[(x(7, 3),)])
    case("y_auto", lambda: Of(lambda s, v, w: s.l(v) + w, l=linear()), x(4, 3), x(4, 3),
         dynamic=(({0: Dim.AUTO}, {0: Dim.AUTO}),), more=[(x(9, 3), x(9, 3))])
    case("y_derived", lambda: Of(lambda s, v, w: v[1:] + w), x(5, 2), x(4, 2), dynamic=(({0: S + 1}, {0: S}),),
         more=[(x(9, 2), x(8, 2))])
    case("y_steps", lambda: Of(lambda s, v: v.reshape(-1, 4, v.shape[1]).sum(1)), x(8, 2), dynamic=(({0: 4 * S},),),
         more=[(x(12, 2),), (x(40, 2),)])
    case("y_halves", lambda: Of(lambda s, v: torch.cat(v.chunk(2, 0)[::-1])), x(6, 2), dynamic=(({0: 2 * S},),),
         more=[(x(8, 2),), (x(20, 2),)])
    case("y_pad", lambda: Of(lambda s, v: F.pad(v, (0, (-v.shape[1]) % 4))), x(2, 6), dynamic=(({1: Dim.DYNAMIC},),),
         more=[(x(2, 7),), (x(2, 9),), (x(2, 15),)])
    case("y_bounds", Bounds, x(6, 2), x(50, 2), dynamic=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}),
         more=[(x(3, 2), x(60, 2)), (x(20, 2), x(15, 2))])
    case("y_resize", lambda: Of(lambda s, v: F.interpolate(v, scale_factor=1.5, mode="bilinear")), x(1, 2, 6, 6),
         dynamic=(({2: Dim("h", min=4, max=64), 3: Dim("w", min=4, max=64)},),), more=[(x(1, 2, 7, 10),)])
    case("y_nested", Wired, x(2), [x(4, 3), x(5, 3)], {"a": x(6, 3)},
         dynamic=(None, [{0: B}, {0: S}], {"a": {0: Dim("r", min=2, max=9)}}),
         more=[(x(2), [x(7, 3), x(8, 3)], {"a": x(2, 3)})])
    case("y_three", lambda: Of(lambda s, u, v, w: (u.new_zeros(u.shape[0] + v.shape[0] + w.shape[0]), torch.cat([u, v, w]))),
         x(3), x(4), x(5), dynamic=(({0: B}, {0: S}, {0: T}),), more=[(x(7), x(9), x(2))])
    case("y_llama", Llama, x(2, 5, 16), dynamic=({0: B, 1: S},), more=[(x(3, 11, 16),)])
    case("y_mha", lambda: Of(lambda s, q: s.m(q, q, q), m=nn.MultiheadAttention(8, 2, batch_first=True)), x(2, 5, 8),
         dynamic=(({0: B, 1: S},),), more=[(x(3, 7, 8),)])
    case("y_lstm", lambda: Of(lambda s, v, h: s.m(v, h), m=nn.LSTM(3, 4, 2, batch_first=True)), x(2, 5, 3),
         (x(2, 2, 4), x(2, 2, 4)), dynamic=(({0: B}, ({1: B}, {1: B})),), more=[(x(4, 5, 3), (x(2, 4, 4), x(2, 4, 4)))])
    case("h_cond_sizes", lambda: Of(of_shape), x(4, 3), dynamic=(({0: B},),),
         more=[(x(8, 3).abs(),), (-x(8, 3).abs(),)])
    case("h_while", While, x(2, 3), torch.tensor(4), more=[(x(2, 3), torch.tensor(0)), (x(2, 3), torch.tensor(9))])
    case("h_scan", Scan, x(2, 3), x(5, 2, 3), dynamic=(None, {0: S}), more=[(x(2, 3), x(9, 2, 3))])
    case("h_map", Map, x(4, 2, 3), x(3), dynamic=({0: B}, None), more=[(x(7, 2, 3), x(3))])
    case("h_modes", Modes, x(2, 3), core=False)
    case("m_writes", lambda: Buffers(writes, sums=torch.zeros(3), steps=torch.tensor(0)), x(2, 3), [x(3)])
    case("m_cache", lambda: Buffers(cache, rows=torch.zeros(4, 3)), torch.tensor([0, 2]), x(2, 3))
    case("m_view", lambda: Buffers(tangle, rows=torch.zeros(2, 3)), x(2, 3))
    case("m_norms", Norms, x(4, 3, 5, 5), training=True, dynamic=({0: B},), more=[(x(7, 3, 5, 5),)])
    case("o_indices", lambda: Of(indices), x(4, 4), torch.tensor([1, 0, 3]))
    case("o_whole", lambda: Of(whole), torch.tensor([5, -7, 9]))
    case("o_scattered", lambda: Of(scattered), x(3, 3), torch.tensor([[0, 1, 2], [2, 0, 1], [1, 1, 0]]))
    case("o_sorts", lambda: Of(sorts), x(3, 5))
    case("o_algebra", lambda: Of(algebra), x(3, 3))
    case("o_odds", lambda: Of(odds), x(3, 3) * 0.5)
    case("o_attended", lambda: Of(attended), x(1, 2, 4, 8), x(1, 2, 4, 8), x(1, 2, 4, 8), x(4, 4) > 0)
    case("o_normed", lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), x(2, 3))
