// The formulas beside the operators themselves, on many drawn calls: what LibTorch returns has the shape, the strides
// and the type of the formula, and what LibTorch refuses has none.
#include <fxgraph/shapes/shape_formulas.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include <fxgraph/run/value.h>
#include "tests/shapes/draw.h"
#include "tests/support/night.h"

namespace fx::internal::shape_formulas_test {

using c10::IValue;
using testing::Draw;
using testing::Ints;
using Arguments = std::vector<IValue>;

Arguments convolution(Draw& d, std::size_t count) {
  const std::int64_t groups = d.any(1, 2), channels = groups * d.any(1, 2);
  Ints weight = {groups * d.any(1, 2), channels / groups + (d.chance(5) ? 1 : 0)};
  for (std::size_t i = 0; i < count; ++i) weight.push_back(d.any(1, 3));
  return {d.image(count, channels),
          at::zeros(weight),
          d.maybe(at::zeros({weight[0]})),
          d.ints(count, 1, 3),
          d.ints(count, 0, 2),
          d.ints(count, 1, 2),
          groups};
}

Arguments transposed(Draw& d, std::size_t count) {
  const std::int64_t groups = d.any(1, 2), channels = groups * d.any(1, 2), each = d.any(1, 2);
  Ints weight = {channels, each};
  for (std::size_t i = 0; i < count; ++i) weight.push_back(d.any(1, 3));
  return {d.image(count, channels),
          at::zeros(weight),
          d.maybe(at::zeros({each * groups})),
          d.ints(count, 1, 3),
          d.ints(count, 0, 1),
          d.ints(count, 0, 1),
          groups,
          d.ints(count, 1, 2)};
}

Arguments batch_norm(Draw& d, std::size_t) {
  const std::int64_t channels = d.any(1, 3);
  const bool training = d.chance(50);
  const auto vector = [&] { return at::ones({channels + (d.chance(3) ? 1 : 0)}); };
  return {d.image(static_cast<std::size_t>(d.any(1, 2)), channels),
          d.maybe(vector()),
          d.maybe(vector()),
          training ? d.maybe(vector()) : IValue(vector()),
          training ? d.maybe(vector()) : IValue(vector()),
          training,
          0.1,
          1e-5,
          false};
}

Arguments max_pool(Draw& d, std::size_t count) {
  return {d.image(count, 2),   d.ints(count, 1, 4), d.chance(30) ? Ints() : d.ints(count, 1, 3),
          d.ints(count, 0, 2), d.ints(count, 1, 2), d.chance(50)};
}

Arguments average_pool(Draw& d, std::size_t count) {
  return {d.image(count, 2), d.ints(count, 1, 4), d.chance(30) ? Ints() : d.ints(count, 1, 3),  d.ints(count, 0, 2),
          d.chance(50),      d.chance(50),        d.chance(10) ? IValue(d.any(0, 2)) : IValue()};
}

Arguments adaptive(Draw& d, std::size_t count) { return {d.image(count, 2), d.ints(count, 0, 5)}; }

Arguments layer_norm(Draw& d, std::size_t) {
  const Ints sizes = {d.any(0, 3), d.any(1, 4), d.any(1, 4)};
  Ints shape(sizes.begin() + d.any(0, 2), sizes.end());
  if (d.chance(5)) shape.back() += 1;
  return {d.tensor(sizes), shape, d.maybe(at::ones(shape)), d.maybe(at::ones(shape)), 1e-5, false};
}

Arguments embedding(Draw& d, std::size_t) {
  const at::Tensor indices =
      at::zeros(d.ints(static_cast<std::size_t>(d.any(1, 3)), 0, 4), d.chance(70)   ? at::kLong
                                                                     : d.chance(70) ? at::kInt
                                                                                    : at::kFloat);
  return {d.tensor({d.any(1, 5), d.any(1, 4)}), indices, -1, false, false};
}

Arguments pointwise(Draw& d, std::size_t) { return {d.image(2, 3)}; }
Arguments hardtanh(Draw& d, std::size_t) { return {d.image(2, 3), -1, 1}; }

Arguments convolution_by_words(Draw& d, std::size_t count) {
  Arguments arguments = convolution(d, count);
  arguments[4] = d.chance(50) ? "same" : "valid";
  if (d.chance(70)) arguments[3] = Ints(count, 1);
  return arguments;
}

Arguments group_norm(Draw& d, std::size_t) {
  const std::int64_t channels = d.any(1, 4);
  return {d.image(static_cast<std::size_t>(d.any(0, 2)), channels),
          d.any(1, 2),
          d.maybe(at::ones({channels + (d.chance(3) ? 1 : 0)})),
          d.maybe(at::ones({channels})),
          1e-5,
          false};
}

Arguments instance_norm(Draw& d, std::size_t) {
  const std::int64_t channels = d.any(1, 3);
  const bool tracks = d.chance(50);
  const IValue statistics = tracks ? IValue(at::ones({channels})) : IValue();
  return {d.image(static_cast<std::size_t>(d.any(1, 3)), channels),
          d.maybe(at::ones({channels})),
          d.maybe(at::ones({channels + (d.chance(3) ? 1 : 0)})),
          statistics,
          statistics,
          !tracks || d.chance(60),
          0.1,
          1e-5,
          false};
}

Arguments pad(Draw& d, std::size_t count) {
  const std::int64_t how = d.any(0, 3);
  return {d.image(count, 3), d.ints(2 * count, d.chance(20) ? -1 : 0, 3), how,
          how == 3 && d.chance(50) ? IValue(0.5) : IValue()};
}

Arguments flip(Draw& d, std::size_t) { return {d.image(2, 3), d.ints(static_cast<std::size_t>(d.any(0, 2)), -4, 3)}; }

Arguments roll(Draw& d, std::size_t) {
  const auto count = static_cast<std::size_t>(d.any(0, 2));
  return {d.image(2, 3), d.ints(std::max<std::size_t>(count, 1), -2, 5), d.ints(count, -4, 3)};
}

Arguments rot90(Draw& d, std::size_t) {
  const at::Tensor image = d.image(2, 3);
  return {d.chance(70) ? image : image.transpose(-1, -2), d.any(-5, 5),
          d.ints(d.chance(90) ? 2 : static_cast<std::size_t>(d.any(0, 3)), -4, 3)};
}

Arguments grid_sampler(Draw& d, std::size_t count) {
  const at::Tensor input = d.image(count, 2);
  Ints grid = {input.size(0)};
  while (grid.size() < count + 1) grid.push_back(d.any(1, 4));
  grid.push_back(static_cast<std::int64_t>(count));
  return {input, d.tensor(grid), d.any(0, 2), d.any(0, 2), d.chance(50)};
}

Arguments where(Draw& d, std::size_t) {
  const at::Tensor a = d.image(1, 3);
  return {at::ones(d.chance(80) ? a.sizes().vec() : Ints{3, 1}, at::kBool), a,
          d.chance(80) ? at::ones_like(a) : d.image(1, 3)};
}

Arguments one_hot(Draw& d, std::size_t) {
  return {at::zeros(d.ints(static_cast<std::size_t>(d.any(0, 3)), 0, 4), at::kLong), d.any(1, 6)};
}

Arguments multinomial(Draw& d, std::size_t) {
  return {at::ones(d.ints(static_cast<std::size_t>(d.any(1, 2)), 1, 5)), d.any(0, 6), d.chance(50), IValue()};
}

// `gates` times the state is what the weights hold.
Arguments recurrent(Draw& d, std::size_t gates) {
  const std::int64_t in = d.any(1, 4), width = d.any(1, 4), layers = d.any(1, 3), ways = d.any(1, 2);
  const std::int64_t batch = d.any(1, 3), steps = d.any(1, 4), rows = static_cast<std::int64_t>(gates) * width;
  const bool batch_first = d.chance(50), has_biases = d.chance(60);
  const at::Tensor state = at::zeros({layers * ways, batch + (d.chance(3) ? 1 : 0), width});
  c10::List<at::Tensor> weights;
  for (std::int64_t i = 0; i < layers * ways; ++i) {
    weights.push_back(at::zeros({rows, i < ways ? in : ways * width}));
    weights.push_back(at::zeros({rows, width + (d.chance(1) ? 1 : 0)}));
    for (int bias = 0; has_biases && bias < 2; ++bias) weights.push_back(at::zeros({rows}));
  }
  const at::Tensor input = d.tensor(batch_first ? Ints{batch, steps, in} : Ints{steps, batch, in});
  const IValue states = gates == 4 ? IValue(c10::List<at::Tensor>({state, at::zeros_like(state)})) : IValue(state);
  return {input, states, weights, has_biases, layers, d.chance(20) ? 0.5 : 0.0, d.chance(50), ways == 2, batch_first};
}

struct Row {
  const char* name;
  const char* overload;
  Arguments (*draw)(Draw&, std::size_t);
  std::size_t count;
};
constexpr Row kRows[] = {{"aten::conv1d", "", convolution, 1},
                         {"aten::conv2d", "", convolution, 2},
                         {"aten::conv3d", "", convolution, 3},
                         {"aten::conv_transpose1d", "", transposed, 1},
                         {"aten::conv_transpose2d", "input", transposed, 2},
                         {"aten::conv_transpose3d", "input", transposed, 3},
                         {"aten::batch_norm", "", batch_norm, 0},
                         {"aten::max_pool1d", "", max_pool, 1},
                         {"aten::max_pool2d", "", max_pool, 2},
                         {"aten::max_pool3d", "", max_pool, 3},
                         {"aten::avg_pool2d", "", average_pool, 2},
                         {"aten::avg_pool3d", "", average_pool, 3},
                         {"aten::adaptive_avg_pool2d", "", adaptive, 2},
                         {"aten::adaptive_avg_pool3d", "", adaptive, 3},
                         {"aten::relu", "", pointwise, 0},
                         {"aten::relu_", "", pointwise, 0},
                         {"aten::hardtanh", "", hardtanh, 0},
                         {"aten::hardtanh_", "", hardtanh, 0},
                         {"aten::hardswish", "", pointwise, 0},
                         {"aten::hardswish_", "", pointwise, 0},
                         {"aten::layer_norm", "", layer_norm, 0},
                         {"aten::embedding", "", embedding, 0},
                         {"aten::conv1d", "padding", convolution_by_words, 1},
                         {"aten::conv2d", "padding", convolution_by_words, 2},
                         {"aten::conv3d", "padding", convolution_by_words, 3},
                         {"aten::group_norm", "", group_norm, 0},
                         {"aten::instance_norm", "", instance_norm, 0},
                         {"aten::abs", "", pointwise, 0},
                         {"aten::relu6", "", pointwise, 0},
                         {"aten::log_sigmoid", "", pointwise, 0},
                         {"aten::_pad_enum", "", pad, 1},
                         {"aten::_pad_enum", "", pad, 2},
                         {"aten::_pad_enum", "", pad, 3},
                         {"aten::flip", "", flip, 0},
                         {"aten::roll", "", roll, 0},
                         {"aten::rot90", "", rot90, 0},
                         {"aten::grid_sampler", "", grid_sampler, 2},
                         {"aten::grid_sampler", "", grid_sampler, 3},
                         {"aten::where", "self", where, 0},
                         {"aten::one_hot", "", one_hot, 0},
                         {"aten::multinomial", "", multinomial, 0},
                         {"aten::lstm", "input", recurrent, 4},
                         {"aten::gru", "input", recurrent, 3},
                         {"aten::rnn_tanh", "input", recurrent, 1},
                         {"aten::rnn_relu", "input", recurrent, 1}};

IValue on_meta(const IValue& value) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> metas;
    for (const at::Tensor& tensor : value.toTensorVector()) metas.push_back(on_meta(tensor).toTensor());
    return metas;
  }
  return value.isTensor() ? IValue(at::empty_strided(value.toTensor().sizes(), value.toTensor().strides(),
                                                     value.toTensor().options().device(at::kMeta)))
                          : value;
}

