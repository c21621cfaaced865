// How each kind of call becomes steps.
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_target.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/call_target.h>
#include <fxgraph/run/overloaded_call.h>
#include <fxgraph/run/packed_once.h>
#include <fxgraph/run/plan_compile.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using internal::Operand;
using internal::Step;

[[noreturn]] void fail(ErrorKind kind, const Node& node, const std::string& what) {
  throw Error(kind, "%" + node.name() + ": " + what, node.name());
}

c10::TypePtr known_type(const c10::TypePtr& type) { return has_type_variables(*type) ? nullptr : type; }

/// The arguments of a call in the order of a parameter list; null where the default stands.
template <typename Parameters, typename NameOf>
std::vector<const Argument*> arrange(const Node& node, ArgumentSpan args, KwargSpan kwargs,
                                     const Parameters& parameters, const NameOf& name_of) {
  std::vector<const Argument*> arranged(parameters.size(), nullptr);
  if (args.size() > parameters.size()) {
    fail(ErrorKind::invalid_argument, node,
         node.target().str() + " takes " + std::to_string(parameters.size()) + " arguments, the call has " +
             std::to_string(args.size()));
  }
  for (std::size_t i = 0; i < args.size(); ++i) arranged[i] = &args[i];
  for (const auto& [name, value] : kwargs) {
    bool found = false;
    for (std::size_t i = 0; i < parameters.size() && !found; ++i) {
      const std::string_view parameter = name_of(parameters[i]);
      if (name.view() != parameter && !(name == "input" && parameter == "self")) continue;
      if (arranged[i]) fail(ErrorKind::invalid_argument, node, "argument '" + name.str() + "' is given twice");
      arranged[i] = &value;
      found = true;
    }
    if (!found) fail(ErrorKind::invalid_argument, node, node.target().str() + " has no argument '" + name.str() + "'");
  }
  return arranged;
}

/// True when the values cannot make it a call of another overload: it is spelt out, or all kinds are known, or the
/// other overloads do not fit, whatever the values are.
bool is_certain(const Node& node, const Call& call) {
  const auto is_known = [](const Node* input) {  // a number of some kind may be of any
    const internal::ArgumentType type = internal::argument_type(Argument(const_cast<Node*>(input)));
    return type.known && type.base != SchemaType::Base::scalar;
  };
  if (std::ranges::all_of(node.all_input_nodes(), is_known)) return true;
  const std::string_view packet = packet_of(call.schema().target.view());
  std::size_t fitting = 0;
  for (const OperatorSchema* schema : internal::candidate_overloads(node.op(), node.target())) {
    const bool same = packet_of(schema->target.view()) == packet;
    const internal::ConversionCost cost = same ? internal::conversion_cost(*schema, call.args(), call.kwargs())
                                               : internal::conversion_cost(*schema, node.args(), node.kwargs());
    fitting += cost.viable() && !cost.forced;
  }
  return fitting <= 1;
}

/// False when it is none of these, whatever the values are.
bool may_fit(const Node& node, const std::vector<const OperatorSchema*>& candidates, std::string& why) {
  if (!internal::python_target(node.op(), node.target()).rows.empty()) return true;  // these say it in other words
  for (const OperatorSchema* schema : candidates) {
    const std::optional<std::string> problem = check_call(*schema, node.args(), node.kwargs());
    if (!problem) return true;
    if (why.empty()) why = *problem;
  }
  return false;
}

}  // namespace

PlanCompiler::Value PlanCompiler::compile_operator(Scope& scope, const Node& node, const TorchOperator& target,
                                                   ArgumentSpan args, KwargSpan kwargs) {
  const c10::FunctionSchema& schema = *target.schema;
  std::vector<Operand> operands;
  if (schema.is_vararg()) {
    for (const Argument& arg : args) operands.push_back(operand(scope, arg));
    operands.push_back(operand_of(constant(static_cast<std::int64_t>(args.size()))));
  } else {
    const auto arranged = arrange(node, args, kwargs, schema.arguments(),
                                  [](const c10::Argument& a) { return std::string_view(a.name()); });
    for (std::size_t i = 0; i < arranged.size(); ++i) {
      const c10::Argument& parameter = schema.arguments()[i];
      if (arranged[i]) {
        operands.push_back(operand(scope, *arranged[i], value_type(parameter), parameter.N().value_or(1)));
      } else if (parameter.default_value()) {
        operands.push_back(operand_of(constant(*parameter.default_value())));
      } else {
        fail(ErrorKind::invalid_argument, node, node.target().str() + " needs the argument '" + parameter.name() + "'");
      }
    }
  }
  if (is_packing(schema)) {
    if (std::optional<Value> packed = compile_packing(scope, node, target, operands)) return *packed;
  }
  const std::size_t num_results = schema.returns().size();
  const bool alone = keeps_state(schema), dispatched = target.handle && !alone;
  Step& made = step(scope, node, dispatched ? Step::Kind::dispatcher : Step::Kind::function, operands, num_results);
  if (dispatched) {
    made.handle = target.handle;
    const bool built = std::any_of(operands.begin(), operands.end(),
                                   [](const Operand& each) { return each.kind == Operand::Kind::aggregate; });
    if (!built) made.direct = internal::direct_call(*target.handle);
  } else {
    made.function = static_cast<std::uint32_t>(program_->functions.size());
    if (alone) {
      program_->functions.push_back([&target](torch::jit::Stack& stack) { run_alone(target, stack); });
    } else {
      program_->functions.push_back(target.call);
    }
  }
  std::vector<Value> results;
  for (const c10::Argument& result : schema.returns()) {
    results.push_back(fresh_slot(known_type(result.type())));
    program_->result_slots.push_back(results.back().index);
  }
  if (num_results == 0) return constant(c10::IValue());
  if (num_results == 1) return results[0];
  Value bundle;
  bundle.kind = Value::Kind::bundle;
  bundle.elements = std::move(results);
  return bundle;
}

