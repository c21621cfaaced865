// What reinplace does to a program, checked by running it before and after.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/program/reinplace.h>
#include <fxgraph/shapes/shape_prop.h>
#include "tests/support/names.h"
#include "tests/trace/trace_testing.h"

namespace fx::testing {

struct Reinplaced {
  std::shared_ptr<GraphModule> before, after;
  std::vector<std::string> changed, removed;
  std::map<std::string, std::string> kept;
};

/// What reinplace does; that results, their strides and the inputs are the same is checked here.
inline Reinplaced reinplaced(Graph graph, const std::vector<TensorInfo>& inputs) {
  Reinplaced result{
      std::make_shared<GraphModule>(graph.clone()), std::make_shared<GraphModule>(std::move(graph)), {}, {}, {}};
  ShapeProp prop(*result.after);
  const Shapes shapes = prop.propagate(inputs);
  const ReinplaceReport report = reinplace(*result.after, shapes);
  result.changed = names(report.changed);
  result.removed = report.removed;
  for (const auto& [node, why] : report.kept) result.kept[node->name()] = why;
  result.after->graph().lint();
  std::vector<c10::IValue> one, other;
  torch::manual_seed(7);
  for (const TensorInfo& info : inputs) {
    one.emplace_back(torch::randn(info.sizes));
    other.emplace_back(one.back().toTensor().clone());
  }
  const c10::IValue expected = result.before->run(one), got = result.after->run(other);
  EXPECT_TRUE(same_value(got, expected)) << result.before->graph() << result.after->graph();
  if (expected.isTensor()) {
    EXPECT_EQ(got.toTensor().strides(), expected.toTensor().strides());
  }
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].toTensor().equal(other[i].toTensor()));
  return result;
}

}  // namespace fx::testing
