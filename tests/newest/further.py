"""Further programs: sizes with relations, odd states and names, writes through views, whole families of operators,
nested graphs in nested graphs.

`further(case)` adds them, as programs(case) does.
"""

import dataclasses
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import scan
from torch._higher_order_ops.map import map as hmap
from torch.export import Dim

from programs import B, S, T, Of, x

Pair = namedtuple("Pair", "first second")
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="fxgraph.tests.Pair")


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(0, 3))
        self.dot = nn.Parameter(torch.tensor(2.0))
        self.kept = [torch.ones(2), torch.arange(2.0)]
        self.frozen = nn.Parameter(x(2), requires_grad=False)
        self.register_buffer("unused", x(3))
        self.register_buffer("none", None)
        self.l = nn.Linear(2, 2)
        self.l.weight.requires_grad_(False)

    def forward(self, v):
        return (self.l(v * self.dot + self.kept[0] + self.kept[1]) + self.frozen, self.zero.sum())


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(0))
        self.register_buffer("hist", torch.zeros(4), persistent=False)
        self.l = nn.Linear(4, 4)

    def forward(self, v):
        self.n += 1
        self.hist = self.hist * 0.9 + v.mean(0) * 0.1
        self.hist[0] = 7
        return (self.l(v - self.hist), self.n * 2)


def masked_writes(s, v, w):
    v[v > 0] = 0
    v[:, 1:].add_(w)
    w.mul_(2)
    return (v.sum(), w)


def writes_through_views(s, v):
    y = v.clone()
    z = y.view(-1)
    z[::2] = -1
    y[0].fill_(3)
    y.t()[1] += 5
    y.transpose(0, 1)[2].zero_()
    y.diagonal().copy_(torch.arange(3.0))
    y.clamp_(max=2)
    return (y, z)


def writes_in_containers(s, d, l):
    d["k"] += l[0]
    l[1].copy_(d["k"].sum(0))
    return d["k"] * 2


class ScanCond(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, c, xs):

        def step(c, v):
            n = torch.cond(v.mean() > 0, lambda c, v: torch.tanh(self.l(c) + v), lambda c, v: (c - v).clone(), (c, v))
            return (n, n.sum(-1))
        return scan(step, c, xs, dim=0)