// Constants are packed once; what is made while running is packed each time.
std::optional<PlanCompiler::Value> PlanCompiler::compile_packing(Scope& scope, const Node& node,
                                                                 const TorchOperator& pack,
                                                                 const std::vector<Operand>& operands) {
  std::vector<c10::IValue> arguments;
  for (const Operand& each : operands) {
    if (each.kind != Operand::Kind::constant || each.coercion) return std::nullopt;
    arguments.push_back(program_->constants[each.index]);
  }
  return call_function(
      scope, node, {},
      [once = std::make_shared<PackedOnce>(pack, std::move(arguments))](torch::jit::Stack& stack) {
        stack.push_back(once->get());
      },
      pack.schema->returns()[0].type());
}

PlanCompiler::Value PlanCompiler::compile_python(Scope& scope, const Node& node, const PythonFunction& function) {
  std::vector<Operand> operands;
  if (function.parameters.empty()) {
    for (const Argument& arg : node.args()) operands.push_back(operand(scope, arg));
  }
  const auto arranged = function.parameters.empty() ? std::vector<const Argument*>()
                                                    : arrange(node, node.args(), node.kwargs(), function.parameters,
                                                              [](const char* name) { return std::string_view(name); });
  std::size_t given = arranged.size();
  while (given > 0 && !arranged[given - 1]) --given;
  for (std::size_t i = 0; i < given; ++i) {
    if (!arranged[i] && i < function.least)
      fail(ErrorKind::invalid_argument, node,
           node.target().str() + " needs the argument '" + function.parameters[i] + "'");
    operands.push_back(arranged[i] ? operand(scope, *arranged[i]) : operand_of(constant(c10::IValue())));
  }
  if (operands.empty()) fail(ErrorKind::invalid_argument, node, node.target().str() + " needs arguments");
  return call_function(scope, node, operands, [&function](torch::jit::Stack& stack) {
    c10::IValue result = function.call(stack);
    stack.clear();
    stack.push_back(std::move(result));
  });
}

// getitem on a tuple that is not built costs nothing.
bool PlanCompiler::take_element(Scope& scope, const Node& node, Value& element) {
  const std::optional<Element> taken = taken_element(node);
  if (!taken || scope.values[*taken->of].kind != Value::Kind::bundle) return false;
  const std::vector<Value>& elements = scope.values[*taken->of].elements;
  const auto size = static_cast<std::int64_t>(elements.size());
  const std::int64_t index = taken->index;
  if (index < -size || index >= size) {
    fail(ErrorKind::invalid_argument, node,
         "index " + std::to_string(index) + " is out of range for " + std::to_string(size) + " values");
  }
  element = elements[static_cast<std::size_t>(index < 0 ? index + size : index)];
  return true;
}

PlanCompiler::Value PlanCompiler::compile_call(Scope& scope, const Node& node) {
  Value element;
  if (take_element(scope, node, element)) return element;
  if (const TorchOperator* exact = exact_operator(node.op(), node.target()))
    return compile_operator(scope, node, *exact, node.args(), node.kwargs());
  const Call call = call_of(node);
  const TorchOperator* op = call ? torch_operator(call) : nullptr;
  if (op && is_certain(node, call)) return compile_operator(scope, node, *op, call.args(), call.kwargs());
  // Of numbers Python's operators may have a function of their own; what is no number has an operator.
  const auto is_number = [](const Argument& argument) {
    return internal::is_number_type(internal::argument_type(argument));
  };
  const bool hangs_on_values =
      internal::python_target(node.op(), node.target()).op && !std::ranges::all_of(node.args(), is_number);
  const PythonFunction* function = op || hangs_on_values ? nullptr : find_python_function(node.op(), node.target());
  if (function) return compile_python(scope, node, *function);
  const std::vector<const OperatorSchema*>& candidates = internal::candidate_overloads(node.op(), node.target());
  if (candidates.empty()) fail(ErrorKind::not_found, node, no_such_target(node.op(), node.target()));
  if (std::string why; !call && !may_fit(node, candidates, why)) fail(ErrorKind::invalid_argument, node, why);
  std::vector<Operand> operands;
  for (Node* input : node.all_input_nodes()) operands.push_back(operand(scope, Argument(input)));
  return call_function(scope, node, operands, internal::OverloadedCall(node));
}

