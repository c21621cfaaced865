// A program that a rewrite once changed, and what a caller can see of it. Run twice before and after, with the results
// written to in between, as a caller may; what comes out, what the inputs hold and the next call must agree.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::testing {

struct NeverWrongCase {
  const char* name;
  std::string graph;  ///< after `graph():`, one node a line
  std::vector<at::Tensor> inputs;
  GraphModule::Attributes attributes{};
  std::vector<std::string> rules{};
  bool shapes = true;               ///< optimize knows the inputs' shapes
  std::vector<at::Tensor> other{};  ///< inputs of other sizes to compare on too; a program may refuse them
};

at::Tensor numbers(std::vector<std::int64_t> sizes, double first = -1.5);

/// Optimizes the program and compares all that can be seen.
void check_never_wrong(const NeverWrongCase& one, bool may_refuse_others = true);
/// The same for a module.
void check_never_wrong(const NeverWrongCase& one, const GraphModule& before, bool may_refuse_others = true);

/// The program of one input, x.
std::string with_inputs(const char* text);

}  // namespace fx::testing