std::string words(const Arguments& arguments) {
  std::ostringstream out;
  for (const IValue& value : arguments) {
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) out << tensor.sizes() << ", ";
    } else if (value.isTensor()) {
      out << value.toTensor().scalar_type() << value.toTensor().sizes() << value.toTensor().strides() << " ";
    } else {
      out << value << " ";
    }
  }
  return out.str();
}

// Strides of what has one element in a dimension say nothing.
bool same_strides(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return true;
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
    return "";
  } catch (const std::exception& error) {
    return first_line(error);
  }
}

// Some formulas refuse at once what LibTorch refuses when it has computed for long.
struct OfTwoTypes {
  const char *name, *overload;
  Arguments (*arguments)(at::ScalarType a, at::ScalarType b);
};

const OfTwoTypes kOfTwoTypes[] = {
    {"aten::conv2d", "",
     [](at::ScalarType a, at::ScalarType b) {
       return Arguments{at::zeros({1, 2, 5, 4}, a),
                        at::zeros({3, 2, 3, 3}, b),
                        IValue(),
                        Ints{1, 1},
                        Ints{0, 0},
                        Ints{1, 1},
                        std::int64_t{1}};
     }},
    {"aten::conv1d", "",
     [](at::ScalarType a, at::ScalarType b) {
       return Arguments{at::zeros({1, 2, 5}, a), at::zeros({3, 2, 3}, b), IValue(), Ints{1}, Ints{0}, Ints{1},
                        std::int64_t{1}};
     }},
    {"aten::conv_transpose2d", "input",
     [](at::ScalarType a, at::ScalarType b) {
       return Arguments{at::zeros({1, 2, 5, 4}, a),
                        at::zeros({2, 3, 3, 3}, b),
                        IValue(),
                        Ints{1, 1},
                        Ints{0, 0},
                        Ints{0, 0},
                        std::int64_t{1},
                        Ints{1, 1}};
     }},
    {"aten::embedding", "",
     [](at::ScalarType a, at::ScalarType b) {
       return Arguments{at::zeros({7, 3}, a), at::zeros({2, 4}, b), std::int64_t{-1}, false, false};
     }},
};

