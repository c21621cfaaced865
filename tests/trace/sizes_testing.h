// What the tests of sizes share: a program traced at one choice of sizes and run at others beside itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fxgraph/text/size_report.h>
#include "tests/trace/trace_testing.h"

namespace fx::testing {

enum class AtSizes { equal, refused, wrong };

inline std::ostream& operator<<(std::ostream& out, AtSizes outcome) {
  return out << (outcome == AtSizes::equal ? "equal" : outcome == AtSizes::refused ? "refused" : "wrong");
}

/// Whether a dimension has to stay free; or may be refused at other sizes, if it is not wrong there.
enum class Stays { free, free_or_refused };

/// Runs the graph beside the program: equal, refused by an assertion on sizes (or by the program itself, too), or
/// wrong.
inline AtSizes at_sizes(GraphModule& gm, const std::function<c10::IValue()>& eager,
                        const std::vector<c10::IValue>& inputs, double tolerance = 1e-5) {
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
  if (!same) ADD_FAILURE() << same.message();
  return same ? AtSizes::equal : AtSizes::wrong;
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
