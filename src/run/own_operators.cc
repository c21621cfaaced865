// Fxgraph's own operators, each for what LibTorch runs slowly.
//
// Recurrent networks: LibTorch runs each step as a dozen calls that allocate; here a step is one product and six calls
// that write to memory which is there already. No gradients go through.
//
// `packed` is empty, or has for each layer and direction what XNNPACK made of the weight of the input, with its bias,
// and of the weight of the state, without: several sequences go through these, and one through the tensors, for a
// product with a vector reads them once.
//
// packed_lstm takes three tensors for each layer and direction: the weight of the input, transposed, and the bias of
// both, [features, 4 hidden] and [4 hidden], and the weight of the state, [4 hidden, hidden], in any layout; the gates
// stand in the order input, forget, output, cell, so that three of them are one sigmoid. packed_gru takes four, with
// LibTorch's gates, reset, update, new: the last is the bias of the state, zero but for the new gate, since what the
// other gates have of it is in the first bias.
//
// max_pool2d: of images with channels last, whose windows LibTorch goes through pixel by pixel, keeping the place of
// what is largest: the largest of rows, then of columns. Of anything else it is aten::max_pool2d.
//
// packed_linear: for one row, which LibTorch multiplies as a matrix, its weight is multiplied by a vector: a quarter of
// the time. For any other number it is aten::linear.
#include <fxgraph/run/operator_sources.h>

