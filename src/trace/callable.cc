#include <fxgraph/trace/callable.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/program_place.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {

namespace {

bool is_standard(const std::exception& error) {
  const auto is = [&]<typename... Types>(Types*...) { return ((typeid(error) == typeid(Types)) || ...); };
  return is(static_cast<std::exception*>(nullptr), static_cast<std::runtime_error*>(nullptr),
            static_cast<std::logic_error*>(nullptr), static_cast<std::invalid_argument*>(nullptr),
            static_cast<std::out_of_range*>(nullptr), static_cast<std::domain_error*>(nullptr),
            static_cast<std::length_error*>(nullptr), static_cast<std::range_error*>(nullptr),
            static_cast<std::overflow_error*>(nullptr), static_cast<std::bad_optional_access*>(nullptr),
            static_cast<std::bad_variant_access*>(nullptr), static_cast<std::bad_function_call*>(nullptr),
            static_cast<std::bad_cast*>(nullptr), static_cast<std::bad_weak_ptr*>(nullptr));
}

Error program_threw(const std::string& message) {
  return Error(ErrorKind::trace, "symbolic_trace: the program throws while it is traced: " + message +
                                     "; a traced tensor has no data, and no gradient of its own");
}

}  // namespace

void refuse_no_program() {
  throw Error(ErrorKind::trace,
              "there is no program to trace: the pointer is null, or the function or holder is empty");
}

Argument run(const Callable& callable, Inputs& inputs) {
  const ProgramEntry entry;
  try {
    return callable.run(inputs);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    if (std::optional<Error> refused = unknown_type_error(error)) throw std::move(*refused);
    std::throw_with_nested(program_threw(first_line(error)));
  } catch (const std::exception& error) {
    // A type of the program's own passes: somebody may wait for it.
    if (!is_standard(error)) throw;
    // TorchScript words what it hands on anew.
    const std::string refused = RecordingScope::what_was_refused();
    if (!refused.empty() && std::string_view(error.what()).find(refused) != std::string_view::npos)
      throw Error(ErrorKind::trace, refused);
    std::throw_with_nested(program_threw(error.what()));
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
