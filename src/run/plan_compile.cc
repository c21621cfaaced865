#include <fxgraph/run/plan_compile.h>

#include <utility>

#include <fxgraph/ir/definition_order.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {

using internal::Step;

PlanCompiler::PlanCompiler(const OwningModule& module, Plan::Options options)
    : module_(module), options_(options), program_(std::make_unique<Plan::Code>()) {}

std::unique_ptr<const Plan::Code> PlanCompiler::compile() {
  const Graph& graph = module_.graph();
  program_->revision = graph.revision();
  program_->generation = module_.graph_generation();
  program_->output = graph.output_node();
  Scope scope{graph, &module_, false, true, 0, NodeMap<Value>(graph)};
  std::vector<Value> inputs;
  for (const Node* node : graph.placeholders()) {
    inputs.push_back(fresh_slot(nullptr));
    Plan::Code::Input input{node->target().str(), inputs.back().index, std::nullopt, internal::input_kind(*node)};
    if (!node->args().empty()) input.default_value = to_ivalue(node->arg(0));
    program_->inputs.push_back(std::move(input));
  }
  return finish(compile_graph(scope, inputs));
}

PlanCompiler::Value PlanCompiler::compile_graph(Scope& scope, const std::vector<Value>& inputs) {
  require_definitions_before_uses(scope.graph);
  std::size_t next_input = 0;
  for (const Node& node : scope.graph.nodes()) {
    if (node.is(Op::output)) return to_value(scope, node.arg(0));
    scope.values[node] = node.is(Op::placeholder) ? inputs.at(next_input++) : compile_node(scope, node);
    if (options_.observe && scope.is_top) observe(scope, node);
  }
  return constant(c10::IValue());
}

PlanCompiler::Value PlanCompiler::compile_node(Scope& scope, const Node& node) {
  try {
    switch (node.op()) {
      case Op::get_attr: return compile_attribute(scope, node);
      case Op::call_function:
      case Op::call_method: return compile_call(scope, node);
      default: return compile_module(scope, node);
    }
  } catch (const Error& error) {
    if (!error.node().empty()) throw;
    throw Error(error.kind(), "%" + node.name() + ": " + error.message(), node.name());
  }
}

PlanCompiler::Value PlanCompiler::compile_attribute(Scope& scope, const Node& node) {
  const std::string path = node.target().str();
  torch::Tensor tensor = find_tensor(*scope.root, path);
  program_->watch.tensor(*scope.root, path);
  if (!tensor.defined()) program_->watch.child(*scope.root, path);
  if (const c10::IValue* object = tensor.defined() ? nullptr : find_object(*scope.root, path)) return constant(*object);
  if (!tensor.defined()) {
    if (c10::IValue graph = nested_graph_value(find_child(*scope.root, path)); !graph.isNone())
      return constant(std::move(graph));
    throw Error(ErrorKind::not_found, "%" + node.name() + ": there is no parameter or buffer '" + path + "'",
                node.name());
  }
  return constant(std::move(tensor));
}

PlanCompiler::Value PlanCompiler::compile_body(Scope& scope, const Node& node, std::shared_ptr<const Graph> body,
                                               const torch::nn::Module* root) {
  const std::vector<Value> inputs = bind_body_inputs(scope, node, *body);
  Scope inner{*body, root, true, false, scope.node_of(node), NodeMap<Value>(*body)};
  program_->bodies.push_back(std::move(body));
  return compile_graph(inner, inputs);
}

std::vector<PlanCompiler::Value> PlanCompiler::bind_body_inputs(Scope& scope, const Node& node, const Graph& body) {
  std::vector<Value> inputs;
  const std::vector<Node*> parameters = body.placeholders();
  if (node.args().size() > parameters.size()) {
    throw Error(ErrorKind::invalid_argument,
                "%" + node.name() + ": module '" + node.target().str() + "' takes " +
                    std::to_string(parameters.size()) + " arguments",
                node.name());
  }
  std::size_t keywords = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Argument* given = i < node.args().size() ? &node.arg(i) : node.kwarg(parameters[i]->target());
    keywords += i >= node.args().size() && given;
    if (!given && parameters[i]->args().empty()) {
      throw Error(ErrorKind::invalid_argument,
                  "%" + node.name() + ": module '" + node.target().str() + "' needs the argument '" +
                      parameters[i]->target().str() + "'",
                  node.name());
    }
    inputs.push_back(given ? to_value(scope, *given) : literal(parameters[i]->arg(0), nullptr));
  }
  if (keywords != node.kwargs().size()) {
    for (std::size_t i = 0; i < node.args().size(); ++i) {
      if (node.kwarg(parameters[i]->target()))
        throw Error(ErrorKind::invalid_argument,
                    "%" + node.name() + ": argument '" + parameters[i]->target().str() + "' is given twice",
                    node.name());
    }
    throw Error(ErrorKind::invalid_argument,
                "%" + node.name() + ": module '" + node.target().str() + "' has no such keyword argument", node.name());
  }
  return inputs;
}

void PlanCompiler::observe(Scope& scope, const Node& node) {
  step(scope, node, Step::Kind::observe, {operand_of(scope.values[node])}, 0);
}

std::unique_ptr<const Plan::Code> PlanCompiler::finish(const Value& result) {
  mark_last_uses(result);
  assign_slots();
  return std::move(program_);
}

std::shared_ptr<const Plan> Plan::compile(const OwningModule& module, Options options) {
  install_schema_source();
  return std::shared_ptr<const Plan>(new Plan(PlanCompiler(module, options).compile()));
}

}  // namespace fx
