"""Hand-made models for convolution + BatchNorm: what must fold, what must not, and what must not be corrupted."""
import torch
import torch.nn.functional as F
from torch import nn

from case import Case, image
from randomise import made, randomise

X = (image(2, 4, 10, 10),)
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
SIZE = {1: (2, 4, 12), 2: (2, 4, 10, 10), 3: (2, 4, 6, 6, 6)}


def conv_bn(dim=2, transposed=False, norm=None, **conv):
    kind = (TRANSPOSED if transposed else CONV)[dim]
    return randomise(nn.Sequential(kind(4, 6, 3, **conv), NORM[dim](6, **(norm or {})), nn.ReLU()))


class ConvBn(nn.Module):
    """Base of the models below: a convolution, a BatchNorm, and a forward of its own."""

    def __init__(self, channels=4):
        super().__init__()
        self.conv = nn.Conv2d(4, channels, 3, padding=1)
        self.bn = nn.BatchNorm2d(channels)


class Plain(ConvBn):
    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def bn_in_training_mode():
    model = randomise(Plain())
    model.bn.train()
    return model


def frozen():
    """torch.jit.freeze without its own numeric passes: no modules are left, weights are constants of the graph."""
    return torch.jit.freeze(torch.jit.script(randomise(Plain())), optimize_numerics=False)


class SharedConv(ConvBn):
    """One convolution, two calls, one of them normalised."""

    def forward(self, x):
        return self.bn(self.conv(x)) + self.conv(x * 2)


class SharedConvTwoPaths(ConvBn):
    """The same convolution object under two names."""

    def __init__(self):
        super().__init__()
        self.again = self.conv

    def forward(self, x):
        return self.bn(self.conv(x)) + self.again(x * 2)


class TiedWeights(ConvBn):
    """Two convolutions that share one weight tensor."""

    def __init__(self):
        super().__init__()
        self.other = nn.Conv2d(4, 4, 3, padding=1)
        self.other.weight = self.conv.weight

    def forward(self, x):
        return self.bn(self.conv(x)) + self.other(x)


class WeightReadElsewhere(ConvBn):
    """The convolution's weight is also an operand of its own."""

    def forward(self, x):
        return self.bn(self.conv(x)) + self.conv.weight.sum()


class SharedBn(ConvBn):
    """Two convolutions, one BatchNorm called after each."""

    def __init__(self):
        super().__init__()
        self.other = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.bn(self.conv(x)) + self.bn(self.other(x))


class CalledTwice(nn.Module):
    """The pair is called twice: both calls of the convolution are followed by the same BatchNorm."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4))

    def forward(self, x):
        return self.block(F.relu(self.block(x)))


class UsedTwice(ConvBn):
    def forward(self, x):
        y = self.conv(x)
        return self.bn(y) + y


class ConvIsOutput(ConvBn):
    def forward(self, x):
        y = self.conv(x)
        return self.bn(y), y


class ReluInPlaceBetween(ConvBn):
    """Data flow alone would see bn(conv): the write in between must be seen."""

    def forward(self, x):
        y = self.conv(x)
        y.relu_()
        return self.bn(y)


class ReluInPlaceChained(ConvBn):
    def forward(self, x):
        return self.bn(self.conv(x).relu_())


class ReluInPlaceAfter(ConvBn):
    def forward(self, x):
        return self.bn(self.conv(x)).relu_()


class ViewWritten(ConvBn):
    """The write goes through a view of the convolution's output."""

    def forward(self, x):
        y = self.conv(x)
        y.select(1, 0).zero_()
        return self.bn(y)


class WeightWritten(ConvBn):
    """The forward writes the weight before it is used: it is no constant."""

    def forward(self, x):
        self.conv.weight.mul_(0.5).add_(x.mean())
        return self.bn(self.conv(x))


class StatisticsWritten(ConvBn):
    def forward(self, x):
        self.bn.running_mean.copy_(x.mean([0, 2, 3]))
        return self.bn(self.conv(x))


