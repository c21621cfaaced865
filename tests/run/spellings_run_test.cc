// What a call in Python's words computes: the overload and the arguments that fx::Call names, by plan, by Interpreter,
// and when a pattern in ATen's words has found it and put it there anew.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include "tests/support/spellings.h"

namespace fx::spellings_run_test {

using Values = std::vector<c10::IValue>;

/// Forms that some operator takes, drawn by turns.
torch::Tensor draw(std::uint64_t at) {
  static const std::vector<std::vector<std::int64_t>> kSizes = {
      {2, 4, 6, 6}, {4, 4}, {4}, {2, 4, 6}, {4, 2, 3, 3}, {2}, {4, 6, 6}, {3, 3, 3}, {}, {2, 4, 6, 6, 6}};
  const std::vector<std::int64_t>& sizes = kSizes[at % kSizes.size()];
  switch (at / kSizes.size() % 4) {
    case 0:
    case 1: return torch::rand(sizes) + 0.25;
    case 2: return torch::randint(0, 2, sizes, torch::kLong);
    default: return torch::rand(sizes) > 0.5;
  }
}

std::optional<c10::IValue> attempt(GraphModule& gm, const Values& inputs, bool interpreted) {
  torch::manual_seed(3);
  Values copies;
  for (const c10::IValue& input : inputs) copies.push_back(input.deepcopy());
  try {
    return interpreted ? Interpreter(gm).run(copies) : gm.run(copies);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    const torch::Tensor x = a.toTensor(), y = b.toTensor();
    return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
           (x.equal(y) || (x.is_floating_point() && x.allclose(y, 0, 0, true)));
  }
  if (a.isTuple() || a.isList()) {
    const auto x = a.isTuple() ? a.toTupleRef().elements().vec() : a.toListRef().vec();
    const auto y = b.isTuple() ? b.toTupleRef().elements().vec() : b.isList() ? b.toListRef().vec() : Values();
    return std::ranges::equal(x, y, same);
  }
  return a.isTensor() == b.isTensor() && a == b;
}

/// Values with which the calls run when each is spelt as the operator that fx::Call names; none where none are found.
std::optional<Values> fitting_inputs(GraphModule& spelt, std::size_t count) {
  std::uint64_t state = 88172645463325252ull;
  for (int round = 0; round < 400; ++round) {
    Values inputs;
    for (std::size_t i = 0; i < count; ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      inputs.emplace_back(draw(round < 40 && i == 0 ? static_cast<std::uint64_t>(round) : state % 40));
    }
    if (attempt(spelt, inputs, false)) return inputs;
  }
  return std::nullopt;
}

TEST(SpellingsRun, AsTheOperatorsThatTheyAre) {
  std::size_t ran = 0;
  for (const testing::Spelling& each : testing::all_spellings()) {
    torch::manual_seed(1);
    Graph operators = each.graph.clone();
    normalize_operators(operators);
    GraphModule spelt(std::move(operators)), written(each.graph.clone());
    const std::optional<Values> inputs = fitting_inputs(spelt, each.graph.placeholders().size());
    if (!inputs) continue;
    ++ran;
    const auto expected = attempt(spelt, *inputs, false);
    const auto planned = attempt(written, *inputs, false), interpreted = attempt(written, *inputs, true);
    const std::string what = print_graph(each.graph);
    ASSERT_TRUE(planned && interpreted) << what << (planned ? "interpreted" : "planned");
    EXPECT_TRUE(same(*planned, *expected)) << what << *planned << "\n" << *expected;
    EXPECT_TRUE(same(*interpreted, *expected)) << what << *interpreted << "\n" << *expected;
    // Put there anew in the operator's words.
    Graph rewritten = each.graph.clone();
    ReplaceOptions options;
    options.find.contained = false;
    options.allow_output_aliases = true;
    try {
      if (replace_pattern(rewritten, Pattern(each.pattern), each.pattern, options).applied == 0) continue;
    } catch (const Error& error) {  // a pattern may leave out what a call must have
      if (std::string(error.what()).find("is missing argument") == std::string::npos) throw;
      continue;
    }
    GraphModule anew(std::move(rewritten));
    const auto found = attempt(anew, *inputs, false);
    ASSERT_TRUE(found) << what << print_graph(anew.graph());
    EXPECT_TRUE(same(*found, *expected)) << what << print_graph(anew.graph()) << *found << "\n" << *expected;
  }
  EXPECT_GE(ran, 320u);
}

}  // namespace fx::spellings_run_test