TEST(ShapeFormulas, RefuseOnlyTypesThatLibTorchRefuses) {
  const at::NoGradGuard no_grad;
  const auto types = {at::kByte, at::kInt, at::kLong, at::kHalf, at::kFloat, at::kDouble, at::kBool, at::kComplexFloat};
  for (const OfTwoTypes& each : kOfTwoTypes) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(each.name, each.overload);
    const std::string target = std::string(each.name) + (*each.overload ? "." : "") + each.overload;
    int refused = 0;
    for (const at::ScalarType a : types) {
      for (const at::ScalarType b : types) {
        torch::jit::Stack stack = each.arguments(a, b);
        Arguments metas;
        for (const IValue& value : stack) metas.push_back(on_meta(value));
        const std::string by_formula = refusal([&] { shapes_by_formula(Symbol(target), metas.data(), metas.size()); });
        refused += !by_formula.empty();
        if (by_formula.empty()) continue;
        EXPECT_NE(refusal([&] { op.callBoxed(&stack); }), "") << target << " of " << a << " and " << b;
      }
    }
    EXPECT_GT(refused, 8) << target;
  }
}

TEST(ShapeFormulas, AreWhatLibTorchReturns) {
  const at::NoGradGuard no_grad;
  for (const Row& row : kRows) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(row.name, row.overload);
    const std::string target = std::string(row.name) + (*row.overload ? "." : "") + row.overload;
    int told = 0, ran = 0;
    for (unsigned seed = 0; seed < (testing::at_night() ? 300 : 60); ++seed) {
      Draw draw(seed);
      const Arguments arguments = row.draw(draw, row.count);
      Arguments metas;
      for (const IValue& value : arguments) metas.push_back(on_meta(value));
      std::vector<at::Tensor> found;
      const std::string refused_by_formula =
          refusal([&] { found = shapes_by_formula(Symbol(target), metas.data(), metas.size()); });
      torch::jit::Stack stack = arguments;
      const std::string refused = refusal([&] { op.callBoxed(&stack); });
      EXPECT_EQ(!refused_by_formula.empty() && refused.empty(), false) << target << ": " << refused_by_formula;
      ran += refused.empty();
      if (found.empty()) continue;
      ++told;
      EXPECT_EQ(refused, "") << target << " of " << words(arguments);
      if (!refused.empty()) continue;
      ASSERT_EQ(found.size(), stack.size()) << target;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const at::Tensor real = stack[i].toTensor();
        EXPECT_EQ(found[i].sizes(), real.sizes()) << target << " of " << words(arguments);
        EXPECT_EQ(found[i].scalar_type(), real.scalar_type()) << target << " of " << words(arguments);
        EXPECT_TRUE(same_strides(found[i], real)) << target << " of " << words(arguments) << real.strides();
      }
    }
    EXPECT_GE(told, ran / 2 + testing::at_night()) << target;  // few draws may be half
  }
}

}  // namespace fx::internal::shape_formulas_test