class TwoConvsCat(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.bn = nn.Conv2d(4, 3, 1), nn.Conv2d(4, 5, 1), nn.BatchNorm2d(8)

    def forward(self, x):
        return self.bn(torch.cat([self.a(x), self.b(x)], 1))


class ScaledConv(nn.Conv2d):
    """A subclass with its own forward: not a plain Conv2d, whatever its base class."""

    def forward(self, x):
        return F.conv2d(x, self.weight * 2, self.bias, self.stride, self.padding)


class Functional(nn.Module):
    """Convolution and batch norm on parameters and buffers, without their modules."""

    def __init__(self, bias=True, affine=True):
        super().__init__()
        self.weight = nn.Parameter(image(6, 4, 3, 3, seed=1) * 0.2)
        self.bias = nn.Parameter(image(6, seed=2)) if bias else None
        self.gamma = nn.Parameter(image(6, seed=3)) if affine else None
        self.beta = nn.Parameter(image(6, seed=4)) if affine else None
        self.register_buffer("mean", image(6, seed=5))
        self.register_buffer("var", image(6, seed=6).abs() + 0.5)
        self.eval()

    def norm(self, y):
        return F.batch_norm(y, self.mean, self.var, self.gamma, self.beta, False, 0.1, 1e-3)

    def forward(self, x):
        return self.norm(F.conv2d(x, self.weight, self.bias, stride=2, padding=1))


class FunctionalSame(Functional):
    """aten::conv2d.padding: the padding is a string."""

    def forward(self, x):
        return self.norm(F.conv2d(x, self.weight, self.bias, padding="same"))


class FunctionalConvolution(Functional):
    """aten::convolution: one operator for all convolutions, near to what traced programs have."""

    def forward(self, x):
        w = self.weight
        return self.norm(torch.convolution(x, w, self.bias, [2, 2], [1, 1], [1, 1], False, [0, 0], 1))


class FunctionalTransposed(Functional):
    """Two groups of three output channels: the weight is (4, 3, 3, 3)."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(image(4, 3, 3, 3, seed=1) * 0.2)

    def forward(self, x):
        return self.norm(F.conv_transpose2d(x, self.weight, self.bias, stride=2, groups=2))


class FunctionalShared(Functional):
    """One weight parameter, two convolutions, one of them normalised."""

    def forward(self, x):
        return self.norm(F.conv2d(x, self.weight, self.bias)) + F.conv2d(x + 1, self.weight)


class FunctionalTraining(Functional):
    def forward(self, x):
        return F.batch_norm(F.conv2d(x, self.weight), None, None, self.gamma, self.beta, True, 0.1, 1e-3)


class WeightIsInput(Functional):
    def forward(self, x, weight):
        return self.norm(F.conv2d(x, weight))


class GammaIsInput(ConvBn):
    def forward(self, x, gamma):
        bn = self.bn
        return F.batch_norm(self.conv(x), bn.running_mean, bn.running_var, gamma, bn.bias, False, 0.1, 1e-5)


class LinearBn(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.bn = nn.Linear(5, 7), nn.BatchNorm1d(7)

    def forward(self, x):
        return self.bn(self.linear(x))


class LinearBn3d(LinearBn):
    """The channels normalised are axis 1, the linear's features axis 2; both are 7 long."""


class Residual(nn.Module):
    """Two pairs and a shortcut pair, in-place ReLUs: what a ResNet block is."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.down = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return self.relu(y)


def sequential(*modules):
    return randomise(nn.Sequential(*modules))


def nested():
    return sequential(
        nn.Sequential(nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)), nn.ReLU()),
        nn.Sequential(nn.Conv2d(6, 2, 1), nn.Sequential(nn.BatchNorm2d(2), nn.ReLU6())))


def hard_statistics():
    """Variances near zero, a scale of exactly zero: still finite after folding."""
    model = conv_bn(norm={"eps": 1e-3})
    with torch.no_grad():
        model[1].running_var[0] = 0
        model[1].running_var[1] = 1e6
        model[1].weight[2] = 0
    return model


def plain_cases():
    """Each dimension, plain and transposed, with the options of convolution and BatchNorm."""
    for d in (1, 2, 3):
        x = (image(*SIZE[d]),)
        yield Case(f"conv{d}d_bn", lambda d=d: conv_bn(d), x, foldable=1)
        yield Case(f"conv{d}d_no_bias_bn", lambda d=d: conv_bn(d, bias=False), x, foldable=1)
        yield Case(f"conv{d}d_groups_bn", lambda d=d: conv_bn(d, groups=2, stride=2, padding=1, dilation=2), x, foldable=1)
        yield Case(f"conv_transpose{d}d_bn", lambda d=d: conv_bn(d, True), x, foldable=1)
        yield Case(f"conv_transpose{d}d_groups_bn",
                   lambda d=d: conv_bn(d, True, groups=2, stride=2, padding=1, output_padding=1, bias=False), x, foldable=1,
                   note="output channels are axis 1 of the weight, per group")
        yield Case(f"conv{d}d_bn_no_affine", lambda d=d: conv_bn(d, bias=False, norm={"affine": False}), x, foldable=1)
    for mode in ("reflect", "replicate", "circular"):
        yield Case(f"conv2d_{mode}_bn", lambda mode=mode: conv_bn(padding=2, padding_mode=mode), X, foldable=1)
    yield Case("conv2d_same_bn", lambda: conv_bn(padding="same", dilation=2), X, foldable=1, note="padding is a string")
    yield Case("bn_momentum_none", lambda: conv_bn(norm={"momentum": None}), X, foldable=1)
    yield Case("bn_big_eps", lambda: conv_bn(norm={"eps": 0.5}), X, foldable=1)
    yield Case("bn_hard_statistics", hard_statistics, X, foldable=1)
    yield Case("bn_no_running_stats", lambda: conv_bn(norm={"track_running_stats": False}), X, kept=1,
               note="normalises by the batch, also in eval mode")
    yield Case("bn_training", bn_in_training_mode, X, kept=1, note="also writes its running statistics at each run")


def structure_cases():
    """Sharing, several users, writes in between."""
    yield Case("nested_sequential", nested, X, foldable=2)
    yield Case("residual_block", made(Residual), X, foldable=3)
    yield Case("conv_shared", made(SharedConv), X, optional=1, note="folding into the shared weights would corrupt the other call")
    yield Case("conv_two_paths", made(SharedConvTwoPaths), X, optional=1, note="one object, two names")
    yield Case("conv_tied_weights", made(TiedWeights), X, optional=1, note="two convolutions, one weight tensor")
    yield Case("conv_weight_read", made(WeightReadElsewhere), X, optional=1)
    yield Case("bn_shared", made(SharedBn), X, foldable=2)
    yield Case("pair_called_twice", made(CalledTwice), X, optional=2,
               note="folding once for both calls, or once each; never twice into one")
    yield Case("conv_used_twice", made(UsedTwice), X, kept=1)
    yield Case("conv_is_output", made(ConvIsOutput), X, kept=1)
    yield Case("relu_in_place_between", made(ReluInPlaceBetween), X, kept=1, note="bn reads conv's value after the write")
    yield Case("relu_in_place_chained", made(ReluInPlaceChained), X, kept=1)
    yield Case("relu_in_place_after", made(ReluInPlaceAfter), X, foldable=1)
    yield Case("view_written_between", made(ViewWritten), X, kept=1)
    yield Case("weight_written", made(WeightWritten), X, kept=1, note="changes its own weight at each run")
    yield Case("statistics_written", made(StatisticsWritten), X, kept=1)
    yield Case("two_convs_cat_bn", made(TwoConvsCat), X, kept=1)
    yield Case("bn_bn", lambda: sequential(nn.BatchNorm2d(4), nn.BatchNorm2d(4)), X, kept=2)
    yield Case("conv_bn_bn", lambda: sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.BatchNorm2d(6)), X, foldable=2,
               note="the second folds once the first is gone")
    yield Case("bn_conv", lambda: sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3)), X, kept=1)
    yield Case("conv_relu_bn", lambda: sequential(nn.Conv2d(4, 6, 3), nn.ReLU(), nn.BatchNorm2d(6)), X, kept=1)
    yield Case("conv_identity_bn", lambda: sequential(nn.Conv2d(4, 6, 3), nn.Identity(), nn.BatchNorm2d(6)), X, optional=1)
    yield Case("conv_dropout_bn", lambda: sequential(nn.Conv2d(4, 6, 3), nn.Dropout(), nn.BatchNorm2d(6)), X, optional=1)
    yield Case("conv_instance_norm", lambda: sequential(nn.Conv2d(4, 6, 3), nn.InstanceNorm2d(6)), X, note="no BatchNorm")
    yield Case("conv_subclass_bn", lambda: sequential(ScaledConv(4, 6, 3), nn.BatchNorm2d(6)), X, optional=1,
               note="the subclass's forward must be kept")
    yield Case("linear_bn1d", made(LinearBn), (image(8, 5),), kept=1, note="no convolution")
    yield Case("linear_bn1d_3d", made(LinearBn3d), (image(3, 7, 5),), kept=1, note="bn's channel axis is not the linear's")


def functional_cases():
    yield Case("aten_conv_bn", Functional, X, foldable=1)
    yield Case("aten_conv_bn_bare", lambda: Functional(bias=False, affine=False), X, foldable=1, note="no bias, no scale")
    yield Case("aten_conv_same_bn", FunctionalSame, X, foldable=1, note="aten::conv2d.padding")
    yield Case("aten_convolution_bn", FunctionalConvolution, X, optional=1, note="aten::convolution")
    yield Case("aten_conv_transpose_bn", FunctionalTransposed, X, foldable=1)
    yield Case("aten_conv_shared_bn", FunctionalShared, X, optional=1, note="one weight, two convolutions")
    yield Case("aten_bn_training", FunctionalTraining, X, kept=1)
    yield Case("aten_weight_is_input", WeightIsInput, X + (image(6, 4, 3, 3),), kept=1)
    yield Case("aten_gamma_is_input", made(GammaIsInput), X + (image(4),), kept=1)
    yield Case("frozen_conv_bn", frozen, X, foldable=1, traced=False, note="torch.jit.freeze: weights are constants in the graph")


def dtype_cases():
    yield Case("half_conv_bn", lambda: conv_bn().half(), (X[0].half(),), foldable=1, rtol=1e-2, runs=False, traced=False,
               note="compare in float32: convolution has no half kernel on this CPU build")
    yield Case("half_conv_transpose_bn", lambda: conv_bn(transposed=True, bias=False).half(), (X[0].half(),), foldable=1,
               rtol=1e-2, runs=False, traced=False, note="as half_conv_bn")
    yield Case("bfloat16_conv_bn", lambda: conv_bn().bfloat16(), (X[0].bfloat16(),), foldable=1, rtol=5e-2)
    yield Case("double_conv_bn", lambda: conv_bn().double(), (X[0].double(),), foldable=1, rtol=1e-10)


CASES = [*plain_cases(), *structure_cases(), *functional_cases(), *dtype_cases()]
