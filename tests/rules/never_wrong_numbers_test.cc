// Programs that a rewrite once changed by their numbers: dimensions counted from behind, exponents near a whole one,
// sums that nearly cancel, sizes that go together without being equal.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/rules/never_wrong.h"

namespace fx::rules::never_wrong_numbers_test {

using testing::check_never_wrong;
using testing::numbers;
using testing::with_inputs;

TEST(NeverWrongNumbers, AttentionByOtherDimensions) {
  const auto attention = [](const std::string& a, const std::string& b) {
    return "%q = placeholder[target=q]\n%k = placeholder[target=k]\n%v = placeholder[target=v]\n"
           "%t = call_function[target=aten::transpose.int](args = (%k, " +
           a + ", " + b + "))\n" +
           R"(%s = call_function[target=aten::matmul](args = (%q, %t))
%m = call_function[target=aten::mul.Scalar](args = (%s, 0.5))
%p = call_function[target=aten::softmax.int](args = (%m, -1))
%o = call_function[target=aten::matmul](args = (%p, %v))
return o)";
  };
  for (const std::int64_t rank : {3, 4}) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 4);
    for (std::int64_t a = -rank; a < rank; ++a) {
      for (std::int64_t b = -rank; b < rank; ++b) {
        check_never_wrong({"attention",
                           attention(std::to_string(a), std::to_string(b)),
                           {numbers(sizes) * 0.1, numbers(sizes, 3).sin(), numbers(sizes, 1).cos()},
                           {},
                           {"recognise-attention"}});
      }
    }
  }
}

