// Rules that test themselves: is what a rule makes equal to what it replaces, within its promise?
//
//   EXPECT_TRUE(fx::self_test(kDivByConstant).passed());
//   EXPECT_THAT(kDivByConstant, fx::testing::KeepsItsPromise());      // testing/testing.h
//
// Programs come from the rule's pattern and its examples, with every alternative, optional part, operand order and a
// range of literals. They run before and after the rewrite on generated tensors: sizes 0 and 1 among others,
// broadcasting, several element types, transposed, sliced and expanded strides, and values with NaN, infinities and
// both zeros. A program that fails to run before the rewrite says nothing; one that fails after it is a
// counter-example.
//
// Then the same patterns stand among other calls, in hostile programs: values, views and weights are written between
// any two calls, optional arguments are not their defaults, calls are spelt in all ways, weights are tied, results are
// returned, returned twice, share storage, and the caller writes to them. What callers see must stay as it was.
//
// Deterministic for a seed. Costs cases × two runs of the example, and hostile × about ten runs of a small program.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rule.h>

namespace fx {

/// How much is tried, and of what.
struct SelfTestOptions {
  std::uint64_t seed = 1;      ///< the same one draws the same programs and numbers
  std::size_t cases = 400;     ///< programs with inputs to try
  std::size_t hostile = 60;    ///< programs in which what the rule looks for stands among other calls
  std::size_t wanted = 20;     ///< how often the rule must have fired for the test to say something
  bool special_values = true;  ///< NaN, infinities and zeros among the inputs
};

/// What a self-test has found.
struct SelfTestResult {
  std::size_t cases = 0;            ///< programs that ran
  std::size_t applied = 0;          ///< of these, where the rule fired
  std::size_t hostile_applied = 0;  ///< of the hostile ones, where it fired
  std::size_t wanted = 0;           ///< SelfTestOptions::wanted
  /// The smallest found: program, inputs, what came out before and after. Empty when there is none.
  std::string counter_example;

  /// True when the rule fired often enough and never broke its promise.
  bool passed() const { return counter_example.empty() && applied >= wanted; }
};
/// Prints the counts and the counter-example.
std::ostream& operator<<(std::ostream& out, const SelfTestResult& result);

/// Tests one rule; see the top of this file.
SelfTestResult self_test(const Rule& rule, const SelfTestOptions& options = {});

/// The same for rules that compute with the weights of a program: `make` binds them to one. `pattern` and `examples` of
/// what it makes for an empty program are what the tests start from.
SelfTestResult self_test(const std::function<Rule(GraphModule&)>& make, const SelfTestOptions& options = {});

}  // namespace fx
