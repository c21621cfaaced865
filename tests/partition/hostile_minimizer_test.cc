// The minimizer on hostile programs (testing/hostile): nobody is blamed where nothing differs, a fault that is
// planted is found, and the program is left as it was.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/partition/minimizer.h>
#include <fxgraph/text/print.h>
#include "tests/program/on_hostile_programs.h"
#include "tests/support/night.h"

namespace fx::hostile_minimizer_test {

using hostile::HostileProgram;
using torch::Tensor;
using Traverse = MinimizeOptions::Traverse;

constexpr Traverse kAll[] = {Traverse::sequential, Traverse::binary, Traverse::accumulate, Traverse::block,
                             Traverse::graph};

std::vector<c10::IValue> inputs_of(const HostileProgram& program) {
  std::vector<c10::IValue> inputs;
  for (const Tensor& input : program.inputs[0]) inputs.emplace_back(input.clone());
  return inputs;
}

/// Tensors of the module, in a text that is equal when they are.
std::string state_of(const GraphModule& module) {
  std::string text;
  for (const auto& [path, tensor] : hostile::state_of(module)) {
    const Tensor bytes = tensor.detach().contiguous();
    text += path + std::string(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  }
  return text;
}

template <typename Action>
void on_programs(std::uint64_t usual, Action&& action) {
  const torch::NoGradGuard inference;
  testing::on_hostile_programs(usual, {.motifs = {}, .rare = false}, action);
}

TEST(HostileMinimizer, BlamesNobodyWhereNothingDiffers) {
  on_programs(120, [](const HostileProgram& program, std::uint64_t) -> std::optional<std::string> {
    const auto module = program.build();
    const std::string text = print_graph(module->graph()), state = state_of(*module);
    torch::manual_seed(3);
    Minimizer minimizer(*module, inputs_of(program), {.run_b = [](GraphModule& part, std::vector<c10::IValue> values) {
      return part.run(std::move(values));
    }});
    for (const Traverse traverse : kAll) {
      for (const bool accumulate : {false, true}) {
        const std::vector<Node*> found =
            minimizer.minimize({.traverse = traverse, .find_all = true, .accumulate_error = accumulate});
        if (!found.empty()) return "%" + found.front()->name() + " is blamed:\n" + minimizer.report();
      }
    }
    const Tensor next = torch::rand({4});
    torch::manual_seed(3);
    if (!next.equal(torch::rand({4}))) return "random numbers were drawn";
    if (print_graph(module->graph()) != text || state_of(*module) != state) return "the program was changed";
    return std::nullopt;
  });
}

/// Adds one to what the call of this name makes.
class Faulty : public Interpreter {
 public:
  Faulty(GraphModule& module, const std::string& name) : Interpreter(module), name_(name) {}
  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    if (node.name() == name_ && node.is_callable()) value.toTensor().add_(1);
    return value;
  }

 private:
  const std::string& name_;
};

bool can_be_wrong(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const Tensor& tensor = value.toTensor();
  const bool is_plain = tensor.is_floating_point() && tensor.numel() > 0 && !tensor.is_sparse();
  return is_plain && tensor.isfinite().all().item<bool>() && tensor.abs().max().item<double>() < 50;
}

// A fault in one call: looking at each finds it; another way finds it too, or the call behind it hides it.
TEST(HostileMinimizer, FindsAFaultThatIsPlanted) {
  std::size_t planted = 0;
  std::map<Traverse, std::size_t> found;
  on_programs(150, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto module = program.build();
    std::vector<std::string> names;
    const auto copy = module->clone_graph_module();
    Interpreter interpreter(*copy);
    interpreter.keep_values(true);
    interpreter.run(inputs_of(program));
    for (const Node& node : copy->graph().nodes()) {
      const auto value = node.is_callable() ? interpreter.value_of(node) : std::nullopt;
      const Call call = call_of(node);
      // The fault would be in all that reads what it is a view of.
      const bool is_view = call && call.schema().traits.view;
      if (value && !is_view && can_be_wrong(*value)) names.push_back(node.name());
    }
    if (names.empty()) return std::nullopt;
    const std::string name = names[seed % names.size()];
    ++planted;
    Minimizer minimizer(
        *module, inputs_of(program),
        {.run_b = [&](GraphModule& part,
                      std::vector<c10::IValue> values) { return Faulty(part, name).run(std::move(values)); },
         .tolerance = 1e-9});
    for (const Traverse traverse : kAll) {
      const std::vector<Node*> blamed = minimizer.minimize({.traverse = traverse, .find_all = true});
      const bool here = std::ranges::any_of(blamed, [&](const Node* node) { return node->name() == name; });
      found[traverse] += here;
      if (!blamed.empty() && !here)
        return "%" + blamed.front()->name() + " is blamed for %" + name + ":\n" + minimizer.report();
    }
    return std::nullopt;
  });
  EXPECT_GT(planted, testing::by_night(80));
  EXPECT_GT(found[Traverse::sequential] * 10, planted * 9);
  for (const Traverse traverse : {Traverse::binary, Traverse::accumulate, Traverse::block})
    EXPECT_GT(found[traverse] * 10, planted * 7) << static_cast<int>(traverse);
  EXPECT_GT(found[Traverse::graph] * 10, planted * 2);  // most values of these programs lead to no result
}

}  // namespace fx::hostile_minimizer_test
