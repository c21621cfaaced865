"""Programs in the operators of quantized_decomposed, as quantization by PT2E leaves them.

`quantized(case)` adds them, as programs(case) does.
"""

import torch
import torch.ao.quantization.fx._decomposed  # which registers them
import torch.nn.functional as F
from torch import nn
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import _convert_to_reference_decomposed_fx, prepare_fx
from torch.export import Dim

from programs import Of, x

Q = torch.ops.quantized_decomposed
AUTO = Dim.AUTO
U8, S8, S16, S32 = (0, 255, torch.uint8), (-128, 127, torch.int8), (-32768, 32767, torch.int16), (-9, 9, torch.int32)


def by_tensor(s, v):
    ties = torch.cat([v.flatten() * 4, torch.arange(-8, 8) / 4, torch.tensor([1e9, -1e9])])
    steps = [(Q.quantize_per_tensor(ties, 0.5, 3, *kind), kind) for kind in (U8, S8, S16, S32)]
    return [(q, Q.dequantize_per_tensor(q, 0.5, 3, *kind),
             Q.dequantize_per_tensor(q, 0.3, 1, *kind, out_dtype=torch.bfloat16)) for q, kind in steps]


def found(s, v):
    results = []
    for choose in (Q.choose_qparams.tensor, Q.choose_qparams_symmetric.tensor):
        for kind in (U8, S8):
            scale, zero = choose(v, kind[0], kind[1], 1e-5, kind[2])
            q = Q.quantize_per_tensor.tensor(v, scale, zero, *kind)
            results.append((scale, zero, q, Q.dequantize_per_tensor.tensor(q, scale, zero, *kind)))
    ends = torch.tensor(-100), torch.tensor(100)
    q = Q.quantize_per_tensor.tensor2(v, scale, zero, *ends, torch.int8)
    return results, Q.dequantize_per_tensor.tensor2(q, scale, zero, *ends, torch.int8, out_dtype=torch.float16)


def by_channel(s, v):
    scales, zeros = torch.tensor([0.1, 0.25, 0.5]), torch.tensor([0, 3, -2])
    results = []
    for axis, w in ((1, v), (0, v.transpose(0, 1))):
        q = Q.quantize_per_channel(w, scales, zeros, axis, *S8)
        results += [q, Q.dequantize_per_channel(q, scales, zeros, axis, *S8),
                    Q.dequantize_per_channel(q, scales.double(), None, axis, *S8, out_dtype=torch.float16)]
    return results


def by_token(s, v):
    results = []
    for choose in (Q.choose_qparams_per_token, Q.choose_qparams_per_token_asymmetric):
        scales, zeros = choose(v, torch.int8)
        q = Q.quantize_per_token(v, scales, zeros, *S8)
        results += [scales * 1, zeros * 1, q, Q.dequantize_per_token(q, scales, zeros, *S8, torch.float32)]
    return results


def by_group(s, w):
    scales, zeros = torch.rand(4, 2) + 0.1, torch.randint(-5, 5, (4, 2))
    q = Q.quantize_per_channel_group(w, scales, zeros, -8, 7, torch.int8, 4)
    wide = Q.quantize_per_channel_group(w, scales[:, :1], zeros[:, :1], -8, 7, torch.int8, 100)
    return (q, wide, Q.dequantize_per_channel_group(q, scales, zeros, -8, 7, torch.int8, 4, torch.float32),
            Q.dequantize_per_channel_group(q, scales, None, -8, 7, torch.int8, 4, torch.float16))


class Pretended(nn.Module):
    """As in training for 8 bits."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(x(4, 3))
        self.register_buffer("scales", torch.tensor([0.01, 0.2, 0.3, 0.4]))
        self.register_buffer("zeros", torch.tensor([0, 1, -1, 0]))

    def forward(self, v):
        return F.linear(v, Q.fake_quant_per_channel(self.w, self.scales, self.zeros, 0, -8, 7))


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.l = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, v):
        return self.l(F.max_pool2d(F.relu(self.b(self.c(v))), 2).mean((2, 3)))


def reference():
    """Every layer between numbers that are rounded, its weight rounded channel by channel."""
    example = (x(2, 3, 8, 8),)
    model = prepare_fx(Small().eval(), get_default_qconfig_mapping("fbgemm"), example)
    for _ in range(3):
        model(x(2, 3, 8, 8))
    return _convert_to_reference_decomposed_fx(model)


def quantized(case):
    free = (({0: AUTO},),)
    case("q_tensor", lambda: Of(by_tensor), x(2, 3), dynamic=free, more=[(x(5, 3),)])
    case("q_found", lambda: Of(found), x(2, 3), dynamic=free, more=[(x(5, 3) * 40,), (x(3, 3).abs(),)])
    case("q_channel", lambda: Of(by_channel), x(2, 3), dynamic=free, more=[(x(5, 3),)])
    case("q_token", lambda: Of(by_token), x(2, 3, 4), dynamic=free, more=[(x(5, 3, 4),)])
    case("q_token_half", lambda: Of(by_token), x(2, 3, 4).half())
    case("q_group", lambda: Of(by_group), x(4, 8))
    case("q_pretended", Pretended, x(2, 3))
    case("q_convert", lambda: Of(lambda s, v: (Q.convert_element_type.no_fuse(v, torch.float16),
                                               Q.convert_element_type.no_fuse(v, torch.float32))), x(2, 3))
    case("q_reference", reference, x(2, 3, 8, 8), dynamic=({0: AUTO},), more=[(x(5, 3, 8, 8),)])
