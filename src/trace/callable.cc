#include <fxgraph/trace/callable.h>

#include <fxgraph/trace/trace_error.h>

namespace fx::internal {

Argument run(const Callable& callable, Inputs& inputs) {
  try {
    return callable.run(inputs);
  } catch (const c10::Error& error) {
    if (std::optional<Error> refused = no_typed_data(error)) throw std::move(*refused);
    throw;
  }
}

Callable callable_from_graph_module(std::shared_ptr<GraphModule> module) {
  Callable callable;
  callable.root = module;
  callable.parameters.resize(module->graph().placeholders().size());
  callable.run = [module](Inputs& inputs) {
    const std::vector<Node*> placeholders = module->graph().placeholders();
    std::size_t required = 0;
    for (const Node* node : placeholders) required += node->args().empty();
    std::vector<c10::IValue> values;
    const std::size_t count = inputs.count(required);
    for (std::size_t i = 0; i < count; ++i) {
      const Meta* meta = placeholders[i]->find_meta();
      const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
      values.push_back(inputs.bind_any({ParameterKind::tensor, /*optional=*/i >= required, type ? *type : ""}));
    }
    return ivalue_to_argument(inputs.session(), module->run(std::move(values)));
  };
  return callable;
}

}  // namespace fx::internal
