#include <fxgraph/torchscript/nested_calls.h>

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <set>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/reflected.h>

namespace fx::internal {
namespace {

namespace jit = torch::jit;
using jit::NamedValue;
using jit::Value;

struct Call {
  jit::Graph& built;
  ArgumentSpan args;
  const NamedValueOf& value_of;

  Value* builtin(const char* name, const std::vector<NamedValue>& operands) const {
    return jit::emitBuiltinCall(no_source(), built, c10::Symbol::fromQualString(name), operands, {});
  }
  Value* forward(Value* module, ArgumentSpan operands) const {
    const c10::FunctionSchema& schema = module->type()->expectRef<c10::ClassType>().getMethod("forward").getSchema();
    std::vector<NamedValue> values = {NamedValue(module)};
    for (const Argument& operand : operands) values.push_back(value_of(operand));
    const jit::MatchedSchema matched = jit::matchSchema(schema, no_source(), built, values, {});
    jit::Node* call = built.insertNode(built.create(c10::prim::CallMethod, matched.inputs));
    call->s_(c10::attr::name, "forward");
    return call->output()->setType(matched.return_types.at(0));
  }
};

// `if condition: result = self.true_graph(x) else: result = self.false_graph(x)`
Value* conditional(const Call& call) {
  Value* condition = call.value_of(call.args[0]).value(call.built);
  if (condition->type()->isSubtypeOf(*c10::TensorType::get()))
    condition = call.builtin("aten::Bool", {NamedValue(condition)});
  Value* const modules[] = {call.value_of(call.args[1]).value(call.built),
                            call.value_of(call.args[2]).value(call.built)};
  jit::Node* branch = call.built.insertNode(call.built.create(c10::prim::If, {condition}, 0));
  std::vector<c10::TypePtr> types;
  for (Value* module : modules) {
    jit::Block* block = branch->addBlock();
    const jit::WithInsertPoint inside(block);
    Value* result = call.forward(module, call.args[3].elements());
    block->registerOutput(result);
    types.push_back(result->type());
  }
  const auto unified = c10::unifyTypes(types[0], types[1]);
  if (!unified) throw Error(ErrorKind::unsupported, "its two graphs return values of different types");
  return branch->addOutput()->setType(*unified);
}

Value* with_grad_mode(const Call& call) {
  Value* before = call.builtin("aten::is_grad_enabled", {});
  call.builtin("aten::set_grad_enabled", {call.value_of(call.args[0])});
  Value* result = call.forward(call.value_of(call.args[1]).value(call.built), call.args.subspan(2));
  call.builtin("aten::set_grad_enabled", {NamedValue(before)});
  return result;
}

template <std::size_t graph, std::size_t first>
Value* wrapped(const Call& call) {
  return call.forward(call.value_of(call.args[graph]).value(call.built), call.args.subspan(first));
}

struct Row {
  const char* target;
  std::size_t least;  ///< arguments
  Value* (*build)(const Call& call);
};
constexpr Row kRows[] = {
    {"higher_order::cond", 4, conditional},
    {"higher_order::wrap_with_set_grad_enabled", 2, with_grad_mode},
    {"higher_order::wrap", 1, wrapped<0, 1>},
    {"higher_order::tag_activation_checkpoint", 1, wrapped<0, 1>},
    {"higher_order::invoke_subgraph", 2, wrapped<0, 2>},
};

const Row* find(Symbol target) {
  for (const Row& row : kRows) {
    if (target == row.target) return &row;
  }
  return nullptr;
}

}  // namespace

Value* build_nested_call(jit::Graph& built, Symbol target, ArgumentSpan args, const NamedValueOf& value_of) {
  const Row* row = find(target);
  if (!row || args.size() < row->least) return nullptr;
  return row->build({built, args, value_of});
}

std::string unknown_nested_calls(const Graph& graph, const Node*& first) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || !runs_graphs(node) || find(node.target())) continue;
    if (names.empty()) first = &node;
    names.insert(target_text(node.target()));
  }
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace fx::internal
