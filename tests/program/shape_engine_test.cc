// The engine of shapes beside LibTorch: every operator of the dispatcher is called with arguments drawn by its schema,
// on data, by the engine as the tracer asks it, and by ShapeProp. Where both of them know a shape, all three have it.
// FXGRAPH_FACTS_TRIES is how often each is called.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/shapes/shape_engine.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>
#include "tests/program/drawn_operator.h"
#include "tests/program/every_operator.h"

namespace fx::shape_engine_test {

using testing::DrawnOperator;
using torch::jit::Stack;

// Types and sizes of all tensors. Strides are told by some kernels only.
std::string form_of(const c10::IValue& value) {
  if (value.isTensor()) {
    std::ostringstream out;
    if (!value.toTensor().defined()) return "none ";
    out << value.toTensor().scalar_type() << value.toTensor().sizes() << " ";
    return out.str();
  }
  std::string text;
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) text += form_of(each);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) text += form_of(each);
  }
  return text;
}

std::string form_of(const Stack& stack) {
  std::string text;
  for (const c10::IValue& value : stack) text += form_of(value);
  return text;
}

std::optional<std::string> of_engine(const DrawnOperator& drawn, const TorchOperator& op) {
  std::vector<at::Tensor> metas;
  for (const at::Tensor& value : drawn.values()) metas.push_back(internal::to_meta(value));
  std::optional<Stack> stack = drawn.arguments(op, metas);
  if (!stack) return {};
  internal::ShapeEngine engine;
  internal::OpRecord& record = engine.operators().find(*op.handle);
  if (!record.takes_tensors || !record.all_results_are_tensors || record.shape_depends_on_data ||
      stack->size() != record.arguments.size())
    return {};
  try {
    if (!engine.run(*op.handle, record, *stack)) return {};
  } catch (const c10::Error&) {
    return {};
  }
  return form_of(*stack);
}

std::optional<std::string> of_shape_prop(DrawnOperator& drawn) {
  drawn.graph().output(Argument(drawn.node()));
  GraphModule module;
  module.set_graph(drawn.graph().clone());
  std::vector<c10::IValue> inputs;
  for (const at::Tensor& value : drawn.values()) inputs.emplace_back(value);
  ShapeProp prop(module);
  try {
    prop.propagate(inputs);
  } catch (const std::exception&) {
    return {};
  }
  for (const Node& node : module.graph().nodes()) {
    if (node.is(Op::call_function)) return form_of(prop.value(node));
  }
  return {};
}

// Nothing when the operator does not take the arguments, or nobody knows the shape without them.
std::optional<std::string> try_shapes(const OperatorSchema& schema, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  DrawnOperator drawn(schema, seed);
  const TorchOperator* op = find_torch_operator(schema.target);
  if (!drawn.node() || drawn.values().empty() || !op || !op->handle) return {};
  std::optional<Stack> stack;
  try {
    std::vector<at::Tensor> own;
    for (const at::Tensor& value : drawn.values()) own.push_back(hostile::copy_of(value));
    stack = drawn.arguments(*op, own);
    if (!stack) return {};
    (*op)(*stack);
  } catch (const std::exception&) {
    return {};
  }
  const std::string real = form_of(*stack);
  const std::optional<std::string> engine = of_engine(drawn, *op);
  if (!engine) return {};
  const std::string call = schema.target.str() + " in " + format_node(*drawn.node());
  if (*engine != real) return call + ": LibTorch " + real + ", the engine " + *engine;
  const std::optional<std::string> prop = of_shape_prop(drawn);
  if (prop != real) return call + ": LibTorch " + real + ", ShapeProp " + prop.value_or("fails");
  return "";
}

// Where they are known to differ. Hardly anybody calls one of these by name, but for the last and histogramdd.
const std::set<std::string>& known() {
  static const auto& names = *new std::set<std::string>{
      "aten::_unique",                            // as many as are different: one of zeros, and one of ones
      "aten::_autocast_to_reduced_precision",     // TorchScript's own; asks for the device
      "aten::_new_zeros_with_same_feature_meta",  // forward gradients' own
      "aten::_stack.out",                         // behind stack.out; its kernel for the meta device forgets the shape
      "aten::gradient.scalarrayint",              // reads a spacing for each dimension, behind the end of fewer
      "aten::histogramdd",                        // reads more numbers of bins than it is given
      "aten::_histogramdd_from_bin_cts",          // behind histogramdd, likewise
      "aten::_histogramdd_bin_edges",             // likewise
      "aten::_histogramdd_bin_edges.out",         // likewise
      "aten::isin.Scalar_Tensor",                 // LibTorch's kernel for the meta device; the formula has no keywords
      "aten::_unique.out",                        // of later releases, as the one without out
      "aten::unique_consecutive.out",             // of later releases, likewise
      // Later releases let them write to a tensor of another type, which their kernels for the meta device refuse.
      "aten::linalg_matrix_rank.out",
      "aten::linalg_matrix_rank.out_tol_tensor",
      "aten::linalg_matrix_rank.atol_rtol_float_out",
      "aten::linalg_matrix_rank.atol_rtol_tensor_out",
  };
  return names;
}

TEST(ShapeEngineNight, KnowsWhatOperatorsReturn) {
  install_schema_source();
  at::set_num_threads(1);
  constexpr std::size_t kBatch = 200;
  constexpr std::size_t kMostCrashes = 60;
  const std::vector<Symbol> targets = testing::dispatcher_operators();
  const testing::Findings findings = testing::in_children(targets, kBatch, try_shapes);
  std::ostringstream wrong, crashed;
  for (const std::string& line : findings.wrong) {
    if (!known().contains(line.substr(0, line.find(' ')))) wrong << line;
  }
  for (const std::string& name : findings.crashed) crashed << name << " ";
  std::cout << findings.ran << " of " << targets.size() << " operators were compared, " << findings.wrong.size()
            << " differ; " << findings.crashed.size() << " end the process: " << crashed.str() << "\n";
  EXPECT_EQ(wrong.str(), "");
  EXPECT_LE(findings.crashed.size(), kMostCrashes);
  EXPECT_GT(findings.ran, targets.size() / 4);
}

}  // namespace fx::shape_engine_test
