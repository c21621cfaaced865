#include <fxgraph/module/interpreter.h>

#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/failure.h>
#include <fxgraph/run/grad_mode_on_failure.h>
#include <fxgraph/run/input_kind.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/none_inputs.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

bool takes_the_rest(const Node& placeholder) { return placeholder.target().view().starts_with('*'); }

// By id a node of another graph would pass for one of this.
void require_runs(const Graph& graph, const Node* node) {
  if (node && !node->is_erased() && &node->graph() == &graph) return;
  const std::string which = !node               ? "a null node"
                            : node->is_erased() ? "an erased node"
                                                : node->name() + ", a node of another graph";
  throw Error(ErrorKind::invalid_argument,
              "the interpreter was given a value for " + which + "; give values for nodes of the graph that it runs",
              node && !node->is_erased() ? node->name() : std::string());
}

}  // namespace

void Interpreter::find_last_uses() {
  last_user_ = NodeMap<const Node*>(graph_, nullptr);
  for (const Node& node : graph_.nodes().reversed()) {
    node.for_each_input([&](const Node& input) {
      if (!last_user_[input]) last_user_[input] = &node;
    });
  }
}

void Interpreter::drop_dead_values(const Node& node) {
  node.for_each_input([&](const Node& input) {
    if (last_user_[input] == &node) environment_[input].reset();
  });
  if (!last_user_[node]) environment_[node].reset();
}

void Interpreter::check_number_of_inputs(std::size_t given) const {
  std::size_t wanted = 0;
  for (const Node* placeholder : graph_.placeholders()) {
    if (environment_[*placeholder]) continue;
    if (takes_the_rest(*placeholder)) return;
    ++wanted;
  }
  if (given <= wanted) return;
  throw Error(ErrorKind::invalid_argument, "the graph takes " + std::to_string(wanted) + " inputs, " +
                                               std::to_string(given) + " were given; leave out the last");
}

Value Interpreter::run(Args inputs, const Environment& initial) {
  environment_ = NodeMap<std::optional<Value>>(graph_);
  none_inputs_.clear();
  for (const auto& [node, value] : initial) {
    require_runs(graph_, node);
    environment_[*node] = value;
  }
  check_number_of_inputs(inputs.size());
  if (!keep_values_) find_last_uses();
  inputs_ = std::move(inputs);
  next_input_ = 0;
  struct Finish {
    Interpreter& self;
    ~Finish() {
      self.current_ = nullptr;
      self.inputs_.clear();
      if (!self.keep_values_) self.environment_ = {};
    }
  } finish{*this};
  const internal::GradModeOnFailure grad_mode;
  return run_nodes();
}

Value Interpreter::run_nodes() {
  for (const Node& node : graph_.nodes()) {
    if (environment_[node]) continue;
    current_ = &node;
    try {
      environment_[node] = run_node(node);
      if (node.is(Op::placeholder)) internal::add_none_inputs(none_inputs_, node.target().str(), *environment_[node]);
    } catch (const Error& error) {
      if (error.node() == node.name()) throw;
      fail(node, error.message());
    } catch (const std::exception& error) {
      fail(node, first_line(error));
    }
    if (node.is(Op::output)) return *environment_[node];
    if (!keep_values_) drop_dead_values(node);
  }
  return {};
}

void Interpreter::fail(const Node& node, const std::string& cause) const {
  throw Error(ErrorKind::execution,
              internal::failure_text(node, format_node(node), internal::cause_of_failure(node, none_inputs_, cause)),
              node.name());
}

Value Interpreter::boxed_run(Args& inputs) {
  const std::size_t expected = graph_.placeholders().size();
  if (inputs.size() != expected) {
    throw Error(ErrorKind::invalid_argument, "the graph takes " + std::to_string(expected) + " inputs, " +
                                                 std::to_string(inputs.size()) + " were given");
  }
  return run(std::exchange(inputs, {}));
}

std::optional<Value> Interpreter::value_of(const Node& node) const { return environment_[node]; }

Value Interpreter::run_node(const Node& node) {
  const auto [args, kwargs] = fetch_args_kwargs_from_env(node);
  switch (node.op()) {
    case Op::placeholder: return placeholder(node.target(), args, kwargs);
    case Op::get_attr: return get_attr(node.target(), args, kwargs);
    case Op::call_function: return call_function(node.target(), args, kwargs);
    case Op::call_method: return call_method(node.target(), args, kwargs);
    case Op::call_module: return call_module(node.target(), args, kwargs);
    case Op::output: break;
  }
  return output(node.target(), args, kwargs);
}

