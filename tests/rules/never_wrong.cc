#include "tests/rules/never_wrong.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::testing {

namespace {

using Values = std::vector<c10::IValue>;

void write_to(const c10::IValue& value) {
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) write_to(each);
  } else if (value.isTensor() && value.toTensor().scalar_type() != at::kBool) {
    value.toTensor().add_(1);
  }
}

/// Everything that a caller can see in two calls, the results of the first written to.
Values observe(GraphModule& module, const std::vector<at::Tensor>& given) {
  Values inputs, seen;
  for (const at::Tensor& input : given) inputs.emplace_back(input.clone());
  for (int call = 0; call < 2; ++call) {
    at::manual_seed(3);
    const c10::IValue result = module.run(inputs);
    seen.push_back(copy_of(result));
    write_to(result);
    seen.push_back(copy_of(result));
    for (const c10::IValue& input : inputs) seen.push_back(copy_of(input));
  }
  return seen;
}

void compare(const NeverWrongCase& one, const GraphModule& before, const GraphModule& after,
             const std::vector<at::Tensor>& inputs, bool may_refuse) {
  const auto original = before.clone_graph_module(), changed = after.clone_graph_module();
  const Values expected = observe(*original, inputs);
  Values found;
  try {
    found = observe(*changed, inputs);
  } catch (const std::exception& error) {
    if (!may_refuse) ADD_FAILURE() << error.what() << "\n" << print_graph(after.graph());
    return;
  }
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(relative_difference(expected[i], found[i], 1e-3), 2e-5)
        << one.name << ", observation " << i << ": " << expected[i] << "\nafterwards: " << found[i] << "\n"
        << print_graph(after.graph());
  }
}

}  // namespace

at::Tensor numbers(std::vector<std::int64_t> sizes, double first) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::arange(count, at::kFloat) * 0.75 + first).reshape(sizes);
}

void check_never_wrong(const NeverWrongCase& one, bool may_refuse_others) {
  check_never_wrong(one, GraphModule(one.attributes, parse_graph("graph():\n" + one.graph, one.name)),
                    may_refuse_others);
}

void check_never_wrong(const NeverWrongCase& one, const GraphModule& before, bool may_refuse_others) {
  SCOPED_TRACE(one.name);
  const auto after = before.clone_graph_module();
  OptimizeOptions options{.rules = one.rules};
  for (const at::Tensor& input : one.inputs) {
    if (one.shapes)
      options.inputs.push_back(TensorInfo{.dtype = to_dtype(input.scalar_type()), .sizes = input.sizes().vec()});
  }
  optimize(*after, options);
  compare(one, before, *after, one.inputs, false);
  if (!one.other.empty()) compare(one, before, *after, one.other, may_refuse_others);
}

std::string with_inputs(const char* text) { return std::string("%x = placeholder[target=x]\n") + text; }

}  // namespace fx::testing