class CondCond(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.register_buffer("k", torch.tensor(0.5))

    def forward(self, v, p, q):
        return torch.cond(p, lambda v: torch.cond(q, lambda v: self.a(v), lambda v: self.b(v) + self.k, (v,)),
            lambda v: hmap(lambda r: self.a(r) * self.k, v), (v,))


class MapMap(nn.Module):
    def forward(self, v):
        return hmap(lambda r: hmap(lambda c: c.sin() + c.shape[0], r), v)


@dataclasses.dataclass
class Batch:
    values: torch.Tensor
    rest: list


torch.export.register_dataclass(Batch, serialized_type_name="fxgraph.tests.Batch")


def rows_up_to(s, v, n):
    k = n.item()
    torch._check(k >= 2)
    torch._check(k <= v.shape[0])
    return v[:k] + v.new_ones(k, 1)


def two_numbers(s, n, m):
    a, b = n.item(), m.item()
    torch._check(a >= 0)
    torch._check(b >= 0)
    return torch.zeros(a, b + 1), torch.arange(a + b), a * 2


def kept_rows(s, v):
    kept = (v[:, 0] > 0).nonzero().squeeze(1)
    return v[kept].index_select(1, torch.tensor([1])), v[kept].sum(0), torch.cat([v[kept], v])


def data_sizes(case):
    """Sizes and numbers that data decide: all, none and some of the rows."""
    case("u_nonzero", lambda: Of(lambda s, v: v.nonzero()), torch.eye(2, 3),
         more=[(torch.zeros(2, 3),), (torch.ones(2, 3),), (torch.ones(2, 3).triu(2),)])
    case("u_masked", lambda: Of(lambda s, v: v[v > 0] * 2), x(3, 4), dynamic=(({0: B},),),
         more=[(x(6, 4),), (-x(3, 4).abs(),), (x(3, 4).abs(),)])
    case("u_rows", lambda: Of(lambda s, v: s.l(v[v.sum(-1) > 0]), l=nn.Linear(3, 2)), x(5, 3), dynamic=(({0: B},),),
         more=[(x(7, 3),), (x(2, 3).abs(),)])
    case("u_two", lambda: Of(lambda s, v: (lambda a, b: (a, b, a.shape[0] + b.shape[0]))(v[v > 0], v[v < 0])), x(8),
         more=[(x(8),), (x(8).abs(),)])
    case("u_kept", lambda: Of(kept_rows), x(6, 3), dynamic=(({0: B},),), more=[(x(9, 3),), (-x(4, 3).abs(),)])
    case("u_item", lambda: Of(rows_up_to), x(6, 3), torch.tensor(4), more=[(x(6, 3), torch.tensor(2))])
    case("u_after", lambda: Of(lambda s, v, i: (v[:i.item()], torch.zeros(1 + i.item()), i.item() * 2)), x(8),
         torch.tensor(3), more=[(x(8), torch.tensor(5))])
    case("u_items", lambda: Of(two_numbers), torch.tensor(4), torch.tensor(3), more=[(torch.tensor(0), torch.tensor(1))])
    case("u_float", lambda: Of(lambda s, v: v * v.max().item() + 1), x(3), more=[(x(3),)])
    case("u_unique", lambda: Of(lambda s, v: torch.unique(v)), torch.tensor([1, 2, 2, 3]),
         more=[(torch.tensor([1, 1, 1, 1]),), (torch.tensor([4, 3, 2, 1]),)])
    case("u_repeat", lambda: Of(lambda s, v, r: torch.repeat_interleave(v, r, 0)), x(3, 2), torch.tensor([1, 2, 3]),
         more=[(x(3, 2), torch.tensor([0, 5, 1]))])


def further(case):
    data_sizes(case)
    case("d_class", lambda: Of(lambda s, b: Batch(b.values * 2, [b.rest[0] + 1, b.values])), Batch(x(2), [x(3)]))
    case("r_three", lambda: Of(lambda s, u, v, w: torch.cat([u, v[:-1:2], w[1:]])), x(6), x(13), x(7),
         dynamic=(({0: S}, {0: 2 * S + 1}, {0: S + 1}),), more=[(x(4), x(9), x(5))])
    case("r_auto", lambda: Of(lambda s, u, v: u @ v + u.sum() * v.shape[1]), x(4, 6), x(6, 5),
         dynamic=(({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}),), more=[(x(3, 7), x(7, 9))])
    case("r_area", lambda: Of(lambda s, v: v.flatten(1).view(v.shape[0], v.shape[1]*v.shape[2]//2, 2).sum(1)), x(2,
         4, 6), dynamic=(({1: 2 * S, 2: T},),), more=[(x(2, 6, 5),)])
    case("r_check", lambda: Of(lambda s, v, w: (torch._check(v.shape[0] >= w.shape[0]), v[:w.shape[0]] + w)[1]),
         x(6), x(4), dynamic=(({0: B}, {0: S}),), more=[(x(9), x(9))])
    case("r_mod", lambda: Of(lambda s, v: (torch._check(v.shape[0] % 3 == 0), v.view(3, -1).sum(0))[1]), x(6),
         dynamic=(({0: 3 * S},),), more=[(x(21),)])
    case("r_stride", lambda: Of(lambda s, v: v[:, ::3, 1::2].contiguous().as_strided((v.shape[0], 2), (1, 1))), x(4,
         7, 9), dynamic=(({0: B},),), more=[(x(9, 7, 9),)])
    case("r_size_math", lambda: Of(lambda s, v: v.new_full((v.shape[0]//2 + (v.shape[0]+3)//4, max(1, v.shape[0]-3)),
         v.shape[0] % 5)), x(9), dynamic=(({0: Dim("q", min=5, max=90)},),), more=[(x(17),), (x(30),)])
    case("d_pair", lambda: Of(lambda s, p: Pair(p.second, [p.first])), Pair(x(2), x(3)))
    case("d_keys", lambda: Of(lambda s, d: {"a b": d["x.y"] * 2, "'q\"\\": d["\n"] + 1, "": d[""]}), {"x.y": x(2),
         "\n": x(2), "": x(1)})
    case("d_same", lambda: Of(lambda s, a, b: (a + b, a)), *(lambda t: (t, t))(x(3)))
    case("d_deep", lambda: Of(lambda s, a: [[[[[a[0][0][0][0] + 1]]]]]), [[[[x(2)]]]])
    case("n_clash", lambda: Of(lambda s, p_l_weight, l_weight: s.l(p_l_weight) + l_weight, l=nn.Linear(3, 3)), x(2, 3), x(3))
    case("s_odd", Odd, x(2, 2))
    case("s_counter", Counter, x(3, 4), dynamic=({0: B},), more=[(x(5, 4),)])
    case("s_bn_nostats", lambda: nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.BatchNorm2d(3,
         track_running_stats=False)), x(2, 3, 4, 4), training=True)
    case("s_rnn_train", lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), x(2, 5, 3), training=True,
         dynamic=({0: B},), more=[(x(3, 5, 3),)])
    case("s_gru_proj", lambda: Of(lambda s, v, h: s.g(v, h)[1] + s.r(v)[1], g=nn.GRU(3, 4, 2, bias=False),
         r=nn.RNN(3, 4, 2, nonlinearity="relu")), x(5, 2, 3), x(2, 2, 4))
    case("s_drop_train", lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.3), nn.ReLU(), nn.Dropout1d(0.2)), x(4, 3),
         training=True)
    case("w_masked", lambda: Of(masked_writes), x(3, 4), x(3, 3))
    case("w_views", lambda: Of(writes_through_views), x(3, 4))
    case("w_tree", lambda: Of(writes_in_containers), {"k": x(2, 3)}, [x(3), x(3)], dynamic=(({"k": {0: B}}, [None,
         None]),), more=[({"k": x(5, 3)}, [x(3), x(3)])])
    case("o_einsum", lambda: Of(lambda s, a, b, c: (torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,kj->bki",
         a, c), torch.einsum("...ii->...", a[:, :3, :3]), torch.einsum("i,j", c[0], c[1]))), x(2, 3, 4), x(2, 4, 5),
         x(6, 4), dynamic=(({0: B}, {0: B}, None),), more=[(x(3, 3, 4), x(3, 4, 5), x(6, 4))])
    case("o_bag", lambda: Of(lambda s, i, o, w: (s.e(i, o, w), s.m(i.view(3, 2)), s.x(i, o)), e=nn.EmbeddingBag(10,
         4, mode="sum", include_last_offset=False), m=nn.EmbeddingBag(10, 4, mode="max"), x=nn.EmbeddingBag(10, 4,
         padding_idx=1)), torch.tensor([1, 2, 3, 4, 5, 1]), torch.tensor([0, 2, 5]), torch.rand(6))
    case("o_grid", lambda: Of(lambda s, v, t: F.grid_sample(v, F.affine_grid(t, (2, 3, 5, 6), align_corners=False),
         mode="bilinear", padding_mode="border", align_corners=False)), x(2, 3, 7, 8), x(2, 2, 3))
    case("o_sdpa", lambda: Of(lambda s, q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True),
         F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(q.shape[-2], k.shape[-2],
         dtype=torch.bool).tril()))), x(2, 4, 6, 8), x(2, 4, 6, 8), x(2, 4, 6, 8), dynamic=(({0: B, 2: S}, {0: B,
         2: S}, {0: B, 2: S}),), more=[(x(3, 4, 9, 8), x(3, 4, 9, 8), x(3, 4, 9, 8))])
    case("o_stft", lambda: Of(lambda s, v: torch.istft(torch.stft(v, 16, 4, window=torch.hann_window(16),
         return_complex=True) * 2, 16, 4, window=torch.hann_window(16))), x(2, 64))
    case("o_fft", lambda: Of(lambda s, v: (torch.fft.fft2(v).real, torch.fft.irfft(torch.fft.rfft(v)),
         torch.fft.fftshift(v), torch.fft.ifft(torch.fft.fft(v)).imag)), x(4, 6))
    case("o_complex", lambda: Of(lambda s, v: (torch.polar(v.abs(), v), torch.view_as_complex(v.view(-1,
         2)).conj() * 1j, torch.view_as_real(torch.complex(v, -v)).sum(-1), torch.angle(torch.complex(v, v)),
         v.to(torch.complex64).real, torch.complex(v, v).abs().sgn())), x(4, 2))
    case("o_random", lambda: Of(lambda s, v: (torch.rand(3), torch.randn_like(v), torch.bernoulli(torch.sigmoid(v)),
         torch.randint(0, 9, (v.shape[0],)), torch.normal(0.0, 1.0, (2,)), F.dropout(v, 0.5, True),
         torch.randperm(5))), x(4, 2), dynamic=(({0: B},),), core=False, more=[(x(6, 2),)])
    case("o_multinomial", lambda: Of(lambda s, v: torch.multinomial(v.softmax(-1), 2)), x(3, 5), core=False)
    case("o_losses", lambda: Of(lambda s, v, t: (F.cross_entropy(v, t, label_smoothing=0.1, ignore_index=1),
         F.cross_entropy(v, v.softmax(1), weight=torch.ones(4)), F.nll_loss(v.log_softmax(1), t, reduction="sum"),
         F.binary_cross_entropy_with_logits(v, v.sigmoid(), pos_weight=torch.full((4,), 2.0)), F.smooth_l1_loss(v,
         v * 2, beta=0.3), F.kl_div(v, v.exp(), log_target=False, reduction="batchmean"), F.cosine_similarity(v,
         v + 1), F.pdist(v), F.gumbel_softmax(v, hard=False) * 0, F.normalize(v), F.softplus(v, 2, 3),
         F.triplet_margin_loss(v, v + 1, v - 1))), x(3, 4), torch.tensor([0, 1, 3]), core=False)
    case("o_half", lambda: Of(lambda s, v: (v + 1, v.sum(), v.mean(), v.view(torch.int16), v.double()),), x(2,
         4).half())
    case("o_transformer", lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True, norm_first=True),
         x(2, 5, 8), x(2, 4, 8), training=True, dynamic=({0: B, 1: S}, {0: B, 1: T}), more=[(x(3, 6, 8), x(3, 9, 8))])
    case("o_mha_mask", lambda: Of(lambda s, q, m, p: s.a(q, q, q, attn_mask=m, key_padding_mask=p,
         average_attn_weights=False), a=nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True,
         batch_first=True)), x(2, 5, 8), torch.ones(5, 5).triu(1).bool(), torch.tensor([[False] * 5,
         [False] * 4 + [True]]))
    case("o_channels_last", lambda: Of(lambda s,
         v: s.c(v.to(memory_format=torch.channels_last)).contiguous(memory_format=torch.channels_last).flatten(2),
         c=nn.Conv2d(3, 4, 3)), x(2, 3, 6, 6), dynamic=(({0: B},),), more=[(x(4, 3, 6, 6),)])
    case("h_scan_cond", ScanCond, x(2, 3), x(5, 2, 3), dynamic=(None, {0: S}), more=[(x(2, 3), x(8, 2, 3))])
    case("h_cond_cond", CondCond, x(4, 3), torch.tensor(True), torch.tensor(False), dynamic=({0: B}, None, None),
         more=[(x(6, 3), torch.tensor(False), torch.tensor(True)), (x(6, 3), torch.tensor(True), torch.tensor(True))])
    case("h_map_map", MapMap, x(3, 4, 5), dynamic=({0: B, 1: S},), more=[(x(2, 6, 5),)])
