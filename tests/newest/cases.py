"""The models that exports.py goes through: every module of torch.nn, programs of every kind, models of torchvision.

A case is a name, a function that makes the module, its arguments, what torch.export is to know, and arguments of
further calls.
"""

from collections import OrderedDict, namedtuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from families import families
from further import further
from programs import Of, programs, x

try:
    from quantized import quantized
except ImportError:  # torch.ao is on its way out
    quantized = None

CASES = []


class Case:
    def __init__(self, name, make, args, kwargs=None, dynamic=None, training=False, core=True, more=()):
        self.name, self.make, self.args, self.kwargs = name, make, args, kwargs or {}
        self.dynamic, self.training, self.core, self.more = dynamic, training, core, more


def case(name, make, *args, **options):
    CASES.append(Case(name, make, args, **options))


# ---- torch.nn --------------------------------------------------------------------------------------------------------
IMAGE, VOLUME, LINE, ROWS = (2, 3, 8, 8), (2, 3, 6, 6, 6), (2, 3, 8), (2, 4)

MODULES = {
    "Linear": (lambda: nn.Linear(4, 3), x(2, 4)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), x(2, 3), x(2, 4)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3), x(*LINE)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, padding=1, stride=2), x(*IMAGE)),
    "Conv2d_reflect": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), x(*IMAGE)),
    "Conv2d_same": (lambda: nn.Conv2d(3, 4, 3, padding="same"), x(*IMAGE)),
    "Conv2d_groups": (lambda: nn.Conv2d(4, 8, 3, groups=4, dilation=2, bias=False), x(2, 4, 8, 8)),
    "Conv2d_unbatched": (lambda: nn.Conv2d(3, 4, 3), x(3, 8, 8)),
    "Conv3d": (lambda: nn.Conv3d(3, 4, 3), x(2, 3, 5, 5, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 4, 3), x(*LINE)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), x(*IMAGE)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(3, 4, 3), x(2, 3, 4, 4, 4)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), x(3, 4)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), x(3, 4, 5, 5)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), x(3, 4, 2, 2, 2)),
    "BatchNorm2d_without_statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), x(3, 4, 5, 5)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), x(3, 4, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(5), x(3, 4, 5)),
    "LayerNorm_plain": (lambda: nn.LayerNorm([4, 5], elementwise_affine=False), x(3, 4, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5), x(3, 4, 5)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), x(3, 4, 5)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), x(3, 4, 5, 5)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), x(3, 4, 5, 5, 2)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), x(2, 4, 5, 5)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), x(2, 4, 5, 5)),
    "Embedding": (lambda: nn.Embedding(10, 4, padding_idx=0), torch.randint(0, 10, (2, 3))),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(10, 4), torch.randint(0, 10, (2, 3))),
    "RNN": (lambda: nn.RNN(4, 5, batch_first=True), x(2, 3, 4)),
    "LSTM": (lambda: nn.LSTM(4, 5, num_layers=2, bidirectional=True), x(3, 2, 4)),
    "LSTM_projected": (lambda: nn.LSTM(4, 6, proj_size=3), x(3, 2, 4)),
    "GRU": (lambda: nn.GRU(4, 5), x(3, 2, 4)),
    "RNNCell": (lambda: nn.RNNCell(4, 5), x(2, 4)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 5), x(2, 4)),
    "GRUCell": (lambda: nn.GRUCell(4, 5), x(2, 4)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), x(2, 3, 8), x(2, 3, 8), x(2, 3, 8)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), x(2, 3, 8)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), x(2, 3, 8), x(4, 3, 8)),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), x(2, 3, 8)),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2), x(2, 3, 8), x(4, 3, 8)),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), x(2, 3, 8), x(2, 4, 8)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), x(*IMAGE)),
    "Upsample_linear": (lambda: nn.Upsample(scale_factor=2, mode="linear"), x(*LINE)),
    "Upsample_bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), x(*IMAGE)),
    "Upsample_bicubic": (lambda: nn.Upsample(size=(7, 9), mode="bicubic"), x(*IMAGE)),
    "Upsample_trilinear": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), x(2, 3, 4, 4, 4)),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), x(*IMAGE)),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), x(*IMAGE)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), x(2, 8, 4, 4)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), x(*IMAGE)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), x(2, 4, 4, 4)),
    "Flatten": (lambda: nn.Flatten(), x(2, 3, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), x(2, 4, 4)),
    "Fold": (lambda: nn.Fold((4, 5), (2, 2)), x(1, 12, 12)),
    "Unfold": (lambda: nn.Unfold((2, 2)), x(2, 3, 4, 5)),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(), x(2, 3), x(2, 3)),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(), x(2, 3), x(2, 3)),
    "Identity": (lambda: nn.Identity(), x(2, 3)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), x(2, 4)),
    "Threshold": (lambda: nn.Threshold(0.1, 0.2), x(*ROWS)),
    "GLU": (lambda: nn.GLU(), x(*ROWS)),
    "GELU_tanh": (lambda: nn.GELU(approximate="tanh"), x(*ROWS)),
    "Softmax2d": (lambda: nn.Softmax2d(), x(2, 3, 4, 4)),
    "AlphaDropout": (lambda: nn.AlphaDropout(), x(2, 3)),
    "FeatureAlphaDropout": (lambda: nn.FeatureAlphaDropout(), x(2, 3, 4)),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: Of(lambda s, v: s.m.log_prob(v), m=nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4])), x(3, 8)),
    "FractionalMaxPool2d": (
        lambda: nn.FractionalMaxPool2d(2, output_size=3, _random_samples=torch.full((2, 3, 2), 0.3)), x(*IMAGE)),
    "FractionalMaxPool3d": (
        lambda: nn.FractionalMaxPool3d(2, output_size=3, _random_samples=torch.full((2, 3, 3), 0.3)), x(*VOLUME)),
    "MaxPool2d_indices": (lambda: nn.MaxPool2d(2, return_indices=True), x(*IMAGE)),
}
for name in ("ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid PReLU ReLU ReLU6 RReLU SELU CELU GELU "
             "Sigmoid SiLU Mish Softplus Softshrink Softsign Tanh Tanhshrink").split():
    MODULES[name] = (getattr(nn, name), x(*ROWS))
