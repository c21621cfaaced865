#include <fxgraph/torchscript/executor_rewrites.h>

#include <torch/csrc/jit/frontend/schema_matching.h>
#include <torch/csrc/jit/ir/constants.h>

#include <unordered_set>
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

bool is_constant_result(const Node& node) {
  std::vector<const Node*> parts = {&node};
  std::unordered_set<const Node*> seen = {&node};  // membership only
  while (!parts.empty()) {
    const Node* part = parts.back();
    parts.pop_back();
    if (!part->is(Op::call_function) || effects_of(*part).random) return false;
    for (const Node* input : part->all_input_nodes()) {
      if (seen.insert(input).second) parts.push_back(input);
    }
  }
  return true;
}

const Node& memory_of(const Node& node) {
  const Node* at = &node;
  while (effects_of(*at).may_alias && !at->all_input_nodes().empty()) at = at->all_input_nodes()[0];
  return *at;
}

jit::Value* made_anew(jit::Graph& graph, jit::Value* value) {
  return write_over(
      graph, jit::emitBuiltinCall(no_source(), graph, c10::aten::empty_like, {jit::NamedValue(value)}, {}), value);
}

jit::Value* written_if_left_out(jit::Graph& graph, jit::Node* call) {
  if (is_left_out(call)) write_over(graph, call->output(), call->output());
  return call->output();
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
