// Programs that tracers get wrong, as a table: element types, empty tensors, what operators are told of their inputs.
#include "tests/trace/honest_case.h"

namespace fx::honest_kinds_test {

using testing::Bag;
using torch::Tensor;
using torch::indexing::Slice;
namespace F = torch::nn::functional;

struct Case {
  const char* name;
  const char* want;  ///< how the verdict begins; empty: right or refused
  std::vector<testing::Inputs> (*inputs)();
  Bag::Step step;
  bool training = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class HonestKinds : public ::testing::TestWithParam<Case> {};

TEST_P(HonestKinds, AreRightOrRefused) {
  torch::manual_seed(1);
  const Case& c = GetParam();
  testing::expect_honest({c.name, c.want, c.step, c.training}, c.inputs());
}

std::vector<testing::Inputs> of(torch::ScalarType type) {
  return {{torch::rand({2, 3}).mul(9).to(type)}, {torch::rand({5, 3}).mul(9).to(type)}};
}
std::vector<testing::Inputs> halves() { return of(torch::kHalf); }
std::vector<testing::Inputs> bfloats() { return of(torch::kBFloat16); }
std::vector<testing::Inputs> doubles() { return of(torch::kDouble); }
std::vector<testing::Inputs> longs() { return of(torch::kLong); }
std::vector<testing::Inputs> bytes() { return of(torch::kByte); }
std::vector<testing::Inputs> floats() { return of(torch::kFloat); }
std::vector<testing::Inputs> bools() { return {{torch::rand({2, 3}) > 0.5}, {torch::rand({5, 3}) > 0.5}}; }
std::vector<testing::Inputs> complexes() {
  return {{torch::rand({2, 3}, torch::kComplexFloat)}, {torch::rand({5, 3}, torch::kComplexFloat)}};
}
std::vector<testing::Inputs> empties() { return {{torch::rand({0, 3})}, {torch::rand({2, 3})}}; }
std::vector<testing::Inputs> to_empty() { return {{torch::rand({2, 3})}, {torch::rand({0, 3})}}; }
std::vector<testing::Inputs> scalars() { return {{torch::rand({})}, {torch::rand({})}}; }
std::vector<testing::Inputs> transposed() { return {{torch::rand({4, 3})}, {torch::rand({3, 4}).t()}}; }
std::vector<testing::Inputs> other_types() {
  return {{torch::rand({2, 3})}, {torch::rand({2, 3}, torch::kDouble)}, {torch::rand({2, 3}).to(torch::kBFloat16)}};
}

const std::vector<Case>& types() {
  static const auto& table = *new std::vector<Case>{
      {"half_elementwise", "right", halves, [](Bag&, Tensor x) { return torch::cat({x * 2, x + x}).view({-1}); }},
      {"half_to_float", "right", halves, [](Bag& m, Tensor x) { return x.to(torch::kFloat).matmul(m.w).to(x.dtype()); }},
      {"half_sum", "right", halves, [](Bag&, Tensor x) { return x.sum(1) / x.size(0); }},
      {"half_by_type_as", "right", halves, [](Bag& m, Tensor x) { return x * m.w.sum(0).type_as(x); }},
      {"bfloat_linear", "right", bfloats,
       [](Bag& m, Tensor x) { return torch::linear(x, m.w.to(torch::kBFloat16)).relu(); }},
      {"bfloat_softmax", "right", bfloats, [](Bag&, Tensor x) { return torch::softmax(x, -1) * x.size(0); }},
      {"bfloat_norm", "right", bfloats,
       [](Bag&, Tensor x) { return F::layer_norm(x, F::LayerNormFuncOptions({3})).to(torch::kFloat); }},
      {"double_promotes", "right", doubles, [](Bag& m, Tensor x) { return x * m.w.sum(0) + m.running; }},
      {"long_divides", "right", longs, [](Bag&, Tensor x) { return x / 2 + x.div(2, "floor") + (x % 3) * 2.5; }},
      {"long_sums", "right", longs, [](Bag&, Tensor x) { return x.sum() + x.cumsum(1).max(); }},
      {"long_indexes", "right", longs, [](Bag& m, Tensor x) { return m.w.index_select(0, (x % 3).flatten()); }},
      {"long_embeds", "right", longs, [](Bag& m, Tensor x) { return F::embedding(x % 3, m.w).sum(1); }},
      {"long_one_hot", "", longs, [](Bag&, Tensor x) { return torch::one_hot(x); }},
      {"long_one_hot_of_classes", "right", longs, [](Bag&, Tensor x) { return torch::one_hot(x, 10).to(torch::kFloat); }},
      {"long_bincount", "", longs, [](Bag&, Tensor x) { return torch::bincount(x.flatten()); }},
      {"long_histogram_with_length", "", longs, [](Bag&, Tensor x) { return torch::bincount(x.flatten(), {}, 12); }},
      {"long_bits", "right", longs, [](Bag&, Tensor x) { return (x.__and__(3)).bitwise_or(x.__lshift__(2)).bitwise_not(); }},
      {"long_repeats", "", longs, [](Bag&, Tensor x) { return torch::repeat_interleave(x.flatten()); }},
      {"long_scatter", "right", longs,
       [](Bag&, Tensor x) { return torch::zeros({x.size(0), 10}, torch::kLong).scatter_(1, x, 1).sum(0); }},
      {"byte_normalises", "right", bytes, [](Bag&, Tensor x) { return (x.to(torch::kFloat) / 255 - 0.5) / 0.25; }},
      {"byte_wraps", "right", bytes, [](Bag&, Tensor x) { return x * 60 + x; }},
      {"bool_masks", "right", bools,
       [](Bag& m, Tensor x) { return m.running.expand({x.size(0), 3}).masked_fill(x, -1e9).softmax(1); }},
      {"bool_selects", "", bools, [](Bag&, Tensor x) { return torch::arange(x.numel()).view_as(x).index({x}) * 2; }},
      {"bool_where", "right", bools, [](Bag& m, Tensor x) { return torch::where(x, m.running, -m.running).sum(0); }},
      {"bool_counts", "right", bools, [](Bag&, Tensor x) { return x.sum(1) + x.logical_not().any(1); }},
      {"bool_subtracts", "", bools, [](Bag&, Tensor x) { return 1 - x.to(torch::kLong); }},
      {"complex_parts", "right", complexes,
       [](Bag&, Tensor x) { return torch::real(x) * torch::imag(x) + x.abs() + torch::angle(x); }},
      {"complex_conjugates", "", complexes, [](Bag&, Tensor x) { return (x * x.conj()).sum(0); }},
      {"complex_as_real", "", complexes, [](Bag&, Tensor x) { return torch::view_as_real(x).sum(-1); }},
      {"complex_times_number", "", complexes,
       [](Bag&, Tensor x) { return x * c10::complex<double>(0, 1) + x; }},
      {"real_fourier", "right", floats,
       [](Bag&, Tensor x) { return torch::fft_irfft(torch::fft_rfft(x, c10::nullopt, 0), x.size(0), 0); }},
      {"sparse_inside", "", floats, [](Bag& m, Tensor x) { return torch::mm(x.to_sparse(), m.w); }},
      {"sparse_result", "", floats, [](Bag&, Tensor x) { return x.to_sparse().to_dense() * 2; }},
      {"quantised_inside", "", floats,
       [](Bag&, Tensor x) { return torch::quantize_per_tensor(x, 0.1, 10, torch::kQUInt8).dequantize(); }},
      // ── Other types than the example's
      {"branch_on_type", "", other_types,
       [](Bag&, Tensor x) { return x.scalar_type() == torch::kFloat ? x * 2 : x * 3; }},
      {"factory_with_options", "", other_types, [](Bag&, Tensor x) { return x.sum(0) + torch::ones({3}, x.options()); }},
      {"back_to_type", "", other_types,
       [](Bag&, Tensor x) { return x.to(torch::kFloat).softmax(1).to(x.scalar_type()); }},
      {"smallest_of_type", "", other_types,
       [](Bag&, Tensor x) {
         const double least = x.scalar_type() == torch::kDouble ? -1e300 : -1e4;
         return x.masked_fill(x > 0.5, least);
       }},
      {"type_free", "", other_types, [](Bag&, Tensor x) { return torch::softmax(x, 1) * 2 + x.mean(); }},
      {"like", "", other_types, [](Bag&, Tensor x) { return torch::ones_like(x) + x.new_zeros({3}); }},
      // ── Empty and small
      {"from_empty", "", empties, [](Bag& m, Tensor x) { return x.matmul(m.w).sum(0); }},
      {"to_empty", "", to_empty, [](Bag& m, Tensor x) { return torch::cat({x.matmul(m.w), m.running.unsqueeze(0)}); }},
      {"scalar", "right", scalars, [](Bag& m, Tensor x) { return x * m.w + x.numel() + x.dim(); }},
      // ── Layout
      {"strides_are_asked", "", transposed,
       [](Bag&, Tensor x) { return x.as_strided({x.size(0) - 1, x.size(1)}, {x.stride(0), x.stride(1)}, 1) * 2; }},
      {"stride_as_number", "", transposed, [](Bag&, Tensor x) { return x * static_cast<double>(x.stride(0)); }},
      {"branch_on_contiguous", "", transposed,
       [](Bag&, Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }},
      {"contiguous_when_needed", "", transposed,
       [](Bag&, Tensor x) { return (x.is_contiguous() ? x : x.contiguous()).view({-1}) * 2; }},
      {"as_strided_by_hand", "", transposed, [](Bag&, Tensor x) { return x.as_strided({2, 2}, {1, 2}) + 1; }},
      {"view_of_what_may_not_be", "", transposed, [](Bag&, Tensor x) { return x.view({-1}) * 2; }},
      {"reshape_of_any", "right", transposed, [](Bag&, Tensor x) { return x.reshape({-1}) * 2; }},
      {"written_through_a_view", "right", transposed,
       [](Bag&, Tensor x) {
         x.t().select(0, 1).mul_(2);
         return x.narrow(0, 1, 2) + 0;
       }},
      {"written_through_reshape", "", transposed,
       [](Bag&, Tensor x) {
         x.reshape({-1}).add_(1);
         return x * 1;
       }},
      {"written_through_flatten_of_own", "", floats,
       [](Bag&, Tensor x) {
         Tensor y = x.t() * 1;
         y.flatten().fill_(3);
         return y;
       }},
      {"overlapping_write", "", floats,
       [](Bag&, Tensor x) {
         Tensor y = x.clone();
         y.narrow(1, 0, 2).copy_(y.narrow(1, 1, 2).clone());
         return y;
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Kinds, HonestKinds, ::testing::ValuesIn(types()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::honest_kinds_test