namespace fx {
namespace {

#define FXGRAPH_PACKED "__torch__.torch.classes.xnnpack.LinearOpContext"

/// The products of recurrent networks, in the terms of their bodies.
constexpr const char* kProducts = R"(
def of_inputs(x: Tensor, weight: Tensor, bias: Tensor, packed: List[)" FXGRAPH_PACKED R"(], at: int) -> Tensor:
    rows = x.reshape([x.size(0) * x.size(1), x.size(2)])
    if len(packed) > 0:
        assert x.size(2) == weight.size(0), "Expected as many features as the weight takes"
        product = prepacked.linear_clamp_run(rows, packed[2 * at])
    else:
        product = torch.addmm(bias.detach(), rows, weight.detach())
    return product

def add_product(to: Tensor, h: Tensor, weight: Tensor, transposed: Tensor,
                packed: List[)" FXGRAPH_PACKED R"(], at: int, out: Tensor) -> Tensor:
    if h.dim() == 1:
        torch.addmv(to, weight, h, out=out)
    elif len(packed) > 0:
        torch.add(to, prepacked.linear_clamp_run(h, packed[2 * at + 1]), out=out)
    else:
        torch.addmm(to, h, transposed, out=out)
    return out
)";

constexpr OperatorSource kOwnOperators[] = {
    {"packed_lstm(Tensor input, Tensor[] hx, Tensor[] weights, " FXGRAPH_PACKED
     "[] packed, int num_layers, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
     kProducts, R"(
def body(input: Tensor, hx: List[Tensor], weights: List[Tensor],
         packed: List[)" FXGRAPH_PACKED R"(],
         num_layers: int, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    x = input.detach()
    assert x.dim() == 3, "Expected an input of three dimensions, as the network was optimised for"
    if batch_first:
        x = x.transpose(0, 1)
    steps = x.size(0)
    batch = x.size(1)
    assert steps > 0, "Expected sequence length to be larger than 0 in RNN"
    ways = 2 if bidirectional else 1
    for state in hx:
        assert state.dim() == 3 and state.size(0) == num_layers * ways and state.size(1) == batch, \
            "Expected a state of each sequence for each layer and direction"
        assert state.dtype == x.dtype, "Expected states of the type of the input"
    last_h: List[Tensor] = []
    last_c: List[Tensor] = []
    for layer in range(num_layers):
        outputs: List[Tensor] = []
        for way in range(ways):
            at = layer * ways + way
            weight = weights[3 * at + 2].detach()
            width = weight.size(1)
            one = batch == 1
            rows = [4 * width] if one else [batch, 4 * width]
            own = [width] if one else [batch, width]
            of_all = of_inputs(x, weights[3 * at], weights[3 * at + 1], packed, at)
            of_input = of_all.view([steps] + rows).unbind(0)
            output = torch.empty([steps] + own, dtype=x.dtype, device=x.device)
            states = output.unbind(0)
            if way == 1:
                of_input.reverse()
                states.reverse()
            gates = torch.empty(rows, dtype=x.dtype, device=x.device)
            three = gates.narrow(-1, 0, 3 * width)
            input_gate = gates.narrow(-1, 0, width)
            forget_gate = gates.narrow(-1, width, width)
            output_gate = gates.narrow(-1, 2 * width, width)
            cell_gate = gates.narrow(-1, 3 * width, width)
            h = hx[0][at].detach()
            assert h.size(1) == width, "Expected as many numbers in a state as the weight takes"
            c = hx[1][at].detach().clone()
            if one:
                h = h.squeeze(0)
                c = c.squeeze(0)
            seen = torch.empty_like(c)
            transposed = weight.t()
            # A BLAS takes a product with rows in a row faster, and the copy takes two steps.
            if not one and steps >= 16 and len(packed) == 0:
                transposed = transposed.contiguous()
            for step in range(steps):
                add_product(of_input[step], h, weight, transposed, packed, at, gates)
                three.sigmoid_()
                cell_gate.tanh_()
                c.mul_(forget_gate).addcmul_(input_gate, cell_gate)
                torch.tanh(c, out=seen)
                h = states[step]
                torch.mul(seen, output_gate, out=h)
            outputs.append(output.view([steps, batch, width]))
            last_h.append(h.view([batch, width]))
            last_c.append(c.view([batch, width]))
        x = outputs[0] if ways == 1 else torch.cat(outputs, 2)
    return x.transpose(0, 1) if batch_first else x, torch.stack(last_h), torch.stack(last_c)
)"},
    {"packed_gru(Tensor input, Tensor hx, Tensor[] weights, " FXGRAPH_PACKED
     "[] packed, int num_layers, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kProducts, R"(
def body(input: Tensor, hx: Tensor, weights: List[Tensor],
         packed: List[)" FXGRAPH_PACKED R"(],
         num_layers: int, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    x = input.detach()
    assert x.dim() == 3, "Expected an input of three dimensions, as the network was optimised for"
    if batch_first:
        x = x.transpose(0, 1)
    steps = x.size(0)
    batch = x.size(1)
    assert steps > 0, "Expected sequence length to be larger than 0 in RNN"
    ways = 2 if bidirectional else 1
    assert hx.dim() == 3 and hx.size(0) == num_layers * ways and hx.size(1) == batch, \
        "Expected a state of each sequence for each layer and direction"
    assert hx.dtype == x.dtype, "Expected a state of the type of the input"
    last: List[Tensor] = []
    for layer in range(num_layers):
        outputs: List[Tensor] = []
        for way in range(ways):
            at = layer * ways + way
            weight = weights[4 * at + 2].detach()
            bias = weights[4 * at + 3].detach()
            width = weight.size(1)
            one = batch == 1
            rows = [3 * width] if one else [batch, 3 * width]
            own = [width] if one else [batch, width]
            of_all = of_inputs(x, weights[4 * at], weights[4 * at + 1], packed, at)
            of_input = of_all.view([steps] + rows)
            two_of_input = of_input.narrow(-1, 0, 2 * width).unbind(0)
            new_of_input = of_input.narrow(-1, 2 * width, width).unbind(0)
            output = torch.empty([steps] + own, dtype=x.dtype, device=x.device)
            states = output.unbind(0)
            if way == 1:
                two_of_input.reverse()
                new_of_input.reverse()
                states.reverse()
            gates = torch.empty(rows, dtype=x.dtype, device=x.device)
            two = gates.narrow(-1, 0, 2 * width)
            reset_gate = gates.narrow(-1, 0, width)
            update_gate = gates.narrow(-1, width, width)
            new_gate = gates.narrow(-1, 2 * width, width)
            h = hx[at].detach()
            assert h.size(1) == width, "Expected as many numbers in a state as the weight takes"
            if one:
                h = h.squeeze(0)
            transposed = weight.t()
            # A BLAS takes a product with rows in a row faster, and the copy takes two steps.
            if not one and steps >= 16 and len(packed) == 0:
                transposed = transposed.contiguous()
            for step in range(steps):
                add_product(bias, h, weight, transposed, packed, at, gates)
                two.add_(two_of_input[step]).sigmoid_()
                torch.addcmul(new_of_input[step], reset_gate, new_gate, out=new_gate)
                new_gate.tanh_()
                before = h
                h = states[step]
                torch.lerp(new_gate, before, update_gate, out=h)
            outputs.append(output.view([steps, batch, width]))
            last.append(h.view([batch, width]))
        x = outputs[0] if ways == 1 else torch.cat(outputs, 2)
    return x.transpose(0, 1) if batch_first else x, torch.stack(last)
)"},
    {"max_pool2d(Tensor input, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode) -> "
     "Tensor",
     R"(
def of_dim(sizes: List[int], dim: int, otherwise: int) -> int:
    return otherwise if len(sizes) == 0 else sizes[min(dim, len(sizes) - 1)]

def count(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    windows = (size + 2 * padding - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (windows - 1) * stride >= size + padding:
        windows -= 1
    return windows

def along(x: Tensor, dim: int, kernel: int, stride: int, padding: int, result: Tensor) -> Tensor:
    size = x.size(dim)
    windows = result.size(dim)
    whole: List[Tensor] = []
    parts: List[Tensor] = []
    starts: List[int] = []
    for tap in range(kernel):
        start = max(0, (padding - tap + stride - 1) // stride)
        end = min(windows, (size - 1 + padding - tap) // stride + 1)
        if end > start:
            at = start * stride - padding + tap
            part = torch.slice(x, dim, at, at + (end - start - 1) * stride + 1, stride)
            if end - start == windows:
                whole.append(part)
            else:
                parts.append(part)
                starts.append(start)
    if len(whole) == 0:
        result.fill_(float("-inf"))
    elif len(whole) == 1 and len(parts) > 0:
        start = starts.pop(0)
        part = parts.pop(0)
        end = start + part.size(dim)
        torch.maximum(whole[0].narrow(dim, start, end - start), part, out=result.narrow(dim, start, end - start))
        result.narrow(dim, 0, start).copy_(whole[0].narrow(dim, 0, start))
        result.narrow(dim, end, windows - end).copy_(whole[0].narrow(dim, end, windows - end))
    elif len(whole) == 1:
        result.copy_(whole[0])
    else:
        torch.maximum(whole[0], whole[1], out=result)
        for i in range(2, len(whole)):
            torch.maximum(result, whole[i], out=result)
    for i in range(len(parts)):
        some = result.narrow(dim, starts[i], parts[i].size(dim))
        torch.maximum(some, parts[i], out=some)
    return result

def body(input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int],
         ceil_mode: bool) -> Tensor:
    kernel_h = of_dim(kernel_size, 0, 0)
    kernel_w = of_dim(kernel_size, 1, 0)
    stride_h = of_dim(stride, 0, kernel_h)
    stride_w = of_dim(stride, 1, kernel_w)
    pad_h = of_dim(padding, 0, 0)
    pad_w = of_dim(padding, 1, 0)
    x = input
    fits = x.dim() == 4 and x.is_floating_point() and not x.requires_grad
    fits = fits and of_dim(dilation, 0, 1) == 1 and of_dim(dilation, 1, 1) == 1
    fits = fits and min(kernel_h, kernel_w, stride_h, stride_w) > 0 and min(pad_h, pad_w) >= 0
    fits = fits and 2 * pad_h <= kernel_h and 2 * pad_w <= kernel_w and max(len(kernel_size), len(stride)) <= 2
    fits = fits and max(len(padding), len(dilation)) <= 2
    if fits and x.numel() > 0 and not x.is_contiguous():
        pixels = x.permute(0, 2, 3, 1)
        height = count(pixels.size(1), kernel_h, stride_h, pad_h, ceil_mode)
        width = count(pixels.size(2), kernel_w, stride_w, pad_w, ceil_mode)
        if pixels.is_contiguous() and height > 0 and width > 0:
            rows = torch.empty([pixels.size(0), height, pixels.size(2), pixels.size(3)], dtype=x.dtype,
                               device=x.device)
            made = torch.empty([pixels.size(0), height, width, pixels.size(3)], dtype=x.dtype, device=x.device)
            along(along(pixels, 1, kernel_h, stride_h, pad_h, rows), 2, kernel_w, stride_w, pad_w, made)
            return made.permute(0, 3, 1, 2)
    return torch.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode)
)"},
    {"packed_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
     R"(
def body(input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    features = input.numel()
    if weight.dim() == 2 and features > 0 and features == weight.size(1) and features == input.size(-1):
        row = input.reshape([-1])
        made = torch.mv(weight, row) if bias is None else torch.addmv(bias, weight, row)
        return made.view(input.size()[:-1] + [weight.size(0)])
    return torch.linear(input, weight, bias)
)"},
};

#undef FXGRAPH_PACKED

}  // namespace

std::span<const OperatorSource> own_operators() { return kOwnOperators; }

}  // namespace fx
