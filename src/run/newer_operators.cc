// Operators of ATen that came after LibTorch 1.13.
#include <fxgraph/run/operator_sources.h>

namespace fx {

namespace {

constexpr const char* kSqueeze = R"(
def body(self: Tensor, dim: List[int]) -> Tensor:
    result = self
    first = 0
    last = -1
    for d in dim:
        first = min(first, d)
        last = max(last, d)
    if first < 0 and last >= 0:
        positions: List[int] = []
        for d in dim:
            positions.append(d + self.dim() if d < 0 else d)
        positions = sorted(positions)
        for i in range(len(dim)):
            result = result.squeeze(positions[len(dim) - 1 - i])
    else:
        for i in range(last + 1):
            if last - i in dim:
                result = result.squeeze(last - i)
        for i in range(-first):
            if first + i in dim:
                result = result.squeeze(first + i)
)";

const OperatorSource kNewerOperators[] = {
    {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     R"(
def body(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    x = self
    if dtype is not None:
        x = self.to(dtype)
    masked = torch.all(x == float("-inf"), dim, True)
    return torch.softmax(x.masked_fill(masked, 0.0), dim).masked_fill(masked, 0.0)
)"},
    // What aten::_scaled_dot_product_attention_math computes; a row that attends to nothing gives zeros.
    {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
     "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     R"(
def body(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
         scale: Optional[float], enable_gqa: bool) -> Tensor:
    k = key
    v = value
    if enable_gqa:
        k = k.repeat_interleave(query.size(-3) // key.size(-3), -3)
        v = v.repeat_interleave(query.size(-3) // value.size(-3), -3)
    root = 0.0
    sign = 1.0
    if scale is None:
        root = torch.sqrt(1.0 / torch.sqrt(float(query.size(-1))))
    else:
        root = torch.sqrt(torch.fabs(scale))
        if scale < 0.0:
            sign = -1.0
    scores = torch.matmul(query * (root * sign), (k * root).transpose(-2, -1))
    if is_causal:
        allowed = torch.ones([query.size(-2), k.size(-2)], dtype=11, device=query.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), float("-inf"))
    if attn_mask is not None:
        chooses = int(attn_mask.dtype == 11)
        hidden = torch.eq(attn_mask * chooses + (1 - chooses), 0)
        scores = scores + (attn_mask * (1 - chooses)).to(scores.dtype).masked_fill(hidden, float("-inf"))
    masked = torch.all(scores == float("-inf"), -1, True)
    weights = torch.softmax(scores.masked_fill(masked, 0.0), -1).masked_fill(masked, 0.0)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.matmul(weights, v)
)"},
    {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
)"},
    {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], training: bool, momentum: float,
         eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)
)"},
    {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
     "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
)"},
    {"_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
     "Tensor running_var_out)",
     R"(
def body(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor,
         training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    mean = running_mean.clone()
    var = running_var.clone()
    result, saved_mean, saved_var = torch.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps)
    return result, saved_mean, saved_var, mean, var
)"},
    {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
     R"(
def body(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims: List[int] = []
    for i in range(len(normalized_shape)):
        dims.append(i - len(normalized_shape))
    small = 0.0
    if eps is not None:
        small = eps
    else:
        small = 1.1920928955078125e-07 - (1.1920928955078125e-07 - 2.220446049250313e-16) * int(input.dtype == 7)
    x = input.to(torch.promote_types(input.dtype, 6))
    result = (x * torch.rsqrt(torch.mean(x.pow(2), dims, True) + small)).to(input.dtype)
    if weight is not None:
        result = result * weight
    return result
)"},
    {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", kSqueeze, "    return result\n"},
    {"squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", kSqueeze, "    return result.clone()\n"},
    {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     R"(
def body(self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims = dim
    return torch.sum(self != 0, dims, keepdim) > 0
)"},
    {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     R"(
def body(self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims = dim
    return torch.sum(self == 0, dims, keepdim) == 0
)"},
    {"empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     R"(
def body(size: List[int], physical_layout: List[int], dtype: Optional[int], layout: Optional[int],
         device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    sizes: List[int] = []
    back: List[int] = [0 for i in size]
    for i in range(len(physical_layout)):
        sizes.append(size[physical_layout[i]])
        back[physical_layout[i]] = i
    return torch.empty(sizes, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory).permute(back)
)"},
    {"rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
     "bool "
     "training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
     R"(
def body(self: Tensor, noise: Tensor, lower: number, upper: number, training: bool,
         generator: Any) -> Tuple[Tensor, Tensor]:
    drawn = noise.clone()
    return torch.rrelu_with_noise(self, drawn, lower, upper, training), drawn
)"},
    {"_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
     R"(
def body(self: Tensor, weight: Tensor) -> Tensor:
    return torch.where(self > 0, self, weight * self)
)"},
    {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     R"(
def body(self: Tensor, indices: List[Optional[Tensor]]) -> Tensor:
    return torch.index(self, indices)
)"},
    {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     R"(
def body(self: Tensor, indices: List[Optional[Tensor]], values: Tensor, accumulate: bool) -> Tensor:
    return torch.index_put(self, indices, values, accumulate)
)"},
    {"_is_all_true(Tensor self) -> Tensor", "def body(self: Tensor) -> Tensor:\n    return torch.all(self)\n"},
    {"_is_any_true(Tensor self) -> Tensor", "def body(self: Tensor) -> Tensor:\n    return torch.any(self)\n"},
    {"_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
     "def body(self: Tensor, size: List[int]) -> Tensor:\n    return self.reshape(size).clone()\n"},
    {"_int_mm(Tensor self, Tensor mat2) -> Tensor",
     "def body(self: Tensor, mat2: Tensor) -> Tensor:\n    return torch.mm(self.to(3), "
     "mat2.to(3))\n"},
    {"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     R"(
def body(self: Tensor, size: int, fill_value: int) -> Tensor:
    found = torch.nonzero(self)[:size]
    missing = torch.full([size - found.size(0), found.size(1)], fill_value, dtype=4, device=self.device)
    return torch.cat([found, missing])
)"},
};

}  // namespace

std::span<const OperatorSource> newer_operators() { return kNewerOperators; }

}  // namespace fx
