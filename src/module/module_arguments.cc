#include <fxgraph/module/module_arguments.h>

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

struct Parameter {
  Symbol name;
  std::optional<Argument> otherwise;  // without it the call must have one
};

std::optional<std::vector<Parameter>> parameters_of(const Graph& body) {
  std::vector<Parameter> parameters;
  for (const Node* placeholder : body.placeholders()) {
    if (placeholder->target().view().starts_with('*')) return std::nullopt;
    parameters.push_back({placeholder->target(), std::nullopt});
    if (!placeholder->args().empty()) parameters.back().otherwise = placeholder->arg(0);
  }
  return parameters;
}

/// Those of a scripted forward; a default that no graph can write is left to it, with all behind it.
std::vector<Parameter> parameters_of(const c10::FunctionSchema& forward) {
  std::vector<Parameter> parameters;
  for (const c10::Argument& argument : forward.arguments()) {
    if (&argument == &forward.arguments().front()) continue;  // self
    if (argument.default_value() && !argument.default_value()->isNone()) break;
    parameters.push_back({Symbol(argument.name()), std::nullopt});
    if (argument.default_value()) parameters.back().otherwise = Argument();
  }
  return parameters;
}

std::optional<std::vector<Parameter>> parameters_of(const GraphModule& module, const Node& call) {
  const auto called = module.find_submodule(call.target().str());
  if (!called) return std::nullopt;
  if (const auto body = module_body(called)) return parameters_of(*body);
  const auto* leaf = dynamic_cast<const LeafModule*>(called.get());
  if (!leaf || !leaf->script()) return std::nullopt;
  return parameters_of(leaf->script()->get_method(leaf->script_method()).function().getSchema());
}

}  // namespace

std::optional<NormalizedArguments> normalized_arguments(const GraphModule& module, const Node& node, bool to_kwargs) {
  if (!node.is(Op::call_module)) return normalized_arguments(node, to_kwargs);
  const auto parameters = parameters_of(module, node);
  if (!parameters || node.args().size() > parameters->size()) return std::nullopt;
  NormalizedArguments result;
  std::size_t named = 0;
  for (std::size_t i = 0; i < parameters->size(); ++i) {
    const Parameter& parameter = (*parameters)[i];
    const bool by_position = i < node.args().size();
    const Argument* given = by_position ? &node.arg(i) : node.kwarg(parameter.name);
    if (by_position && node.kwarg(parameter.name)) return std::nullopt;
    named += !by_position && given;
    if (!given && parameter.otherwise) given = &*parameter.otherwise;
    if (!given) return std::nullopt;
    if (by_position && !to_kwargs) {
      result.args.push_back(*given);
    } else {
      result.kwargs.push_back({parameter.name, *given});
    }
  }
  if (named != node.kwargs().size()) return std::nullopt;
  return result;
}

std::size_t normalize_args(GraphModule& module) {
  std::size_t changed = 0;
  for (Node& node : module.graph().nodes()) {
    const std::optional<NormalizedArguments> normal = normalized_arguments(module, node);
    if (!normal || (node.args().empty() && node.kwargs().to_vector() == normal->kwargs)) continue;
    node.set_args_kwargs({}, normal->kwargs);
    ++changed;
  }
  return changed;
}

}  // namespace fx
