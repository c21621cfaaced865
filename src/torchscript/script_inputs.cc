#include <fxgraph/torchscript/script_inputs.h>

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <fxgraph/codegen/script_name.h>
#include <fxgraph/run/input_kind.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/reflected.h>
#include <fxgraph/torchscript/script_schemas.h>

namespace fx::internal {

namespace jit = torch::jit;
using jit::NamedValue;
using jit::Value;

Value* build_input(jit::Graph& graph, const Node& placeholder) {
  Value* given = graph.addInput(script_variable(placeholder.target().view()))->setType(input_type(placeholder));
  if (!asks_type(placeholder) || !placeholder.args().empty()) return given;
  jit::Node* cast = graph.insertNode(graph.create(c10::prim::unchecked_cast, {given}));
  cast->output()->setType(given->type());
  given->setType(c10::AnyType::get());
  return cast->output();
}

Value* build_type_question(jit::Graph& graph, Value* value, std::string_view type) {
  const std::string declared = value->type()->annotation_str();
  if (declared != type)
    throw Error(ErrorKind::unsupported, "whether a value of type " + declared + " is of another is not written");
  if (value->node()->kind() != c10::prim::unchecked_cast) return graph.insertConstant(true);
  jit::Node* asked = graph.insertNode(graph.create(c10::prim::isinstance, {value->node()->input()}));
  asked->tys_(c10::attr::types, {value->type()});
  asked->output()->setType(c10::BoolType::get());
  return asked->output();
}

Value* build_assertion(jit::Graph& graph, Value* condition, const Node& assertion) {
  if (condition->type()->isSubtypeOf(*c10::TensorType::get()))
    condition = jit::emitBuiltinCall(no_source(), graph, c10::aten::Bool, {NamedValue(condition)}, {});
  const Argument* message = assertion.args().size() > 1 ? &assertion.args()[1] : assertion.kwarg("message");
  jit::Node* branch = graph.insertNode(graph.create(c10::prim::If, {condition}, 0));
  branch->addBlock();
  const jit::WithInsertPoint inside(branch->addBlock());
  Value* text =
      graph.insertConstant(std::string(message && message->is_string() ? message->as_string() : "assertion failed"));
  Value* none = graph.insertConstant(c10::IValue());
  graph.insertNode(graph.create(c10::prim::RaiseException, {text, none}, 0));
  return none;
}

}  // namespace fx::internal