// ── Modules ────────────────────────────────────────────────────────────────────────────────────────────────────────

PlanCompiler::Value PlanCompiler::compile_module(Scope& scope, const Node& node) {
  const std::shared_ptr<torch::nn::Module> module = find_child(*scope.root, node.target().str());
  program_->watch.child(*scope.root, node.target().str());
  if (!module)
    fail(ErrorKind::not_found, node,
         "there is no module '" + node.target().str() + "'; text names modules and holds none: load a saved model");
  return compile_module_at(scope, node, module);
}

PlanCompiler::Value PlanCompiler::compile_module_at(Scope& scope, const Node& node,
                                                    const std::shared_ptr<torch::nn::Module>& module) {
  program_->modes.push_back({module, module->is_training()});
  if (const auto* leaf = dynamic_cast<const LeafModule*>(module.get())) {
    program_->watch.body(*leaf);
    if (const auto& body = leaf->body_in_mode(leaf->is_training())) return compile_body(scope, node, body, leaf);
    if (leaf->script()) return compile_script(scope, node, *leaf);
    fail(ErrorKind::unsupported, node,
         "leaf '" + node.target().str() + "' (" + leaf->type_name() + ") has no body for " +
             (leaf->is_training() ? "training" : "evaluation") + " mode");
  }
  if (const auto nested = std::dynamic_pointer_cast<OwningModule>(module)) {
    const Graph& inner = nested->graph();
    program_->nested.push_back({nested, inner.revision(), nested->graph_generation(), inner.output_node()});
    // The graph belongs to the nested module, which the program keeps alive.
    return compile_body(scope, node, std::shared_ptr<const Graph>(nested, &nested->graph()), nested.get());
  }
  if (dynamic_cast<const torch::nn::SequentialImpl*>(module.get())) return compile_sequential(scope, node, *module);
  const ModuleType* type = find_module_type(*module);
  if (!type) {
    fail(ErrorKind::unsupported, node,
         "module '" + node.target().str() + "' is a " + module->name() +
             ", whose forward is not known; tell it with fx::register_module_type");
  }
  if (type->options) {
    for (const auto bytes : type->options(*module)) program_->watch.bytes(bytes);
  }
  if (type->body) {
    if (std::optional<Graph> body = type->body(*module)) {
      return compile_body(scope, node, std::make_shared<const Graph>(std::move(*body)), module.get());
    }
  }
  std::vector<Operand> operands;
  for (const Argument& arg : node.args()) operands.push_back(operand(scope, arg));
  if (!node.kwargs().empty()) fail(ErrorKind::unsupported, node, "C++ modules take no keyword arguments");
  return call_function(scope, node, operands,
                       [module, call = type->call](torch::jit::Stack& stack) { call(*module, stack); });
}

PlanCompiler::Value PlanCompiler::compile_sequential(Scope& scope, const Node& node,
                                                     const torch::nn::Module& sequential) {
  if (node.args().size() + node.kwargs().size() != 1 || (node.args().empty() && !node.kwarg("input")))
    fail(ErrorKind::unsupported, node, "a Sequential is called with one argument here, its input");
  program_->watch.children(sequential);
  // The chain as a graph: one call_module per child.
  Graph chain;
  Node* at = &chain.placeholder("input");
  for (const auto& child : sequential.named_children()) at = &chain.call_module(child.key(), {at});
  chain.output(at);
  return compile_body(scope, node, std::make_shared<const Graph>(std::move(chain)), &sequential);
}

PlanCompiler::Value PlanCompiler::compile_script(Scope& scope, const Node& node, const LeafModule& leaf) {
  std::vector<Operand> operands;
  std::vector<std::string> keywords;
  for (const Argument& arg : node.args()) operands.push_back(operand(scope, arg));
  for (const auto& [name, value] : node.kwargs()) {
    operands.push_back(operand(scope, value));
    keywords.push_back(name.str());
  }
  const torch::jit::Method method = leaf.script()->get_method(leaf.script_method());
  return call_function(scope, node, operands, [method, keywords](torch::jit::Stack& stack) {
    torch::jit::Kwargs kwargs;
    for (const std::string& name : keywords)
      kwargs.emplace(name, stack[stack.size() - keywords.size() + kwargs.size()]);
    stack.resize(stack.size() - keywords.size());
    c10::IValue result = torch::jit::Method(method)(std::move(stack), kwargs);
    stack.clear();
    stack.push_back(std::move(result));
  });
}

}  // namespace fx
