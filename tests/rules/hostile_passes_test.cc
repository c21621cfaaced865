// Hostile programs (testing/hostile/generator.h) through what changes programs beside the rules of optimize's
// default: other spellings and orders of the same, text and back, modules written out, writes in place, lowering.
#include <gtest/gtest.h>

#include <array>

#include <fxgraph/analysis/legalize.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/ops/normalize_args.h>
#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/program/reinplace.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/testing/hostile/generator.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/rules/hostile_run.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::hostile_passes_test {

using hostile::HostileProgram;
using hostile::Rewritten;
using testing::HostileRun;
using testing::patterns_of;
using testing::Trial;

// ── Forms ────────────────────────────────────────────────────────────────────────────────────────────────────────────

std::vector<TensorInfo> infos(const HostileProgram& program) {
  std::vector<TensorInfo> inputs;
  for (const at::Tensor& input : program.inputs[0]) inputs.push_back(tensor_info(input));
  return inputs;
}

/// Shapes of the program for its inputs; empty when it does not run.
Shapes shapes_of(GraphModule& module, const HostileProgram& program) {
  const StateKeeper keeper(module);
  try {
    return propagate_shapes(module, infos(program));
  } catch (const std::exception&) {
    return {};
  }
}

struct Form {
  const char* name;
  bool (*change)(GraphModule& module, const HostileProgram& program);
};

bool print_and_read(GraphModule& module, const HostileProgram&) {
  const std::string text = print_graph(module.graph());
  module.set_graph(parse_graph(text));
  EXPECT_EQ(print_graph(module.graph()), text);
  return true;
}

bool legalized(GraphModule& module) { return legalize_graph(module) > 0; }

/// Where nothing has an effect the order is free, so the reverse can be put right again; false where something has.
bool turn_round(GraphModule& module) {
  const ModuleInfo effects = module_info(module);
  std::vector<Node*> calls;
  for (Node& node : module.graph().nodes()) {
    if (effects_of(node, effects).impure()) return false;
    if (!node.is(Op::placeholder) && !node.is(Op::output)) calls.push_back(&node);
  }
  for (std::size_t i = 1; i < calls.size(); ++i) calls[i - 1]->prepend(*calls[i]);
  return true;
}

/// Python takes a view of a row that a tensor without dimensions numbers, TorchScript a copy.
bool takes_rows_by_tensors(GraphModule& module, const HostileProgram& program) {
  const Shapes shapes = shapes_of(module, program);
  return std::ranges::any_of(module.graph().nodes(), [&](const Node& node) {
    if (node.target() != "operator.getitem" || node.args().size() != 2) return false;
    bool found = false;
    for_each_node(node.args()[1], [&](const Node& index) {
      const TensorInfo* info = shapes[index].tensor();
      found |= !info || info->sizes.empty();
    });
    return found;
  });
}

/// The graph as it comes back from a file, over the module's own tensors and modules.
bool save_and_load(GraphModule& module, const HostileProgram& program) {
  if (takes_rows_by_tensors(module, program)) return false;
  const auto loaded = from_torchscript(testing::saved_and_loaded(module));
  for (const Node& node : loaded->graph().nodes()) {
    const std::string path = node.target().str();
    if (node.is(Op::get_attr) && !module.find_attribute(path).defined() && loaded->find_attribute(path).defined())
      module.set_attribute(path, loaded->attribute(path));
    if (node.is(Op::call_module) && !module.find_submodule(path)) return false;
  }
  module.set_graph(loaded->graph().clone());
  return true;
}