for name in ("Softmin", "Softmax", "LogSoftmax"):
    MODULES[name] = (lambda kind=getattr(nn, name): kind(dim=-1), x(*ROWS))
for rank, shape in ((1, LINE), (2, IMAGE), (3, VOLUME)):
    for name, args in (("MaxPool", (2,)), ("AvgPool", (2,)), ("AdaptiveAvgPool", (3,)), ("AdaptiveMaxPool", (3,)),
                       ("ReflectionPad", (1,)), ("ReplicationPad", (1,)), ("ZeroPad", (1,)), ("CircularPad", (1,)),
                       ("ConstantPad", (1, 0.5)), ("LPPool", (2, 2))):
        kind = getattr(nn, f"{name}{rank}d", None)
        if kind:
            MODULES[f"{name}{rank}d"] = (lambda kind=kind, args=args: kind(*args), x(*shape))
    unpool = lambda s, v: s.unpool(*s.pool(v))
    MODULES[f"MaxUnpool{rank}d"] = (
        lambda rank=rank, unpool=unpool: Of(unpool, pool=getattr(nn, f"MaxPool{rank}d")(2, return_indices=True),
                                                  unpool=getattr(nn, f"MaxUnpool{rank}d")(2)), x(*shape))
for name, shape in (("Dropout", ROWS), ("Dropout1d", LINE), ("Dropout2d", IMAGE), ("Dropout3d", VOLUME)):
    MODULES[name] = (getattr(nn, name), x(*shape))