Value Interpreter::placeholder(const Target& target, const Args& args, const Kwargs&) {
  if (target.view().starts_with('*')) {  // *args takes the rest as a list
    Args rest(
        std::make_move_iterator(inputs_.begin() + static_cast<std::ptrdiff_t>(std::min(next_input_, inputs_.size()))),
        std::make_move_iterator(inputs_.end()));
    next_input_ = inputs_.size();
    return make_list(std::move(rest));
  }
  if (next_input_ < inputs_.size()) {
    if (current_) internal::require_kind(target.str(), inputs_[next_input_], internal::input_kind(*current_));
    return std::move(inputs_[next_input_++]);
  }
  if (!args.empty()) return args[0];
  throw Error(ErrorKind::invalid_argument,
              "there is no value for the input " + target.str() + " and it has no default");
}

Value Interpreter::get_attr(const Target& target, const Args&, const Kwargs&) { return fetch_attr(target); }

Value Interpreter::call_function(const Target& target, const Args& args, const Kwargs& kwargs) {
  return call_function_target(target, {args, kwargs, current_});
}

Value Interpreter::call_method(const Target& target, const Args& args, const Kwargs& kwargs) {
  return call_method_target(target, {args, kwargs, current_});
}

// Through a plan of one call, so that leaves and C++ modules run exactly as in GraphModule::run. It bears the name and
// the notes of the node that is running, for the errors that the plan throws. Kept as long as the path leads to the
// same module.
Value Interpreter::call_module(const Target& target, const Args& args, const Kwargs& kwargs) {
  std::string form = target.str() + ' ' + std::to_string(args.size());
  for (const auto& [name, value] : kwargs) form.append(1, ' ').append(name.view());
  if (current_) form.append(1, '%').append(current_->name());
  ModuleCall& call = module_calls_[form];
  const std::shared_ptr<torch::nn::Module> called = module_.find_submodule(target.str());
  if (!call.program || call.called != called) {
    call = {called, std::make_shared<GraphModule>(module_, graph_of_call(target, args.size(), kwargs))};
  }
  Args inputs = args;
  for (const auto& [name, value] : kwargs) inputs.push_back(value);
  return call.program->run(std::move(inputs));
}

Graph Interpreter::graph_of_call(const Target& target, std::size_t num_args, const Kwargs& kwargs) const {
  Graph call;
  std::vector<Argument> nodes;
  std::vector<NamedArgument> named;
  for (std::size_t i = 0; i < num_args; ++i) nodes.emplace_back(call.placeholder("arg_" + std::to_string(i)));
  for (const auto& [name, value] : kwargs) named.push_back({name, call.placeholder(name.view())});
  Node& node = call.call_module(target, nodes, named, current_ ? current_->name() : std::string());
  if (current_ && current_->find_meta()) node.meta() = *current_->find_meta();
  call.output(node);
  return call;
}

Value Interpreter::output(const Target&, const Args& args, const Kwargs&) { return args.empty() ? Value() : args[0]; }

Value Interpreter::fetch_attr(const Target& target) {
  const std::string path = target.str();
  if (module_.find_attribute(path).defined()) return module_.attribute(path);
  if (const c10::IValue* object = find_object(module_, path)) return *object;
  Value graph = nested_graph_value(module_.find_submodule(path));
  return graph.isNone() ? Value(module_.attribute(path)) : graph;
}

Value Interpreter::map_nodes_to_values(const Argument& argument) {
  return to_ivalue(argument, nullptr, [&](Node& node) -> c10::IValue {
    const std::optional<Value>& value = environment_[node];
    if (!value) throw Error(ErrorKind::execution, "the value of " + node.name() + " is not there");
    return *value;
  });
}

std::pair<Args, Kwargs> Interpreter::fetch_args_kwargs_from_env(const Node& node) {
  std::pair<Args, Kwargs> values;
  for (const Argument& argument : node.args()) values.first.push_back(map_nodes_to_values(argument));
  for (const auto& [name, argument] : node.kwargs()) values.second.emplace_back(name, map_nodes_to_values(argument));
  return values;
}

}  // namespace fx
