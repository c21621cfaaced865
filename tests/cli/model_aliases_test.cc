// Effects on real models against two references: torch::jit's alias analysis of the same program, and the storages that
// its tensors have when it runs. Effects may see an alias or a write where they do not, never the other way round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/script.h>

#include <map>
#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/export.h>
#include "tests/cli/test_models.h"
#include "tests/support/analysis_oracles.h"

namespace fx::model_aliases_test {

namespace jit = torch::jit;

/// The program as a torch::jit graph in which inputs are tensors of its own, so that they alias nothing, with the
/// values by the names of the nodes that they come from.
struct JitProgram {
  explicit JitProgram(const GraphModule& module) : script(to_torchscript(module)) {
    graph = script.get_method("forward").graph()->copy();
    jit::Inline(*graph);
    std::map<std::string, const Node*> nodes;
    for (const Node& node : module.graph().nodes()) {
      if (node.is(Op::call_function)) nodes.emplace(node.name(), &node);
    }
    for (jit::Node* node : graph->nodes()) {
      if (node->outputs().size() != 1) continue;
      const auto found = nodes.find(node->output()->debugName());
      if (found == nodes.end()) continue;
      const Call call = call_of(*found->second);
      if (call && node->kind().toQualString() == packet_of(call.schema().target.view()))
        values.emplace(found->second, node->output());
    }
    std::size_t input = 1;
    for (const Node* placeholder : module.graph().placeholders()) {
      jit::Value* value = graph->inputs().at(input++);
      if (value->type()->isSubtypeOf(*c10::TensorType::get())) values.emplace(placeholder, own_tensor(value));
    }
    unknown = graph->addInput("unknown")->setType(c10::TensorType::get());
  }

  jit::Value* own_tensor(jit::Value* input) {
    jit::WithInsertPoint at_start(*graph->nodes().begin());
    jit::Value* made = graph->insert(c10::aten::rand, {std::vector<std::int64_t>{1}});
    input->replaceAllUsesWith(made);
    return made;
  }

  jit::Module script;
  std::shared_ptr<jit::Graph> graph;
  std::map<const Node*, jit::Value*> values;
  jit::Value* unknown;  // aliases what AliasDb knows nothing about
};

struct Count {
  int programs = 0, aliases = 0, writes = 0;
};

void compare_with_alias_db(const testing::TestModel& model, Count& count) {
  std::optional<JitProgram> program;
  try {
    program.emplace(*model.module);
  } catch (const Error&) {
    return;  // TorchScript cannot say it
  }
  const jit::AliasDb aliases(program->graph, true);
  const Effects effects(*model.module);
  const auto is_known = [&](jit::Value* value) { return !aliases.mayAlias(value, program->unknown); };
  ++count.programs;
  for (const auto& [a, value_a] : program->values) {
    if (!is_known(value_a)) continue;
    for (const auto& [b, value_b] : program->values) {
      if (!is_known(value_b)) continue;
      if (a != b && aliases.mayAlias(value_a, value_b)) {
        ++count.aliases;
        EXPECT_TRUE(effects.may_alias(*a, *b)) << model.file << ": " << *a << "\n" << *b;
      }
      if (a->is(Op::placeholder) || !aliases.writesToAlias(value_a->node(), {value_b})) continue;
      ++count.writes;
      const auto written = effects.written_sets(*a), sets = effects.sets(*b);
      const bool ours = std::any_of(written.begin(), written.end(), [&](Effects::Set set) {
        return std::find(sets.begin(), sets.end(), set) != sets.end();
      });
      EXPECT_TRUE(ours) << model.file << ": " << *a << "\nwrites to\n" << *b;
    }
  }
}

void compare_with_storages(testing::TestModel& model, int& shared) {
  Shapes shapes;
  try {
    shapes = propagate_shapes(*model.module, model.inputs);
  } catch (const Error& error) {
    FAIL() << model.file << ": " << error.what();
  }
  const Effects effects(*model.module);
  std::map<std::int64_t, std::vector<const Node*>> by_storage;
  for (const Node& node : model.module->graph().nodes()) {
    if (node.is(Op::output)) continue;
    for (const TensorInfo& tensor : shapes[node].tensors) {
      if (tensor.storage >= 0 && tensor.numel() > 0) by_storage[tensor.storage].push_back(&node);
    }
  }
  for (const auto& [storage, nodes] : by_storage) {
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      ++shared;
      EXPECT_TRUE(effects.may_alias(*nodes[0], *nodes[i])) << model.file << ": " << *nodes[0] << "\n" << *nodes[i];
    }
  }
}

constexpr const char* kNoModels = "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";

TEST(ModelAliasesNight, OfOperatorsAreNeverFewerThanAliasDbsAndThoseOfARun) {
  Count count;
  int shared = 0;
  const int models = testing::for_each_test_model(true, [&](testing::TestModel& model) {
    compare_with_alias_db(model, count);
    compare_with_storages(model, shared);
  });
  if (models == 0) GTEST_SKIP() << kNoModels;
  EXPECT_GT(count.programs, 100);
  EXPECT_GT(count.aliases, 1000);
  EXPECT_GT(count.writes, 500);
  EXPECT_GT(shared, 500);
}

TEST(ModelAliasesNight, OfModulesAreNeverFewerThanThoseOfARunAndTheOraclesAgree) {
  int shared = 0;
  std::set<std::string> seen;  // the oracles need not see a graph twice
  const int models = testing::for_each_test_model(false, [&](testing::TestModel& model) {
    const Graph& graph = model.module->graph();
    compare_with_storages(model, shared);
    if (!seen.insert(model.file.substr(0, model.file.find('.'))).second) return;
    EXPECT_EQ(testing::disagreement_on_dominators(graph), "") << model.file;
    EXPECT_EQ(testing::disagreement_on_liveness(graph), "") << model.file;
    EXPECT_EQ(testing::disagreement_on_reachability(graph), "") << model.file;
  });
  if (models == 0) GTEST_SKIP() << kNoModels;
  EXPECT_GT(shared, 500);
}

}  // namespace fx::model_aliases_test