SIGNS = torch.tensor([[1.0, -1, 1], [1, 1, -1]])
LOSSES = {
    "L1Loss": (x(2, 3), x(2, 3)), "MSELoss": (x(2, 3), x(2, 3)), "SmoothL1Loss": (x(2, 3), x(2, 3)),
    "HuberLoss": (x(2, 3), x(2, 3)), "CrossEntropyLoss": (x(4, 5), torch.randint(0, 5, (4,))),
    "NLLLoss": (torch.log_softmax(x(4, 5), 1), torch.randint(0, 5, (4,))),
    "BCELoss": (torch.rand(2, 3), torch.rand(2, 3)), "BCEWithLogitsLoss": (x(2, 3), torch.rand(2, 3)),
    "KLDivLoss": (torch.log_softmax(x(2, 3), 1), torch.softmax(x(2, 3), 1)),
    "PoissonNLLLoss": (x(2, 3), torch.rand(2, 3)),
    "GaussianNLLLoss": (x(2, 3), x(2, 3), torch.rand(2, 3) + 0.1),
    "HingeEmbeddingLoss": (x(2, 3), SIGNS), "MarginRankingLoss": (x(3), x(3), torch.tensor([1.0, -1, 1])),
    "SoftMarginLoss": (x(2, 3), SIGNS), "MultiLabelMarginLoss": (x(2, 3), torch.tensor([[0, 1, -1], [2, -1, -1]])),
    "MultiLabelSoftMarginLoss": (x(2, 3), torch.rand(2, 3)), "MultiMarginLoss": (x(2, 3), torch.tensor([0, 2])),
    "CosineEmbeddingLoss": (x(2, 3), x(2, 3), torch.tensor([1.0, -1])),
    "TripletMarginLoss": (x(2, 3), x(2, 3), x(2, 3)), "TripletMarginWithDistanceLoss": (x(2, 3), x(2, 3), x(2, 3)),
    "CTCLoss": (torch.log_softmax(x(10, 2, 5), 2), torch.randint(1, 5, (2, 4)), torch.tensor([10, 9]),
                torch.tensor([4, 3])),
}
for name, args in LOSSES.items():
    MODULES[name] = (getattr(nn, name), *args)
for name, (make, *args) in MODULES.items():
    case("nn_" + name, make, *args)
for name in ("BatchNorm1d BatchNorm2d InstanceNorm1d Conv2d LSTM GRU Linear LayerNorm GroupNorm PReLU Embedding "
             "TransformerEncoderLayer Dropout").split():
    make, *args = MODULES[name]
    if name == "TransformerEncoderLayer":  # kernels draw the numbers of attention's dropout in orders of their own
        make = lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    case("train_" + name, make, *args, training=True)

# ---- programs --------------------------------------------------------------------------------------------------------
batch, length = Dim("batch", min=2, max=64), Dim("length", min=2, max=32)


class Slots(nn.Module):
    """Results of every kind: several, lists, views, other types."""

    def forward(self, v):
        v = v.clone()
        v[:, 0] = 1
        v[0, 1:] += 2
        a, b = v.split([1, 2], 1)
        top, where = v.topk(2)
        return (a, b, torch.unbind(v)[1], top, where, v[..., None].squeeze(-1), v[torch.tensor([0, 1])], v.chunk(2, 0)[1],
                torch.stack([a, a]), v.std(), v.var(1), v.double(), v.half().float(), torch.where(v > 0, v, 0.0))


