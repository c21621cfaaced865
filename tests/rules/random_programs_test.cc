// Random programs from the vocabulary of the rules: optimize keeps what they compute, done once is done, and what the
// rewriter did can be undone to the letter. Views, Identities, Concat, Linear, Norms, Activations all take part.
// FXGRAPH_RANDOM_PROGRAMS is how many; without it as many as take a few seconds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/text/print.h>
#include "tests/support/night.h"

namespace fx::random_programs_test {

constexpr std::int64_t kSize = 3;

std::uint64_t number_of_programs(std::uint64_t usual) {
  const char* wanted = std::getenv("FXGRAPH_RANDOM_PROGRAMS");
  return wanted ? std::strtoull(wanted, nullptr, 10) : usual;
}

/// From 5 to 200 operators.
std::size_t operators_of(std::uint64_t seed) { return 5 + seed * 37 % 196; }

/// Operators that keep a square matrix of floats what it is.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {}

  Graph make(std::size_t operators) {
    values_ = {&graph_.placeholder("x"), &graph_.placeholder("y"), &graph_.get_attr("w"), &graph_.get_attr("v")};
    for (std::size_t i = 0; i < operators; ++i) values_.push_back(&step());
    graph_.output(Argument::tuple({*values_.back(), pick()}));
    return std::move(graph_);
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  /// Mostly what was made last, so that chains arise.
  Node& pick() {
    const std::size_t back = below(3) ? std::min<std::size_t>(values_.size(), 3) : values_.size();
    return *values_[values_.size() - 1 - below(back)];
  }
  Argument number() {
    constexpr std::array<double, 7> kNumbers = {0.0, 1.0, 2.0, 0.5, 3.0, -1.0, 1.5};
    const double value = kNumbers[below(kNumbers.size())];
    return below(2) ? Argument(value) : Argument(static_cast<std::int64_t>(value));
  }
  Node& call(std::string_view target, std::vector<Argument> args) { return graph_.call_function(target, args); }

  Node& step() {
    constexpr std::array kUnary = {"aten::neg",        "aten::relu",      "aten::abs",    "aten::sigmoid",
                                   "aten::tanh",       "aten::clone",     "aten::detach", "aten::gelu",
                                   "aten::silu",       "aten::hardswish", "aten::t",      "aten::sin",
                                   "aten::hardsigmoid"};
    constexpr std::array kBinary = {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor",
                                    "aten::mm",         "aten::matmul",     "aten::linear"};
    constexpr std::array kScalar = {"aten::add.Scalar", "aten::sub.Scalar", "aten::mul.Scalar", "aten::add.Tensor",
                                    "aten::mul.Tensor"};
    Node& x = pick();
    const std::int64_t dim = below(2) ? 0 : -1;
    const auto sizes = [](std::vector<Argument> list) { return Argument::list(list); };
    switch (below(16)) {
      case 0:
      case 1:
      case 2: return call(kUnary[below(kUnary.size())], {x});
      case 3:
      case 4: return call(kBinary[below(kBinary.size())], {x, pick()});
      case 5:
      case 6: return call(kScalar[below(kScalar.size())], {x, number()});
      case 7: return call("aten::permute", {x, below(2) ? sizes({1, 0}) : sizes({0, 1})});
      case 8: return call("aten::transpose.int", {x, dim, 1 - below(2) ? 1 : -2});
      case 9: return call("aten::reshape", {call("aten::reshape", {x, sizes({-1})}), sizes({kSize, kSize})});
      case 10: return call("aten::squeeze.dim", {call("aten::unsqueeze", {x, dim}), dim});
      case 11: return call("aten::dropout", {x, 0.5, false});
      case 12: {
        Node& parts = call("aten::chunk", {x, kSize, dim});
        std::vector<Argument> list;
        for (std::int64_t i = 0; i < kSize; ++i) list.emplace_back(call("operator.getitem", {parts, i}));
        return call("aten::cat", {Argument::list(list), dim});
      }
      case 13: return call("aten::cat", {sizes({call("aten::slice.Tensor", {x, 0, 0, INT64_MAX, 1})}), dim});
      case 14: return call("aten::softmax.int", {x, dim});
      default: return call("aten::layer_norm", {x, sizes({kSize}), {}, {}, 0.1});  // of constants, too
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Node*> values_;
};

GraphModule::Attributes attributes() {
  at::manual_seed(7);
  return {{"w", at::randn({kSize, kSize})}, {"v", at::randn({kSize, kSize})}};
}

const std::vector<TensorInfo> kInputs = {TensorInfo{.sizes = {kSize, kSize}}, TensorInfo{.sizes = {kSize, kSize}}};

TEST(RandomPrograms, OptimizeKeepsThemAndIsDoneAtOnce) {
  const GraphModule::Attributes weights = attributes();
  const std::uint64_t programs = number_of_programs(testing::by_night(250));
  std::size_t applied = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    GraphModule original(weights, RandomProgram(seed).make(operators_of(seed)));
    const auto optimized = original.clone_graph_module();
    const bool take_apart = seed % 4 == 0;
    const OptimizeOptions options{
        .rules = {take_apart ? "decomposition" : "inference", take_apart ? "simplify" : "fusion"}, .inputs = kInputs};
    applied += optimize(*optimized, options).applied();
    at::manual_seed(seed);
    const std::vector<c10::IValue> inputs = {at::randn({kSize, kSize}), at::randn({kSize, kSize})};
    // Differences of equal numbers leave rounding errors: magnitudes below a tenth count as that.
    const double differs = relative_difference(original.run(inputs), optimized->run(inputs), 0.1);
    ASSERT_LE(differs, 1e-3) << "seed " << seed << "\n"
                             << print_graph(original.graph()) << print_graph(optimized->graph());
    const std::string once = print_graph(optimized->graph());
    optimize(*optimized, options);
    ASSERT_EQ(print_graph(optimized->graph()), once) << "seed " << seed;
  }
  EXPECT_GT(applied, 20 * programs);
}

TEST(RandomPrograms, WhatWasRewrittenCanBeUndone) {
  RuleSet set;
  for (const rules::OptimizeRule* rule : rules::select({"inference", "fusion"})) {
    for (const Rule& rewrite : rule->rules()) set.add(rewrite);
  }
  const std::uint64_t programs = number_of_programs(testing::by_night(800));
  std::size_t applied = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    Graph graph = RandomProgram(seed).make(operators_of(seed));
    const std::string before = print_graph(graph);
    Rewriter rewriter(graph);
    applied += rewrite_to_fixed_point(rewriter, set).applied;
    graph.lint();
    rewriter.rollback();
    ASSERT_EQ(print_graph(graph), before) << "seed " << seed;
  }
  EXPECT_GT(applied, 3 * programs);
}

}  // namespace fx::random_programs_test
