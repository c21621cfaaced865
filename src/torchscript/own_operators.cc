#include <fxgraph/torchscript/own_operators.h>

#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/schema_matching.h>

#include <string>

namespace fx::internal {
namespace {

namespace jit = torch::jit;

constexpr std::string_view kOperators = "fxgraph::", kFunctions = "__torch__.fxgraph.";

}  // namespace

jit::Value* call_own_operator(jit::Graph& graph, jit::CompilationUnit& unit, Symbol target, jit::Graph& body,
                              const jit::MatchedSchema& arguments) {
  const c10::QualifiedName name(std::string(kFunctions).append(target.view().substr(kOperators.size())));
  jit::Function* function = unit.find_function(name);
  if (!function) function = unit.create_function(name, body.copy());
  jit::Value* result = graph.insertFunctionCall(function, arguments);
  if (arguments.return_types.size() != 1) result->setType(c10::TupleType::create(arguments.return_types));
  return result;
}

Symbol own_operator_of(std::string_view function) {
  if (!function.starts_with(kFunctions)) return {};
  return Symbol(std::string(kOperators).append(function.substr(kFunctions.size())));
}

}  // namespace fx::internal