class Gpt(nn.Module):
    def __init__(self, width=16, heads=2, words=20, layers=2):
        super().__init__()
        self.tokens, self.positions, self.heads = nn.Embedding(words, width), nn.Embedding(32, width), heads
        self.blocks = nn.ModuleList([nn.ModuleDict({
            "n": nn.LayerNorm(width), "a": nn.Linear(width, 3 * width), "o": nn.Linear(width, width),
            "m": nn.LayerNorm(width), "u": nn.Linear(width, 4 * width), "w": nn.Linear(4 * width, width),
        }) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, words):
        b, t = words.shape
        v = self.tokens(words) + self.positions(torch.arange(t))
        for block in self.blocks:
            q, k, w = (u.view(b, t, self.heads, -1).transpose(1, 2) for u in block["a"](block["n"](v)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, w, is_causal=True)
            v = v + block["o"](y.transpose(1, 2).reshape(b, t, -1))
            v = v + block["w"](F.gelu(block["u"](block["m"](v))))
        return self.head(self.norm(v))


class Writes(nn.Module):
    """Writes to inputs, to a buffer, and reads one that is not saved and a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(4))
        self.register_buffer("scratch", torch.ones(2), persistent=False)
        self.steps = torch.arange(4.0)

    def forward(self, v, d):
        v.add_(1)
        self.sums += v.sum(0)
        d["k"].mul_(2)
        return v * self.steps + self.scratch.sum(), self.sums.clone(), d["k"] + 1


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.o = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.o.weight = self.e.weight
        self.big = nn.Parameter(x(4, 4))
        self.register_buffer("view", self.big.detach()[1:3, :2])

    def forward(self, i):
        return self.o(self.e(i)), self.view * 2, self.big.sum()


def cond(s, v):
    return torch.cond(v.sum() > 0, lambda v: (s.l(v), v + 1), lambda v: (v.cos(), v - 1), (v,))


def nested_cond(s, v):
    return torch.cond(v.sum() > 0, lambda v: torch.cond(v.mean() > 2, lambda v: v.sin(), lambda v: v.cos(), (v,)),
                      lambda v: v * 2, (v,))


def without_grad(s, v):
    a = s.l(v)
    with torch.no_grad():
        b = s.m(v) * 2
    return a + b


def mixed_types(s, v):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = s.l(v)
    return a.float() + v


def repeated(s, i, v):
    from torch._higher_order_ops import while_loop
    return while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 1.5), (i, v))


def scanned(s, init, xs):
    from torch._higher_order_ops import scan
    return scan(lambda c, v: (c + v, c * v), init, xs, dim=0)


def mapped(s, xs, y):
    from torch._higher_order_ops.map import map as over
    return over(lambda v, y: v.sin() + y, xs, y)


def of_item(s, v, i):
    n = i.item()
    torch._check(n >= 0)
    torch._check(n <= v.shape[0])
    return v.narrow(0, 0, n).sum(), v.nonzero().shape[0]


Pair = namedtuple("Pair", "first second")
linear = lambda: nn.Linear(3, 3)
case("cond", lambda: Of(cond, l=linear()), torch.ones(3))
case("cond_otherwise", lambda: Of(cond, l=linear()), -torch.ones(3))
case("cond_nested", lambda: Of(nested_cond), torch.ones(3))
case("while_loop", lambda: Of(repeated), torch.tensor(0), x(3))
case("scan", lambda: Of(scanned), x(3), x(4, 3))
case("map", lambda: Of(mapped), x(4, 3), x(3))
case("no_grad", lambda: Of(without_grad, l=linear(), m=linear()), x(2, 3))
case("autocast", lambda: Of(mixed_types, l=linear()), x(2, 3))
case("checkpoint", lambda: Of(
    lambda s, v: torch.utils.checkpoint.checkpoint(lambda q: s.l(q).relu(), v, use_reentrant=False), l=linear()), x(2, 3))
case("free_view", lambda: Of(
    lambda s, v: (s.l(v).view(v.shape[0], 2, 3).permute(1, 0, 2).reshape(2, -1), v.shape[0] * 2), l=nn.Linear(8, 6)),
     x(4, 8), dynamic=(({0: batch},),))
case("free_conv", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
     x(2, 3, 9, 9), dynamic=({0: batch, 2: Dim("h", min=5, max=64), 3: Dim("w", min=5, max=64)},))
case("free_twice", lambda: Of(lambda s, v, w: (torch.cat([v, w], 0), torch.arange(v.shape[0]), w.mean(0))),
     x(4, 8), x(8, 8), dynamic=(({0: batch}, {0: 2 * batch}),))
case("free_tied", lambda: Of(lambda s, v, w: v + w), x(4, 8), x(4, 8), dynamic=(({0: batch}, {0: batch}),))
case("free_item", lambda: Of(of_item), x(4, 2), torch.tensor(3))
case("number", lambda: Of(lambda s, v, n: v * n), x(2), 3)
case("free_number", lambda: Of(lambda s, v, n: v * n), x(2), 3, dynamic=((None, Dim.DYNAMIC),))
case("none", lambda: Of(lambda s, v, m=None, *, flag=True, w=None: v if m is None else v + m), x(2), None,
     kwargs={"w": x(2)})
case("tree", lambda: Of(
    lambda s, a, *rest, **kw: {"a": a[0] + rest[0]["q"], "n": None, "t": (rest[1], [kw["z"], kw["y"][0]])}),
     [x(2), x(3)], {"q": x(2)}, x(4), kwargs={"z": x(1), "y": (x(2),)})
case("tree_ordered", lambda: Of(lambda s, a: OrderedDict(b=a["u"] * 2, a=a["v"])), OrderedDict(u=x(2), v=x(3)))
case("constants", lambda: Of(
    lambda s, v: (v + torch.tensor([1.0, 2.0]), torch.full((2,), float("inf")), torch.clamp(v, min=-float("inf")))), x(2))
case("slots", Slots, x(2, 3))
case("complex", lambda: Of(lambda s, v: (torch.fft.rfft(v).abs(), torch.complex(v, v) * (1 + 2j))), x(4))
case("tied_view", Tied, torch.tensor([[1, 2]]))
case("writes", Writes, x(3, 4), {"k": x(2)})
case("gpt", Gpt, torch.randint(0, 20, (2, 7)))
case("gpt_free", Gpt, torch.randint(0, 20, (2, 7)), dynamic=({0: batch, 1: length},))
case("same_input_returned", lambda: Of(lambda s, v: (v, v, v * 2)), x(3))
case("alias", lambda: Of(lambda s, v: (v.view(-1), v.t())), x(2, 3))
case("empty", lambda: Of(lambda s, v: (v, torch.zeros(0, 2))), x(2))
case("bfloat16", lambda: nn.Linear(4, 3).bfloat16(), x(2, 4).bfloat16())
case("frozen", lambda: nn.Sequential(nn.Linear(4, 3).requires_grad_(False), nn.Linear(3, 2)), x(2, 4))

programs(case)
further(case)
families(case)
if quantized:
    quantized(case)

# ---- torchvision -----------------------------------------------------------------------------------------------------
VISION = {
    "alexnet": {}, "vgg11": {}, "resnet18": {}, "resnet50": {}, "resnext50_32x4d": {}, "wide_resnet50_2": {},
    "mobilenet_v2": {"width_mult": 0.25}, "mobilenet_v3_small": {}, "mnasnet0_5": {}, "squeezenet1_1": {},
    "shufflenet_v2_x0_5": {}, "efficientnet_b0": {}, "regnet_y_400mf": {}, "densenet121": {}, "convnext_tiny": {},
    "googlenet": {"aux_logits": False, "init_weights": False}, "inception_v3": {"aux_logits": False, "init_weights": False},
    "vit_b_16": {"image_size": 64}, "swin_t": {}, "swin_v2_t": {},
}


def add_vision():
    try:
        import torchvision
    except ImportError:
        return
    for name, options in VISION.items():
        size = {"inception_v3": 80}.get(name, 64)
        make = getattr(torchvision.models, name)
        case("vision_" + name, lambda make=make, options=options: make(weights=None, **options), x(1, 3, size, size),
             core=name in ("resnet18", "mobilenet_v2", "swin_t"))


add_vision()
