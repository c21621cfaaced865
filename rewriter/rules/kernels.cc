#include <fxgraph/rewriter/rules/kernels.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>

namespace fx::rules {

namespace {

struct Trial {
  std::string_view packet;
  at::Tensor (*call)(const at::Tensor& x);  // of sizes [1, 2, 2], and [0, 2, 2]
};

// Operators whose result is of the type of their first argument. Sorted.
constexpr std::array<Trial, 19> kTrials = {{
    {"aten::_scaled_dot_product_attention",
     [](const at::Tensor& x) { return at::matmul(at::softmax(at::matmul(x, x), -1), x); }},
    {"aten::batch_norm",
     [](const at::Tensor& x) {
       const at::Tensor ones = x.new_ones({2});
       return at::batch_norm(x, {}, {}, ones, ones, false, 0.1, 0.1, false);
     }},
    {"aten::celu", [](const at::Tensor& x) { return at::celu(x); }},
    {"aten::elu", [](const at::Tensor& x) { return at::elu(x); }},
    {"aten::gelu", [](const at::Tensor& x) { return at::gelu(x); }},
    {"aten::group_norm", [](const at::Tensor& x) { return at::group_norm(x, 1); }},
    {"aten::hardsigmoid", [](const at::Tensor& x) { return at::hardsigmoid(x); }},
    {"aten::hardswish", [](const at::Tensor& x) { return at::hardswish(x); }},
    {"aten::instance_norm",
     [](const at::Tensor& x) { return at::instance_norm(x, {}, {}, {}, {}, true, 0.1, 0.1, false); }},
    {"aten::layer_norm", [](const at::Tensor& x) { return at::layer_norm(x, {2}); }},
    {"aten::leaky_relu", [](const at::Tensor& x) { return at::leaky_relu(x); }},
    {"aten::log_sigmoid", [](const at::Tensor& x) { return at::log_sigmoid(x); }},
    {"aten::log_softmax", [](const at::Tensor& x) { return at::log_softmax(x, -1); }},
    {"aten::mish", [](const at::Tensor& x) { return at::mish(x); }},
    {"aten::selu", [](const at::Tensor& x) { return at::selu(x); }},
    {"aten::silu", [](const at::Tensor& x) { return at::silu(x); }},
    {"aten::softmax", [](const at::Tensor& x) { return at::softmax(x, -1); }},
    {"aten::softplus", [](const at::Tensor& x) { return at::softplus(x); }},
    {"aten::softshrink", [](const at::Tensor& x) { return at::softshrink(x); }},
}};
static_assert(std::ranges::is_sorted(kTrials, {}, &Trial::packet));

constexpr std::array kTypes = {at::kByte,         at::kChar,          at::kShort, at::kInt,
                               at::kLong,         at::kHalf,          at::kFloat, at::kDouble,
                               at::kComplexFloat, at::kComplexDouble, at::kBool,  at::kBFloat16};

/// `batches`: how many images of numbers; of none, some kernels look at no type.
TypeSet try_types(const Trial& trial, std::initializer_list<std::int64_t> batches) {
  const at::NoGradGuard no_grad;
  TypeSet types;
  for (const at::ScalarType type : kTypes) {
    for (const std::int64_t batch : batches) {
      try {
        if (trial.call(at::ones({batch, 2, 2}, type)).scalar_type() == type) types.add(to_dtype(type));
      } catch (const std::exception&) {
        // It has no kernel for them.
      }
    }
  }
  return types;
}

std::array<TypeSet, kTrials.size()> try_all(std::initializer_list<std::int64_t> batches) {
  std::array<TypeSet, kTrials.size()> known;
  std::ranges::transform(kTrials, known.begin(), [&](const Trial& trial) { return try_types(trial, batches); });
  return known;
}

const Trial* trial_of(std::string_view packet) {
  const auto* at = std::ranges::lower_bound(kTrials, packet, {}, &Trial::packet);
  return at != kTrials.end() && at->packet == packet ? at : nullptr;
}

}  // namespace

bool has_kernel_types(std::string_view packet) { return trial_of(packet) != nullptr; }

TypeSet kernel_types(std::string_view packet) {
  static const auto kKnown = try_all({1});
  return kKnown[static_cast<std::size_t>(trial_of(packet) - kTrials.data())];
}

TypeSet result_types(std::string_view packet) {
  static const auto kKnown = try_all({1, 0});
  return kKnown[static_cast<std::size_t>(trial_of(packet) - kTrials.data())];
}

bool gelu_takes_infinities() {
  static const bool kTakes = [] {
    const at::NoGradGuard no_grad;
    constexpr std::int64_t kVectors = 64;  // some of them, and what is left over
    const auto takes = [](at::ScalarType type) {
      return at::gelu(at::full({kVectors + 1}, std::numeric_limits<double>::infinity(), type))
          .isinf()
          .all()
          .item<bool>();
    };
    return takes(at::kFloat) && takes(at::kDouble) && takes(at::kBFloat16);
  }();
  return kTakes;
}

bool broadcasts_empty_attention() {
  static const bool kBroadcasts = [] {
    const at::NoGradGuard no_grad;
    const TorchOperator* attention = find_torch_operator("aten::scaled_dot_product_attention");
    if (!attention) return true;
    const at::Tensor query = at::zeros({1, 1, 1}), nothing = at::zeros({2, 0, 1});
    torch::jit::Stack stack{query, nothing, nothing, c10::IValue(), 0.0, false, c10::IValue(), false};
    stack.resize(attention->schema->arguments().size());
    (*attention)(stack);
    return stack[0].toTensor().size(0) == 2;
  }();
  return kBroadcasts;
}

}  // namespace fx::rules