constexpr std::array<Form, 10> kForms = {{
    {"normalize_operators",
     [](GraphModule& module, const HostileProgram&) { return normalize_operators(module.graph()) > 0; }},
    {"normalize_operators, normalize_args",
     [](GraphModule& module, const HostileProgram&) {
       return normalize_operators(module.graph()) + normalize_args(module.graph()) > 0;
     }},
    {"normalize_args", [](GraphModule& module, const HostileProgram&) { return normalize_args(module.graph()) > 0; }},
    {"print and read", print_and_read},
    {"save and load", save_and_load},
    {"inline_modules",
     [](GraphModule& module, const HostileProgram&) {
       const std::size_t before = module.graph().size();
       module.set_graph(inline_modules(module));
       return module.graph().size() != before;
     }},
    {"reinplace",
     [](GraphModule& module, const HostileProgram& program) {
       const Shapes shapes = shapes_of(module, program);
       return !reinplace(module, shapes).changed.empty();
     }},
    {"common subexpressions and dead code",
     [](GraphModule& module, const HostileProgram&) {
       const ModuleInfo effects = module_info(module);
       return eliminate_common_subexpressions(module.graph(), effects) + eliminate_dead_code(module.graph(), effects) >
              0;
     }},
    {"legalize_graph",
     [](GraphModule& module, const HostileProgram&) { return turn_round(module) && legalized(module); }},
    {"clone",
     [](GraphModule& module, const HostileProgram&) {
       module.set_graph(module.graph().clone());
       return true;
     }},
}};

TEST(HostileForms, OtherFormsOfAProgramDoTheSame) {
  HostileRun run(600);
  run.run([&](std::uint64_t seed) {
    const Form& form = kForms[seed % kForms.size()];
    return Trial{hostile::draw_program(seed, {}),
                 [&form](GraphModule& module, const HostileProgram& program) -> Rewritten {
                   try {
                     const Rewritten done = {form.change(module, program)};
                     module.graph().lint();
                     return done;
                   } catch (const Error& error) {
                     if (error.kind() == ErrorKind::unsupported) return {};  // it says what it cannot do
                     throw;
                   }
                 },
                 form.name};
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 4);
}

// ── Lowering ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Each rule of the lowering wherever it fits, whether or not it was fastest there.
Rewritten lower_everywhere(GraphModule& module, const HostileProgram& program, std::string_view part) {
  if (rules::written_if_strides_say_so(module.graph(), rules::ProgramEffects(module))) return {};
  const std::vector<TensorInfo> inputs = infos(program);
  const std::uint64_t revision = module.graph().revision();
  optimize(module, {.rules = {"out-of-place"}, .inputs = inputs});
  testing::rewrite_everywhere(module, {"lowering", "precision"}, {part}, shapes_of(module, program));
  optimize(module, {.rules = {"bfloat16-casts", "channels-last", "in-place"}, .inputs = inputs});
  return {module.graph().revision() != revision, true, part == "bfloat16"};
}

/// As those of a model that was trained: some kernels take none that a gradient is asked of.
void ask_for_gradients(GraphModule& module) {
  for (const auto& item : module.named_parameters()) {
    if (at::isFloatingType(item.value().scalar_type()) && item.value().is_leaf()) item.value().requires_grad_();
  }
}

TEST(HostileLowering, TheTargetCpuKeepsWhatCallersSee) {
  static const std::vector<Pattern> motifs = [] {
    std::vector<Pattern> all = patterns_of({"lowering", "precision"});
    for (const Pattern& pattern : hostile::common_motifs()) all.push_back(pattern);
    return all;
  }();
  HostileRun run(200);
  run.run([&](std::uint64_t seed) {
    // Measuring takes long: every fifth program is lowered as it is fastest, the others wherever that is possible.
    constexpr std::array<std::string_view, 4> kParts = {"onednn", "xnnpack", "lower-", "bfloat16"};
    const std::size_t part = seed % 5;
    return Trial{
        hostile::draw_program(seed, {.motifs = motifs}),
        [part, kParts, seed, rounds = seed % 2 == 0](GraphModule& module, const HostileProgram& program) -> Rewritten {
          const std::uint64_t revision = module.graph().revision();
          if (seed % 3 == 0) ask_for_gradients(module);
          try {
            if (part < kParts.size()) return lower_everywhere(module, program, kParts[part]);
            const auto type = rounds ? std::optional(DType::bfloat16) : std::nullopt;
            optimize(module, {.inputs = infos(program), .target = "cpu", .dtype = type});
            return {module.graph().revision() != revision, true, rounds};
          } catch (const Error& error) {
            if (error.kind() == ErrorKind::execution) return {};
            throw;
          }
        },
        part < kParts.size() ? std::string(kParts[part]) : "target cpu"};
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 10);
}

}  // namespace fx::hostile_passes_test
