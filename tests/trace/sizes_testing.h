// What the tests of sizes share: a program traced at one choice of sizes and run at others beside itself.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/text/size_report.h>
#include "tests/trace/trace_testing.h"

namespace fx::testing {

enum class AtSizes { equal, refused, wrong, unprobed };

inline std::ostream& operator<<(std::ostream& out, AtSizes outcome) {
  constexpr const char* kNames[] = {"equal", "refused", "wrong", "unprobed"};
  return out << kNames[static_cast<int>(outcome)];
}

/// Whether a dimension has to stay free; or may be refused at other sizes, if it is not wrong there.
enum class Stays { free, free_or_refused };

/// The largest size in `inputs` of the dimensions that a statement is about: `x[0] = y[1] <= 16`; 0 where none is.
inline std::int64_t largest(const Graph& graph, const SizeStatement& statement,
                            const std::vector<c10::IValue>& inputs) {
  const std::string names = " " + statement.dimensions.substr(0, statement.dimensions.find(',')) + " ";
  const auto placeholders = graph.placeholders();
  std::int64_t result = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensor()) continue;
    const torch::Tensor& input = inputs[i].toTensor();
    for (std::int64_t dim = 0; dim < input.dim(); ++dim) {
      const std::string name = " " + std::string(placeholders[i]->name()) + "[" + std::to_string(dim) + "] ";
      if (names.find(name) != names.npos) result = std::max(result, input.size(dim));
    }
  }
  return result;
}

/// Whether a dimension is larger in the inputs than in the examples and wherever the report says that it was probed.
inline bool is_unprobed(const Graph& graph, const std::vector<c10::IValue>& examples,
                        const std::vector<c10::IValue>& inputs) {
  const SizeReport report(graph);
  return std::ranges::any_of(report.statements(), [&](const SizeStatement& statement) {
    if (statement.probed.empty()) return false;
    return largest(graph, statement, inputs) > std::max(statement.probed.back(), largest(graph, statement, examples));
  });
}

/// Runs the graph beside the program: equal, refused by an assertion on sizes (or by the program itself, too), or
/// wrong. Where `examples` of the trace are given, it may be unprobed: wrong, but only where the report says that the
/// trace did not look so far.
inline AtSizes at_sizes(GraphModule& gm, const std::function<c10::IValue()>& eager,
                        const std::vector<c10::IValue>& inputs, double tolerance = 1e-5,
                        const std::vector<c10::IValue>& examples = {}) {
  c10::IValue expected, found;
  bool eager_fails = false;
  try {
    expected = eager();
  } catch (const std::exception&) {
    eager_fails = true;
  }
  try {
    found = gm.run(inputs);
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.find(" must be ") != std::string::npos || what.find(" must satisfy ") != std::string::npos;
    if (!named && !eager_fails) ADD_FAILURE() << "fails, but not by an assertion: " << what;
    return AtSizes::refused;
  }
  if (eager_fails) return AtSizes::equal;  // the graph drops checks of the program that no operator makes
  const auto same = same_value(found, expected, tolerance);
  if (same) return AtSizes::equal;
  if (!examples.empty() && is_unprobed(gm.graph(), examples, inputs)) return AtSizes::unprobed;
  ADD_FAILURE() << same.message() << '\n' << SizeReport(gm.graph());
  return AtSizes::wrong;
}

/// Traces a function of tensors at the sizes of `examples`, runs it at those of `inputs`.
template <typename Function, typename... Tensors>
AtSizes traced_at(Function function, const std::vector<c10::IValue>& examples, const Tensors&... inputs) {
  const auto gm = symbolic_trace(function, examples);
  gm->graph().lint();
  return at_sizes(*gm, [&]() -> c10::IValue { return function(inputs...); }, {inputs...});
}

/// What each input gets of the sum of squares of the result; undefined for one that decides nothing of it.
inline std::vector<torch::Tensor> gradients_of_squares(
    const std::function<torch::Tensor(const std::vector<c10::IValue>&)>& run, const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> leaves;
  for (const c10::IValue& input : inputs) leaves.emplace_back(input.toTensor().detach().clone().requires_grad_());
  run(leaves).pow(2).sum().backward();
  std::vector<torch::Tensor> result;
  for (const c10::IValue& leaf : leaves) result.push_back(leaf.toTensor().grad());
  return result;
}

/// The graph has the gradients that the program has.
inline void expect_same_gradients(GraphModule& gm,
                                  const std::function<torch::Tensor(const std::vector<c10::IValue>&)>& eager,
                                  const std::vector<c10::IValue>& inputs, double tolerance = 1e-4) {
  const std::vector<torch::Tensor> expected = gradients_of_squares(eager, inputs);
  const auto run = [&](const std::vector<c10::IValue>& leaves) { return gm.run(leaves).toTensor(); };
  const std::vector<torch::Tensor> found = gradients_of_squares(run, inputs);
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    any |= expected[i].defined();
    ASSERT_EQ(found[i].defined(), expected[i].defined()) << "gradient " << i;
    if (expected[i].defined()) {
      EXPECT_TRUE(same_value(found[i], expected[i], tolerance)) << "gradient " << i;
    }
  }
  EXPECT_TRUE(any);
}

inline torch::Tensor image(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return torch::rand({n, c, h, w});
}

}  // namespace fx::testing
