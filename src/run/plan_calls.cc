// How each kind of call becomes steps.
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <utility>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/schema.h>
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
std::vector<const Argument*> arrange(const Node& node, const Parameters& parameters, const NameOf& name_of) {
  std::vector<const Argument*> arranged(parameters.size(), nullptr);
  if (node.args().size() > parameters.size()) {
    fail(ErrorKind::invalid_argument, node,
         node.target().str() + " takes " + std::to_string(parameters.size()) + " arguments, the call has " +
             std::to_string(node.args().size()));
  }
  for (std::size_t i = 0; i < node.args().size(); ++i) arranged[i] = &node.args()[i];
  for (const auto& [name, value] : node.kwargs()) {
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

/// Could the call fit the schema, by count and names alone?
bool fits_by_shape(const c10::FunctionSchema& schema, const Node& node) {
  const auto& parameters = schema.arguments();
  if (schema.is_vararg() || node.args().size() > parameters.size()) return false;
  std::size_t keywords = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i < node.args().size()) {
      if (parameters[i].kwarg_only()) return false;
      continue;
    }
    const bool given = node.kwarg(parameters[i].name()) || (parameters[i].name() == "self" && node.kwarg("input"));
    keywords += given;
    if (!given && !parameters[i].default_value()) return false;
  }
  return keywords == node.kwargs().size();
}

/// Could the literal stand there? Ints and dtypes are both ints while running: only here can they be told apart.
bool literal_fits(const Argument& value, const c10::Argument& parameter) {
  const c10::Type* type = parameter.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType: return !value.is_int();
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType: return !value.is_int() && value.kind() != ArgumentKind::dtype;
    default: return value.kind() != ArgumentKind::dtype;
  }
}

/// `aten::where(c, x, y)` is spelt as the overload without a name is.
bool is_another_overload(const CallTarget& target, const Node& node) {
  if (target.packets.empty() || fits_by_shape(*target.op->schema, node)) return false;
  return std::ranges::any_of(torch_overloads(target.packets.front()),
                             [&](const TorchOperator* each) { return fits_by_shape(*each->schema, node); });
}

bool literals_fit(const c10::FunctionSchema& schema, const Node& node) {
  for (std::size_t i = 0; i < node.args().size() && i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].kwarg_only()) break;  // an element of the list before: x.new_zeros(2, 3)
    if (!literal_fits(node.arg(i), schema.arguments()[i])) return false;
  }
  for (const auto& [name, value] : node.kwargs()) {
    const auto index = schema.argumentIndexWithName(name.str());
    if (index && !literal_fits(value, schema.arguments()[static_cast<std::size_t>(*index)])) return false;
  }
  return true;
}

}  // namespace

PlanCompiler::Value PlanCompiler::compile_operator(Scope& scope, const Node& node, const TorchOperator& target) {
  const c10::FunctionSchema& schema = *target.schema;
  std::vector<Operand> operands;
  if (schema.is_vararg()) {
    for (const Argument& arg : node.args()) operands.push_back(operand(scope, arg));
    operands.push_back(operand_of(constant(static_cast<std::int64_t>(node.args().size()))));
  } else {
    const auto arranged =
        arrange(node, schema.arguments(), [](const c10::Argument& a) { return std::string_view(a.name()); });
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
                                                    : arrange(node, function.parameters,
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

PlanCompiler::Value PlanCompiler::compile_packets(Scope& scope, const Node& node, const std::vector<Symbol>& packets) {
  OverloadSets sets;
  std::vector<const TorchOperator*> fitting;
  for (const Symbol packet : packets) {
    auto& set = sets.emplace_back();
    for (const TorchOperator* overload : torch_overloads(packet)) {
      if (!literals_fit(*overload->schema, node)) continue;
      set.push_back(overload);
      if (fits_by_shape(*overload->schema, node)) fitting.push_back(overload);
    }
  }
  if (fitting.size() == 1) return compile_operator(scope, node, *fitting[0]);
  std::vector<Operand> operands;
  std::vector<Symbol> keywords;
  for (const Argument& arg : node.args()) operands.push_back(operand(scope, arg));
  for (const auto& [name, value] : node.kwargs()) {
    operands.push_back(operand(scope, value));
    keywords.push_back(name);
  }
  return call_function(
      scope, node, operands,
      internal::OverloadedCall(node.target().str(), std::move(sets), node.args().size(), std::move(keywords)));
}

PlanCompiler::Value PlanCompiler::compile_normalized(Scope& scope, const Node& node) {
  if (!scope.normalized) {
    if (std::optional<Graph> call = normalized_call(node)) {
      auto body = std::make_shared<const Graph>(std::move(*call));
      Scope inner{*body, scope.root, true, false, scope.node_of(node), true, NodeMap<Value>(*body)};
      program_->bodies.push_back(body);
      std::vector<Value> values;
      for (Node* input : node.all_input_nodes()) values.push_back(scope.values[*input]);
      return compile_graph(inner, values);
    }
  }
  const std::vector<Symbol> packets = packets_by_last_name(node.target());
  if (!packets.empty()) return compile_packets(scope, node, packets);
  fail(ErrorKind::not_found, node,
       "there is no operator '" + node.target().str() + "'; give one of LibTorch's, such as aten::relu");
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

PlanCompiler::Value PlanCompiler::compile_function(Scope& scope, const Node& node) {
  Value element;
  if (take_element(scope, node, element)) return element;
  const CallTarget target = resolve_call(node.op(), node.target());
  if (target.op && !is_another_overload(target, node)) return compile_operator(scope, node, *target.op);
  if (target.function) return compile_python(scope, node, *target.function);
  return target.packets.empty() ? compile_normalized(scope, node) : compile_packets(scope, node, target.packets);
}

PlanCompiler::Value PlanCompiler::compile_method(Scope& scope, const Node& node) {
  const CallTarget target = resolve_call(node.op(), node.target());
  if (target.function) return compile_python(scope, node, *target.function);
  if (target.packets.empty()) fail(ErrorKind::not_found, node, "tensors have no method '" + node.target().str() + "'");
  return compile_packets(scope, node, target.packets);
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
