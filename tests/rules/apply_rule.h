// One rule applied to a program, for tests of what single rules do.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/text/print.h>

namespace fx::testing {

/// Applies one rule to a copy, checks that it computes the same, and returns the copy.
struct Applied {
  std::shared_ptr<GraphModule> module;
  RuleOutcome outcome;
};

inline Applied apply(const std::string& rule, const std::shared_ptr<GraphModule>& original,
                     const std::vector<TensorInfo>& shapes = {}) {
  Applied applied{original->clone_graph_module(), {}};
  applied.module->eval();
  original->eval();
  applied.outcome = optimize(*applied.module, {.rules = {rule}, .inputs = shapes}).rules.front();
  std::vector<c10::IValue> inputs;
  for (const TensorInfo& shape : shapes) inputs.emplace_back(torch::randn(shape.sizes));
  const Verification check = verify_equivalent(*original, *applied.module, {inputs}, 1e-5);
  EXPECT_TRUE(check.equal) << check << "\n" << print_graph(applied.module->graph());
  return applied;
}

inline std::size_t count(const GraphModule& module, const char* target) {
  return module.graph().count(Op::call_function, Symbol(target));
}
inline std::size_t count_modules(const GraphModule& module) {
  std::size_t modules = 0;
  for (const Node& node : module.graph().nodes()) modules += node.is(Op::call_module);
  return modules;
}

inline const std::vector<TensorInfo> kRows = {TensorInfo{.sizes = {5, 4}}};

}  // namespace fx::testing
