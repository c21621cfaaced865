#include <fxgraph/matchers/definition_conditions.h>

#include <string>
#include <vector>

namespace fx::internal {

namespace {

constexpr const char* kTurned =
    "let turned(w) = aten::t(w) | aten::transpose.int(w, (0 | -2), (1 | -1)) | "
    "aten::transpose.int(w, (1 | -1), (0 | -2)) | aten::permute(w, [1, 0]) | aten::mT(w)\n";

// x/2 (1 + e), wherever the half stands.
constexpr const char* kGelu =
    "let half_product(x, s) = times(half(x), s) | times(x, half(s)) | half(times(x, s))\n"
    "let gelu(x, e) = half_product(x, plus(e, near(1, 1e-6)))\n";

constexpr const char* kGeluErf =
    "let over_root_of_two(x) = times(x, near(0.70710678, 1e-4)) | over(x, near(1.41421356, 1e-4))\n"
    "return gelu(x, aten::erf(over_root_of_two(x: node)))";

// Products in any order: C++ multiplies 0.044715 * x * x * x from the left.
constexpr const char* kGeluTanh =
    "squared = square(x: node)\n"
    "scaled_x = times(x, near(0.044715, 1e-4))\n"
    "cubed = aten::pow.Tensor_Scalar(x, near(3, 0)) | commutative(aten::mul.Tensor(squared, x))\n"
    "third = times(cubed, near(0.044715, 1e-4)) | times(times(scaled_x, x), x) | times(scaled_x, squared) | "
    "times(x, times(squared, near(0.044715, 1e-4)))\n"
    "rest = plus(times(squared, near(0.044715, 1e-4)) | times(scaled_x, x), near(1, 1e-6))\n"
    "sum = plus(third, x) | times(x, rest)\n"
    "let root(x) = times(x, near(0.79788456, 1e-4))\n"
    "return gelu(x, aten::tanh(root(sum) | times(root(x), rest) | times(x, root(rest))))";

// min(max(x + 3, 0), 6).
constexpr const char* kClampedAtSix =
    "let clamped(t) = aten::clamp(t, near(0, 0), near(6, 1e-6)) | aten::hardtanh(t, near(0, 0), near(6, 1e-6)) | "
    "aten::relu6(t)\n"
    "let sixth(t) = over(t, near(6, 1e-6)) | times(t, near(0.16666666666666666, 1e-12))\n"
    "c = clamped(plus(x: node, near(3, 1e-6)))\n";

}  // namespace

std::vector<Definition> definition_table() {
  using P = Promise;
  const std::string turned = kTurned;
  return {
      {.name = "relu",
       .call = "aten::relu(x)",
       .bodies = {"aten::clamp_min(x, 0)"},
       .found = {"aten::clamp_min(x, near(0, 0))", "aten::clamp(x, near(0, 0))"},
       .promise = P::bit_exact,
       .same_gradient = false},
      {.name = "clamp",
       .call = "aten::clamp(x, lo, hi)",
       .bodies = {"aten::clamp(aten::clamp(x, lo), None, hi)", "aten::clamp_max(aten::clamp_min(x, lo), hi)"},
       .calls = {"aten::clamp(x, lo: float, hi: float)"},
       .holds = has_bounds,
       .promise = P::bit_exact},
      {.name = "hardtanh",
       .call = "aten::hardtanh(x, lo, hi)",
       .bodies = {"aten::clamp(x, lo, hi)"},
       .calls = {"aten::hardtanh(x, lo: float, hi: float)"},
       .holds = has_bounds,
       .promise = P::bit_exact,
       .same_gradient = false},
      {.name = "relu6",
       .call = "aten::relu6(x)",
       .bodies = {"aten::hardtanh(x, 0.0, 6.0)"},
       .found = {"aten::hardtanh(x, near(0, 0), near(6, 0))"},
       .promise = P::bit_exact},
      {.name = "hardsigmoid",
       .call = "aten::hardsigmoid(x)",
       .bodies = {"aten::div.Scalar(aten::clamp(aten::add.Scalar(x, 3), 0, 6), 6)"},
       .found = {kClampedAtSix + std::string("return sixth(c)")}},
      {.name = "hardswish",
       .call = "aten::hardswish(x)",
       .bodies = {"aten::div.Scalar(aten::mul.Tensor(x, aten::clamp(aten::add.Scalar(x, 3), 0, 6)), 6)"},
       .found = {kClampedAtSix + std::string("return times(x, sixth(c)) | sixth(times(x, c))"),
                 "times(x: node, aten::hardsigmoid(x))"}},
      {.name = "silu",
       .call = "aten::silu(x)",
       .bodies = {"aten::mul.Tensor(x, aten::sigmoid(x))"},
       .found = {"times(x: node, aten::sigmoid(x))"}},
      {.name = "mish",
       .call = "aten::mish(x)",
       .bodies = {"aten::mul.Tensor(x, aten::tanh(aten::softplus(x)))"},
       .found = {"times(x: node, aten::tanh(aten::softplus(x)))"}},
      {.name = "glu",
       .call = "aten::glu(x, d)",
       .bodies = {"aten::mul.Tensor(aten::slice.Tensor(x, d, 0, m), aten::sigmoid(aten::slice.Tensor(x, d, m, n)))"},
       .found = {"times(aten::slice.Tensor(x: node, d: int, 0, m: int), aten::sigmoid(aten::slice.Tensor(x, d, m, n: "
                 "int)))"},
       .calls = {"aten::glu(x: node, d: int)"},
       .holds = takes_halves},
      {.name = "leaky_relu",
       .call = "aten::leaky_relu(x, a)",
       .bodies = {"aten::where.self(aten::gt.Scalar(x, 0), x, aten::mul.Scalar(x, a))"},
       .found = {"aten::where.self(aten::gt.Scalar(x: node, near(0, 0)), x, times(x, a: float))"},
       .calls = {"aten::leaky_relu(x, a: literal)"}},
      {.name = "square",
       .call = "aten::square(x)",
       .bodies = {"aten::pow.Tensor_Scalar(x, 2)", "aten::mul.Tensor(x, x)"},
       .found = {"aten::pow.Tensor_Scalar(x: node, near(2, 0))"},
       .promise = P::bit_exact},
      {.name = "sqrt", .call = "aten::sqrt(x)", .bodies = {"aten::pow.Tensor_Scalar(x, 0.5)"}, .promise = P::bit_exact},
      {.name = "rsqrt",
       .call = "aten::rsqrt(x)",
       .bodies = {"aten::reciprocal(aten::sqrt(x))", "aten::pow.Tensor_Scalar(x, -0.5)"},
       .promise = P::approximate},
      {.name = "division",
       .call = "aten::div.Scalar(x, s)",
       .bodies = {"aten::mul.Scalar(x, c)"},
       .found = {"times(x: node, c: float)"},
       .calls = {"over(x: node, s: literal)"},
       .holds = has_inverse,
       .promise = P::reassociates,
       .has_parts = true},
      {.name = "gelu",
       .call = "aten::gelu(x)",
       .bodies = {"aten::mul.Tensor(aten::mul.Scalar(x, 0.5), "
                  "aten::add.Scalar(aten::erf(aten::mul.Scalar(x, 0.7071067811865476)), 1))"},
       .found = {std::string(kGelu) + kGeluErf}},
      {.name = "gelu-tanh",
       .call = "aten::gelu(x, approximate='tanh')",
       .bodies = {"cube = aten::mul.Tensor(aten::mul.Tensor(x, x), x)\n"
                  "sum = aten::add.Tensor(x, aten::mul.Scalar(cube, 0.044715))\n"
                  "t = aten::tanh(aten::mul.Scalar(sum, 0.7978845608028654))\n"
                  "return aten::mul.Tensor(aten::mul.Scalar(x, 0.5), aten::add.Scalar(t, 1))"},
       .found = {std::string(kGelu) + kGeluTanh}},
      {.name = "conversion",
       .call = "aten::to.dtype(x, t)",
       .bodies = {"aten::_to_copy(x, dtype=t)"},
       .calls = {"aten::to.dtype(x: node, t: literal)"},
       .holds = changes_type,
       .promise = P::bit_exact,
       .of_any_type = true},
      {.name = "softmax",
       .call = "aten::softmax.int(x, d)",
       .bodies = {"aten::_softmax(x, d, False)"},
       .calls = {"aten::softmax.int(x, d: int)"},
       .promise = P::bit_exact},
      {.name = "log_softmax",
       .call = "aten::log_softmax.int(x, d)",
       .bodies = {"aten::_log_softmax(x, d, False)"},
       .calls = {"aten::log_softmax.int(x, d: int)"},
       .promise = P::bit_exact},
      {.name = "softmax-dimension",
       .call = "aten::softmax.int(x, e)",
       .bodies = {"aten::softmax.int(x, f)"},
       .found = {"aten::softmax.int(x: node, f: int)"},
       .calls = {"aten::softmax.int(x: node, e: int)"},
       .holds = has_dimension,
       .promise = P::bit_exact},
      {.name = "log_softmax-dimension",
       .call = "aten::log_softmax.int(x, e)",
       .bodies = {"aten::log_softmax.int(x, f)"},
       .found = {"aten::log_softmax.int(x: node, f: int)"},
       .calls = {"aten::log_softmax.int(x: node, e: int)"},
       .holds = has_dimension,
       .promise = P::bit_exact},
      {.name = "layer_norm",
       .call = "aten::layer_norm(x, n, w, b, eps)",
       .bodies = {"operator.getitem(aten::native_layer_norm(x, n, w, b, eps), 0)"},
       .promise = P::bit_exact},
      {.name = "group_norm",
       .call = "aten::group_norm(x, g, w, b, eps)",
       .bodies = {},
       .found = {"operator.getitem(aten::native_group_norm(x, w, b, _, _, _, g, eps), 0)"},
       .promise = P::bit_exact},
      {.name = "batch_norm",
       .call = "aten::batch_norm(x, w, b, m, v, False, mom, eps, False)",
       .bodies = {"operator.getitem(aten::native_batch_norm(x, w, b, m, v, False, mom, eps), 0)",
                  "operator.getitem(aten::_native_batch_norm_legit_no_training(x, w, b, m, v, mom, eps), 0)"},
       .calls = {"aten::batch_norm(x, w, b, m, v, False, mom, eps, _)"},
       .promise = P::bit_exact},
      {.name = "max_pool2d",
       .call = "aten::max_pool2d(x, k, s, p, d, c)",
       .bodies = {"operator.getitem(aten::max_pool2d_with_indices(x, k, s, p, d, c), 0)"},
       .promise = P::bit_exact},
      {.name = "adaptive_avg_pool2d",
       .call = "aten::adaptive_avg_pool2d(x, [1, 1])",
       .bodies = {"aten::mean.dim(x, [-1, -2], True)", "aten::mean.dim(x, [-2, -1], True)",
                  "aten::mean.dim(x, front, True)", "aten::mean.dim(x, turned, True)",
                  "aten::_adaptive_avg_pool2d(x, [1, 1])"},
       .found = {"aten::mean.dim(x, d: literal, True)"},
       .holds = is_global,
       .promise = P::approximate},
      {.name = "conv1d",
       .call = "aten::conv1d(x, w, b, s, p, d, g)",
       .bodies = {"aten::convolution(x, w, b, s, p, d, False, zeros, g)"},
       .found = {"{aten::convolution, aten::_convolution}(x, w, b, s, p, d, False, _, g, ...)"},
       .holds = convolves<1>,
       .promise = P::bit_exact},
      {.name = "conv2d",
       .call = "aten::conv2d(x, w, b, s, p, d, g)",
       .bodies = {"aten::convolution(x, w, b, s, p, d, False, zeros, g)"},
       .found = {"{aten::convolution, aten::_convolution}(x, w, b, s, p, d, False, _, g, ...)"},
       .holds = convolves<2>,
       .promise = P::bit_exact},
      {.name = "conv3d",
       .call = "aten::conv3d(x, w, b, s, p, d, g)",
       .bodies = {"aten::convolution(x, w, b, s, p, d, False, zeros, g)"},
       .found = {"{aten::convolution, aten::_convolution}(x, w, b, s, p, d, False, _, g, ...)"},
       .holds = convolves<3>,
       .promise = P::bit_exact},
      {.name = "transpose",
       .call = "aten::transpose.int(x, -2, -1)",
       .bodies = {"aten::transpose.int(x, -1, -2)", "aten::transpose.int(x, i, j)", "aten::transpose.int(x, j, i)",
                  "aten::permute(x, p)", "aten::mT(x)"},
       .found = {"aten::transpose.int(x: node, a: int, b: int)", "aten::permute(x: node, p: literal)"},
       .holds = swaps_last,
       .promise = P::bit_exact,
       .of_any_type = true},
      {.name = "t",
       .call = "aten::t(x)",
       .bodies = {"aten::transpose.int(x, 0, 1)"},
       .found = {"aten::transpose.int(x: node, (0 | -2), (1 | -1))",
                 "aten::transpose.int(x: node, (1 | -1), (0 | -2))"},
       .holds = is_matrix,
       .promise = P::bit_exact,
       .of_any_type = true},
      {.name = "reshape",
       .call = "aten::reshape(x, s)",
       .bodies = {"aten::view.default(x, s)", "aten::_unsafe_view(x, s)"},
       .promise = P::bit_exact,
       .of_any_type = true,
       .has_parts = true},
      {.name = "flatten",
       .call = "aten::flatten.using_ints(x, a, b)",
       .bodies = {"aten::reshape(x, s)"},
       .found = {"{aten::reshape, aten::view}(x: node, _)"},
       .calls = {"aten::flatten.using_ints(x: node, a: int, b: int)"},
       .holds = merges,
       .promise = P::bit_exact,
       .of_any_type = true,
       .has_parts = true},
      {.name = "matrix-product",
       .call = "aten::matmul(a, b)",
       .bodies = {"aten::mm(a, b)"},
       .calls = {"aten::matmul(a: node, b: node)"},
       .holds = are_matrices,
       .promise = P::bit_exact},
      {.name = "batched-product",
       .call = "aten::matmul(a, b)",
       .bodies = {"aten::bmm(a, b)"},
       .calls = {"aten::matmul(a: node, b: node)"},
       .holds = are_batches,
       .promise = P::bit_exact},
      {.name = "matmul",
       .call = "aten::matmul(a, b)",
       .bodies = {},
       .found = {"let expanded(x) = aten::expand(x, _) | x\n"
                 "let copied(x) = aten::clone(expanded(x), ...) | expanded(x)\n"
                 "let rows(x) = {aten::view, aten::reshape, aten::_unsafe_view}(copied(x), _) | copied(x)\n"
                 "product = aten::bmm(left: rows(a: node), right: rows(b: node))\n"
                 "return {aten::view, aten::_unsafe_view, aten::reshape}(product, _)"},
       .calls = {"aten::matmul(a: node, b: node)"},
       .holds = is_viewed_matmul,
       .promise = P::bit_exact},
      {.name = "linear",
       .call = "aten::linear(x, w, b)",
       .bodies = {"aten::addmm(b, x, aten::t(w))"},
       .found = {turned + "return aten::addmm(b: node, x: node, turned(w: node))"},
       .calls = {"aten::linear(x: node, w: node, b: node)"},
       .holds = is_plain_linear,
       .promise = P::bit_exact},
      {.name = "linear-without-bias",
       .call = "aten::linear(x, w)",
       .bodies = {"aten::matmul(x, aten::t(w))"},
       .found = {turned + "return {aten::mm, aten::matmul}(x: node, turned(w: node))"},
       .calls = {"aten::linear(x: node, w: node)"},
       .holds = weight_is_matrix,
       .promise = P::bit_exact},
      {.name = "linear-and-bias",
       .call = "aten::linear(x, w, b)",
       .bodies = {"aten::add.Tensor(aten::linear(x, w), b)"},
       .found = {"plus(aten::linear(x: node, w: node), b: node)"},
       .calls = {"aten::linear(x: node, w: node, b: node)"},
       .holds = has_row_bias,
       .promise = P::reassociates},
      {.name = "linear-of-rows",
       .call = "aten::linear(x, w, b)",
       .bodies = {},
       .found =
           {"let rows(x) = {aten::view, aten::reshape}(x, _)\n"
            "return {aten::view, aten::reshape, aten::_unsafe_view}(aten::linear(flat: rows(x: node), w: node, b), _)"},
       .calls = {"aten::linear(x: node, w: node, b)"},
       .holds = is_viewed_linear,
       .promise = P::bit_exact},
      {.name = "attention",
       .call = "aten::scaled_dot_product_attention(q, k, v)",
       .bodies = {"aten::matmul(aten::softmax.int(aten::div.Scalar(aten::matmul(q, aten::transpose.int(k, -2, -1)), "
                  "s), -1), v)"},
       .found =
           {"scores = aten::matmul(q: node, aten::transpose.int(k: node, -2, -1))\n"
            "return aten::matmul(aten::softmax.int(over(scores, s: literal) | times(scores, c: literal), -1), v: node)",
            "return aten::matmul(aten::softmax.int(aten::matmul(over(q: node, s: literal) | times(q, c: literal), "
            "aten::transpose.int(k: node, -2, -1)), -1), v: node)"},
       .holds = scales_by_head,
       .has_parts = true},
      {.name = "scaled-scores",
       .call = "aten::mul.Scalar(aten::matmul(a, b), c)",
       .bodies = {"aten::matmul(aten::mul.Scalar(a, c), b)"},
       .found = {"aten::matmul(times(a: node, c: float), b: node)"},
       .calls = {"times(aten::matmul(a: node, b: node), c: float)"},
       .promise = P::reassociates,
       .has_parts = true},
  };
}

}  // namespace fx::internal
