#include <fxgraph/torchscript/executor_rewrites.h>

#include <torch/csrc/jit/frontend/schema_matching.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>

#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/torchscript/reflected.h>

namespace fx::internal {
namespace {

namespace jit = torch::jit;

bool is_number(const jit::Value* value, double number) {
  const auto constant = jit::toIValue(value);
  return constant && (constant->isInt() || constant->isDouble()) && constant->toScalar().toDouble() == number;
}

bool is_left_out(const jit::Node* call) {
  const c10::Symbol kind = call->kind();
  const bool adds = kind == c10::aten::add || kind == c10::aten::sub;
  if ((!adds && kind != c10::aten::mul && kind != c10::aten::div) || call->inputs().size() < 2) return false;
  return call->inputs()[0]->type()->isSubtypeOf(*c10::TensorType::get()) && is_number(call->inputs()[1], adds ? 0 : 1);
}

jit::Value* write_over(jit::Graph& graph, jit::Value* into, jit::Value* from) {
  return jit::emitBuiltinCall(no_source(), graph, c10::aten::copy_, {jit::NamedValue(into), jit::NamedValue(from)}, {});
}

}  // namespace

bool is_constant_result(const Node& node, const ModuleInfo& modules) {
  std::vector<const Node*> parts = {&node};
  std::unordered_set<const Node*> seen = {&node};  // membership only
  while (!parts.empty()) {
    const Node* part = parts.back();
    parts.pop_back();
    const bool is_graph = part->is(Op::get_attr) && modules.body && modules.body(part->target().view());
    if ((!part->is_callable() && !is_graph) || effects_of(*part).random) return false;
    for (const Node* input : part->all_input_nodes()) {
      if (seen.insert(input).second) parts.push_back(input);
    }
  }
  return true;
}

jit::Value* made_anew(jit::Graph& graph, jit::Value* value) {
  return write_over(
      graph, jit::emitBuiltinCall(no_source(), graph, c10::aten::empty_like, {jit::NamedValue(value)}, {}), value);
}

jit::Value* written_if_left_out(jit::Graph& graph, jit::Node* call) {
  if (is_left_out(call)) write_over(graph, call->output(), call->output());
  return call->output();
}

void keep_joined_parts(const std::shared_ptr<jit::Graph>& graph) {
  std::optional<jit::AliasDb> aliases;
  const auto writes_parts_of = [&](const jit::Node* call, const jit::Node& joined) {
    const c10::FunctionSchema* schema = call->maybeSchema();
    if (!schema || !schema->is_mutable()) return false;
    if (!aliases) aliases.emplace(graph);
    const at::ArrayRef<const jit::Value*> parts = joined.inputs()[0]->node()->inputs();
    return aliases->writesToAlias(const_cast<jit::Node*>(call), jit::ValueSet(parts.begin(), parts.end()));
  };
  std::vector<std::pair<jit::Node*, jit::Value*>> found;
  for (jit::Node* outer : graph->nodes()) {
    if (outer->kind() != c10::aten::cat) continue;
    for (jit::Value* part : outer->inputs()[0]->node()->inputs()) {
      const jit::Node* inner = part->node();
      if (inner->kind() != c10::aten::cat) continue;
      const jit::Node* between = inner->next();
      while (between != outer && !writes_parts_of(between, *inner)) between = between->next();
      if (between != outer) found.emplace_back(outer, part);
    }
  }
  for (const auto& [outer, part] : found) {
    const jit::WithInsertPoint before(
        outer->inputs()[0]->node());  // after the list nobody seems to read what it writes
    write_over(*graph, part, part);
  }
}

const jit::Value* written_value(const jit::Node& call) {
  if (call.kind() != c10::aten::copy_) return nullptr;
  const jit::Value *into = call.inputs()[0], *from = call.inputs()[1];
  if (into == from) return from;
  const jit::Node& made = *into->node();
  const bool is_only_copied = made.kind() == c10::aten::empty_like && made.inputs()[0] == from &&
                              into->uses().size() == 1 && from->uses().size() == 2;
  return is_only_copied ? from : nullptr;
}

}  // namespace fx::internal
