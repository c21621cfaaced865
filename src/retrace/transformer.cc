// A literal loses something on its way through a Value (a dtype becomes an int, a tuple of ints a list), so an argument
// that an override passes on as it was fetched is written as the old node has it.

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/retrace/transformer.h>

namespace fx {

Transformer::Transformer(GraphModule& module, const Shapes* shapes) : Interpreter(module), shapes_(shapes) {}
Transformer::~Transformer() = default;

std::shared_ptr<GraphModule> Transformer::transform() {
  // Everything that the old graph names, under an empty graph.
  result_ = std::make_shared<GraphModule>(module(), graph().clone(), module().class_name());
  result_->set_graph(Graph());
  result_shapes_ = Shapes(result_->graph());
  tracer_ = std::make_unique<GraphAppendingTracer>(*result_, shapes_ ? &result_shapes_ : nullptr);
  struct Finish {
    Transformer& self;
    ~Finish() {
      self.tracer_.reset();
      self.result_.reset();
      self.fetched_ = {};
    }
  } finish{*this};
  {
    const GraphAppendingTracer::Recording recording = tracer_->record();
    run({});
  }
  result_->delete_all_unused_submodules();
  result_->delete_all_unused_attributes();
  return result_;
}

Value Transformer::run_node(const Node& node) {
  Graph& made = result_->graph();
  const std::uint32_t first = made.id_bound();
  Value value = Interpreter::run_node(node);
  const Meta* meta = node.find_meta();
  for (std::uint32_t id = first; meta && id < made.id_bound(); ++id) {
    Node* fresh = made.node_by_id(id);
    if (fresh && !fresh->find_meta()) fresh->meta() = *meta;
  }
  return value;
}

std::pair<Args, Kwargs> Transformer::fetch_args_kwargs_from_env(const Node& node) {
  fetched_ = Interpreter::fetch_args_kwargs_from_env(node);
  return fetched_;
}

Argument Transformer::argument_for(const Value& value, const Argument* original, const Value* fetched) {
  if (!original || !fetched || !value.is(*fetched)) return tracer_->argument(value);
  return map_nodes(*original, [this](Node& input) { return tracer_->argument(map_nodes_to_values(Argument(input))); });
}

Node& Transformer::emit(Op op, const Target& target, const Args& args, const Kwargs& kwargs) {
  const Node& node = *current_node();
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool known = i < fetched_.first.size();
    arguments.push_back(argument_for(args[i], known ? &node.args()[i] : nullptr, known ? &fetched_.first[i] : nullptr));
  }
  std::vector<NamedArgument> named;
  for (const auto& [name, value] : kwargs) {
    const Argument* original = node.kwarg(name);
    const Value* fetched = nullptr;
    for (const auto& [key, old] : fetched_.second) {
      if (key == name) fetched = &old;
    }
    named.push_back({name, argument_for(value, original, fetched)});
  }
  const bool same_call = op == node.op() && target == node.target();
  Node& made = result_->graph().create_node(op, target, arguments, named, same_call ? node.name() : std::string());
  if (shapes_ && same_call) result_shapes_[made] = (*shapes_)[node];
  return made;
}

Value Transformer::placeholder(const Target& target, const Args& args, const Kwargs& kwargs) {
  return proxy(emit(Op::placeholder, target, args, kwargs));
}

Value Transformer::get_attr(const Target& target, const Args& args, const Kwargs& kwargs) {
  return proxy(emit(Op::get_attr, target, args, kwargs));
}

Value Transformer::call_function(const Target& target, const Args& args, const Kwargs& kwargs) {
  // An override may have replaced a node of several results by a tuple of proxies: then there is something to take.
  const bool known_tuple = target == python::kGetItem && args.size() == 2 && args[0].isTuple();
  if (known_tuple) return Interpreter::call_function(target, args, kwargs);
  return proxy(emit(Op::call_function, target, args, kwargs));
}

Value Transformer::call_method(const Target& target, const Args& args, const Kwargs& kwargs) {
  return proxy(emit(Op::call_method, target, args, kwargs));
}

Value Transformer::call_module(const Target& target, const Args& args, const Kwargs& kwargs) {
  return proxy(emit(Op::call_module, target, args, kwargs));
}

Value Transformer::output(const Target& target, const Args& args, const Kwargs& kwargs) {
  emit(Op::output, target, args, kwargs);
  return args.empty() ? Value() : args[0];
}

}  // namespace fx
