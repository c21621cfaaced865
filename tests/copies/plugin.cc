// What two_copies_test.cc loads several times: works on programs with a copy of fxgraph that is its own. Each function
// returns what was wrong, or an empty text.
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/jit/serialization/import.h>

#include <exception>
#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>

namespace {

// What LibTorch lacks: an operator of fxgraph's own, one of a newer release, and fxgraph::int_pow, which is what runs
// for a power of ints.
constexpr const char* kProgram = R"(graph():
    %x = placeholder[target=x]
    %weight = placeholder[target=weight]
    %n : int = placeholder[target=n]
    %linear = call_function[target=torch.ops.fxgraph.packed_linear.default](args = (%x, %weight))
    %norm = call_function[target=torch.ops.aten.rms_norm.default](args = (%linear, [3]))
    %power = call_function[target=operator.pow](args = (%n, 3))
    %mul = call_function[target=torch.ops.aten.mul.Tensor](args = (%norm, %power))
    return mul
)";

template <typename Action>
const char* wrong_in(Action&& action) {
  static std::string wrong;
  try {
    wrong = action();
  } catch (const fx::Error& error) {
    wrong = error.what();
  } catch (const std::exception& error) {
    wrong = std::string("not an fx::Error: ") + error.what();
  }
  return wrong.c_str();
}

std::string run_save_and_load(const std::string& file) {
  fx::GraphModule module(fx::parse_graph(kProgram));
  const at::Tensor x = at::rand({1, 4}), weight = at::rand({3, 4});
  const at::Tensor result = module.run({x, weight, 2}).toTensor();
  const at::Tensor linear = at::linear(x, weight);
  const at::Tensor expected = linear / linear.square().mean().sqrt() * 8;
  if (!result.allclose(expected)) return "another result";
  fx::save(module, file);
  if (!at::equal(fx::load(file)->run({x, weight, 2}).toTensor(), result)) return "another result when loaded";

  // A LibTorch without fxgraph has the bodies alone.
  const std::string saved = torch::jit::load(file).get_method("forward").graph()->toString();
  if (saved.find("fxgraph::") != std::string::npos) return "a saved program without the bodies of fxgraph's operators";
  const bool lacks_norm = fx::missing_operator_body(fx::Symbol("aten::rms_norm")) != nullptr;
  const bool saved_norm = saved.find("aten::rms_norm") != std::string::npos;
  return lacks_norm == saved_norm ? "a saved program without the bodies of newer operators" : "";
}

std::string trace_one() {
  const auto traced = fx::symbolic_trace([](const at::Tensor& x) { return at::relu(x) + 1; });
  return traced->graph().count(fx::Op::call_function, "aten::relu") == 1 ? "" : "another graph";
}

}  // namespace

extern "C" {

const char* use_programs(const char* file) {
  return wrong_in([file] { return run_save_and_load(file); });
}

const char* trace_program() { return wrong_in(trace_one); }
}