TEST(NeverWrongNumbers, PowersOfNegativeNumbers) {
  const at::Tensor x = at::tensor({-1.0, 0.5, 2.0, -3.0}).to(at::kFloat).view({2, 2});
  for (const char* exponent : {"3", "3.0", "3.0000001", "2.999999"}) {
    check_never_wrong(
        {"gelu",
         with_inputs((std::string("%p = call_function[target=aten::pow.Tensor_Scalar](args = (%x, ") + exponent +
                      R"())
%c = call_function[target=aten::mul.Scalar](args = (%p, 0.044715))
%s = call_function[target=aten::add.Tensor](args = (%x, %c))
%r = call_function[target=aten::mul.Scalar](args = (%s, 0.79788456))
%t = call_function[target=aten::tanh](args = (%r,))
%e = call_function[target=aten::add.Scalar](args = (%t, 1))
%h = call_function[target=aten::mul.Scalar](args = (%x, 0.5))
%o = call_function[target=aten::mul.Tensor](args = (%h, %e))
return o)")
                         .c_str()),
         {x}});
  }
  for (const char* exponent : {"2", "2.0", "2.000001"}) {
    check_never_wrong({"layer norm",
                       with_inputs((std::string(R"(%m = call_function[target=aten::mean.dim](args = (%x, [-1], True))
%c = call_function[target=aten::sub.Tensor](args = (%x, %m))
%p = call_function[target=aten::pow.Tensor_Scalar](args = (%c, )") +
                                    exponent + R"())
%v = call_function[target=aten::mean.dim](args = (%p, [-1], True))
%e = call_function[target=aten::add.Scalar](args = (%v, 1e-05))
%r = call_function[target=aten::sqrt](args = (%e,))
%o = call_function[target=aten::div.Tensor](args = (%c, %r))
return o)")
                                       .c_str()),
                       {x}});
  }
}

TEST(NeverWrongNumbers, SumsThatTheInputNearlyCancels) {
  for (const auto& [a, b] : {std::pair{"100.0", "2e-06"}, {"2e-06", "100.0"}, {"3", "2"}, {"1000.0", "0.001"}}) {
    const at::Tensor x = at::tensor({-std::stod(a), -std::stod(b), 1.0}).to(at::kFloat);
    check_never_wrong({"sum",
                       with_inputs((std::string("%a = call_function[target=aten::add.Scalar](args = (%x, ") + a +
                                    "))\n%b = call_function[target=aten::add.Scalar](args = (%a, " + b +
                                    "))\n%o = call_function[target=aten::reciprocal](args = (%b,))\nreturn o")
                                       .c_str()),
                       {x}});
  }
}

TEST(NeverWrongNumbers, ExpandedConstantsDecideNoLayout) {
  check_never_wrong({"expanded",
                     with_inputs(R"(%c = get_attr[target=c]
%e = call_function[target=aten::expand](args = (%c, [3, 2]))
%t = call_function[target=aten::t](args = (%x,))
%s = call_function[target=aten::add.Tensor](args = (%e, %t))
%o = call_function[target=aten::as_strided](args = (%s, [6], [1]))
return o)"),
                     {numbers({2, 3})},
                     {{"c", numbers({2}, 10)}}});
}

TEST(NeverWrongNumbers, ColumnsOfAMergedLayerAreReadByElement) {
  for (const char* reader : {"aten::as_strided_copy](args = (%a, [2, 4], [4, 1]))",
                             "aten::_reshape_alias](args = (%a, [2, 2, 2], [4, 2, 1]))",
                             "aten::view_copy](args = (%a, [8]))", "aten::unflatten.int](args = (%a, 0, [1, 2]))"}) {
    check_never_wrong({reader,
                       with_inputs((std::string(R"(%w = get_attr[target=w]
%v = get_attr[target=v]
%a = call_function[target=aten::linear](args = (%x, %w))
%b = call_function[target=aten::linear](args = (%x, %v))
%r = call_function[target=)") + reader +
                                    "\nreturn (r, b)")
                                       .c_str()),
                       {numbers({2, 3})},
                       {{"w", numbers({4, 3}) * 0.1}, {"v", numbers({4, 3}, 2) * 0.1}},
                       {"merge-linears"}});
  }
}

TEST(NeverWrongNumbers, SizesThatGoTogetherAndAreNotEqual) {
  const std::string rest = R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%s = call_function[target=aten::slice.Tensor](args = (%y, 0, 1, 9223372036854775807))
%a = call_function[target=aten::add.Tensor](args = (%x, %s))
)";
  const auto of = [](std::int64_t n) { return std::vector<at::Tensor>{numbers({n, 3}), numbers({n + 1, 3}, 1)}; };
  const std::string squeezed = rest + "%o = call_function[target=aten::squeeze.dim](args = (%a, 0))\nreturn o";
  const std::string reshaped = rest + "%o = call_function[target=aten::reshape](args = (%a, [4, -1]))\nreturn o";
  for (const std::int64_t other : {1, 8}) {
    check_never_wrong({"one more", squeezed, of(4), {}, {}, true, of(other)});
  }
  check_never_wrong({"one more", reshaped, of(4), {}, {}, true, of(8)});
  const std::string twice = R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%d = call_function[target=aten::cat](args = ([%x, %x],))
%a = call_function[target=aten::add.Tensor](args = (%d, %y))
%o = call_function[target=aten::reshape](args = (%a, [4, -1]))
return o)";
  const auto doubled = [](std::int64_t n) { return std::vector<at::Tensor>{numbers({n, 3}), numbers({2 * n, 3}, 1)}; };
  check_never_wrong({"twice", twice, doubled(2), {}, {}, true, doubled(4)});
}

TEST(NeverWrongNumbers, RowsThatAreSeveralSamples) {
  for (const char* rows : {"reshape](args = (%x, [-1, 6]))", "view](args = (%x, [-1, 6]))"}) {
    const std::string spread = with_inputs((R"(%n = call_function[target=aten::size.int](args = (%x, 0))
%r = call_function[target=aten::)" + std::string(rows) +
                                            R"(
%m = call_function[target=aten::mean.dim](args = (%r, [1], True))
%e = call_function[target=aten::expand](args = (%m, [%n, -1]))
%o = call_function[target=aten::add.Tensor](args = (%e, 1))
return o)")
                                               .c_str());
    check_never_wrong({rows, spread, {numbers({4, 6})}, {}, {}, true, {numbers({2, 3})}});
    check_never_wrong({rows, spread, {numbers({1, 6})}, {}, {}, true, {numbers({2, 3})}});
  }
}

}  // namespace fx::rules::never_wrong_numbers_test
