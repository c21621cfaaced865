// Written and read again, as text and as TorchScript, a trace still computes the same.
#pragma once

#include <torch/script.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>
#include "tests/torchscript/saved_and_loaded.h"
#include "tests/trace/trace_testing.h"

namespace fx::testing {

// What the graph names, to build it again from its text.
inline GraphModule::Attributes attributes_of(const GraphModule& gm) {
  GraphModule::Attributes attributes;
  for (const Node& node : gm.graph().nodes()) {
    const std::string path = node.target().str();
    if (node.is(Op::get_attr)) attributes.emplace_back(path, gm.attribute(path));
    if (node.is(Op::call_module)) attributes.emplace_back(path, gm.submodule(path));
  }
  return attributes;
}

inline void expect_same_from_text(const GraphModule& gm, const std::vector<c10::IValue>& inputs,
                                  const c10::IValue& expected) {
  const std::string text = print_graph(gm.graph());
  Graph parsed = parse_graph(text);
  EXPECT_EQ(print_graph(parsed), text);
  GraphModule again(attributes_of(gm), std::move(parsed));
  again.train(gm.is_training());
  EXPECT_TRUE(same_value(again.run(inputs), expected, 1e-6));
}

inline void expect_same_from_torchscript(const GraphModule& gm, const std::vector<c10::IValue>& inputs,
                                         const c10::IValue& expected) {
  torch::jit::Module loaded = saved_and_loaded(gm);
  EXPECT_TRUE(same_value(loaded.forward(inputs), expected, 1e-5));
  EXPECT_TRUE(same_value(from_torchscript(loaded)->run(inputs), expected, 1e-5));
}

inline void expect_round_trips(Trace trace, const std::vector<c10::IValue>& inputs) {
  const auto gm = to_graph_module(std::move(trace));
  const c10::IValue expected = gm->run(inputs);
  try {
    expect_same_from_text(*gm, inputs, expected);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "text: " << error.what() << "\n" << gm->graph();
  }
  try {
    expect_same_from_torchscript(*gm, inputs, expected);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "TorchScript: " << error.what() << "\n" << gm->graph();
  }
}

}  // namespace fx::testing
