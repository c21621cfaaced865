// From IR nodes to nodes of the new graph.
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/executor_rewrites.h>
#include <fxgraph/torchscript/importer.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {
namespace {

std::string target_of(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

bool is_default(const Argument& value, const c10::Argument& parameter) {
  if (!parameter.default_value()) return false;
  const std::optional<Argument> standard = fx::to_argument(*parameter.default_value(), parameter.real_type());
  return standard && *standard == value;
}

// Defaults at the end say nothing.
void drop_defaults(std::vector<Argument>& args, const c10::FunctionSchema& schema) {
  while (!schema.is_vararg() && !args.empty() && is_default(args.back(), schema.arguments()[args.size() - 1]))
    args.pop_back();
}

// Tracing stores the 2.5 of `x * 2.5` as a tensor, and forgets that it was a number, which has no say in the type of
// the result. TorchScript's executor takes such constants of these operators for numbers; so does this.
std::optional<Argument> number_operand(const JitNode& node, const c10::FunctionSchema& schema) {
  static const std::unordered_set<std::string> kArithmetic{"aten::add", "aten::sub", "aten::mul", "aten::div"};
  if (schema.overload_name() != "Tensor" || !kArithmetic.contains(schema.name())) return std::nullopt;
  const JitNode& operand = *node.inputs()[1]->node();
  if (operand.kind() != torch::jit::prim::Constant) return std::nullopt;
  const at::Tensor& number = operand.t(torch::jit::attr::value);
  if (!number.defined() || number.dim() != 0 || !number.device().is_cpu()) return std::nullopt;
  if (number.scalar_type() == at::kDouble) return Argument(number.item<double>());
  if (number.scalar_type() == at::kLong) return Argument(number.item<std::int64_t>());
  return std::nullopt;
}

}  // namespace

void Importer::annotate(Node& made, const JitNode& node, const Frame& frame) {
  if (inside_leaf_) return;
  if (!frame.path.empty()) made.meta().set(meta_key::kModuleStack, frame.path);
  if (!options_.source_locations) return;
  const SourceLocation place = location_of(node);
  if (place.known()) made.meta().set(meta_key::kStackTrace, place.str());
}

Node& Importer::emit_call(const JitNode& node, Frame& frame, Symbol target, const std::vector<Argument>& args,
                          const std::vector<NamedArgument>& kwargs) {
  Node& made = graph.call_function(target, args, kwargs);
  annotate(made, node, frame);
  if (examples_) examples_->run(made);
  return made;
}

Argument Importer::to_argument(const AbstractValue& value, const c10::TypePtr& type, const JitNode& node,
                               Frame& frame) {
  using Kind = AbstractValue::Kind;
  switch (value.kind) {
    case Kind::node: return Argument(*value.node);
    case Kind::constant:
      if (const std::optional<Argument> literal = fx::to_argument(value.constant, type)) return *literal;
      break;
    case Kind::list:
    case Kind::tuple:
    case Kind::dict: {
      std::vector<Argument> elements;
      for (const AbstractValue& element : value.elements->values)
        elements.push_back(to_argument(element, nullptr, node, frame));
      if (value.is_dict()) return Argument::dict(elements);
      return value.is_list() ? Argument::list(elements) : Argument::tuple(elements);
    }
    case Kind::uninitialized: return Argument();
    default: break;
  }
  refuse(node, frame,
         "a value of type " + (value.type ? value.type->annotation_str() : "unknown") + " cannot be passed in a graph");
}

void Importer::emit(const JitNode& node, Frame& frame) {
  if (!node.maybeOperator() || !node.blocks().empty()) {
    refuse(node, frame, std::string("cannot import ") + node.kind().toQualString());
  }
  if (emit_convolution(node, frame)) return;
  if (const torch::jit::Value* value = internal::written_value(node)) return set(node, frame, value_of(value, frame));
  const c10::FunctionSchema& schema = node.schema();
  const std::optional<Argument> number = number_operand(node, schema);
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const AbstractValue& value = value_of(node.inputs()[i], frame);
    if (schema.is_vararg() || i >= schema.arguments().size()) {
      args.push_back(to_argument(value, nullptr, node, frame));
      continue;
    }
    if (number && i == 1) {
      args.push_back(*number);
      continue;
    }
    const c10::Argument& parameter = schema.arguments()[i];
    if (value.is_container() && parameter.alias_info() && parameter.alias_info()->isWrite()) {
      refuse(node, frame,
             std::string(node.kind().toQualString()) + " writes to a list in a way that cannot become a graph");
    }
    Argument argument = to_argument(value, parameter.real_type(), node, frame);
    if (parameter.kwarg_only()) {
      if (!is_default(argument, parameter)) kwargs.push_back({Symbol(parameter.name()), std::move(argument)});
    } else {
      args.push_back(std::move(argument));
    }
  }
  drop_defaults(args, schema);
  Node& made = emit_call(node, frame, number ? schema.name() + ".Scalar" : target_of(schema), args, kwargs);
  const auto outputs = node.outputs();
  if (outputs.size() == 1) return set(node, frame, AbstractValue::of_node(made, outputs[0]->type()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]->hasUses()) continue;
    Node& element = emit_call(node, frame, python::kGetItem, {Argument(made), Argument(static_cast<std::int64_t>(i))});
    set(node, frame, AbstractValue::of_node(element, outputs[i]->type()), i);
  }
}

// Tracing records the internal aten::_convolution for every convolution. The public operator of its number of
// dimensions does the same; the flags at the end are global settings, read when it runs.
bool Importer::emit_convolution(const JitNode& node, Frame& frame) {
  if (std::string(node.kind().toQualString()) != "aten::_convolution") return false;
  const Values in = inputs_of(node, frame);
  if (in.size() < 9 || !is_known(in[3]) || !is_known(in[6])) return false;
  const std::size_t dims = in[3].elements->values.size();
  const bool transposed = to_constant(in[6]).toBool();
  if (dims < 1 || dims > 3) return false;
  const auto argument = [&](std::size_t i) { return to_argument(in[i], nullptr, node, frame); };
  const std::string rank = std::to_string(dims) + "d";
  std::vector<Argument> args{argument(0), argument(1), argument(2), argument(3), argument(4)};
  if (transposed) {
    for (const std::size_t i : {std::size_t{7}, std::size_t{8}, std::size_t{5}}) args.push_back(argument(i));
  } else {
    for (const std::size_t i : {std::size_t{5}, std::size_t{8}}) args.push_back(argument(i));
  }
  const std::string target =
      transposed ? "aten::conv_transpose" + rank + (dims == 1 ? "" : ".input") : "aten::conv" + rank;
  drop_defaults(args, *find_torch_operator(target)->schema);
  set(node, frame, AbstractValue::of_node(emit_call(node, frame, target, args), node.output()->type()));
  return true;
}

void Importer::emit_item(const JitNode& node, Frame& frame, const AbstractValue& container,
                         const AbstractValue& index) {
  // By bytes, where Python counts characters.
  const bool of_text = node.inputs()[0]->type()->kind() == c10::TypeKind::StringType;
  Node& element = emit_call(node, frame, of_text ? Symbol("aten::__getitem__.str") : python::kGetItem,
                            {to_argument(container, nullptr, node, frame), to_argument(index, nullptr, node, frame)});
  set(node, frame, AbstractValue::of_node(element, node.output()->type()));
}

AbstractValue Importer::tensor_attribute(const std::string& path, const at::Tensor& tensor, bool is_parameter) {
  const auto [at, fresh] = attribute_nodes_.try_emplace(path, nullptr);
  if (fresh) {
    at->second = &graph.get_attr(path);
    tensors.push_back({path, tensor, is_parameter});
    if (examples_) examples_->set_attribute(*at->second, tensor, is_parameter);
  }
  return AbstractValue::of_node(*at->second, c10::TensorType::get());
}

// Packed weights and their like: what only LibTorch can look into.
AbstractValue Importer::object_attribute(const std::string& path, const c10::IValue& value) {
  const auto [at, fresh] = attribute_nodes_.try_emplace(path, nullptr);
  if (fresh) {
    at->second = &graph.get_attr(path);
    objects.emplace_back(path, value);
    if (examples_) examples_->set_attribute(*at->second, value, /*is_parameter=*/false);
  }
  return AbstractValue::of_node(*at->second, value.type());
}

// A tensor in the program itself becomes a buffer, as in FX.
AbstractValue Importer::tensor_constant(const at::Tensor& tensor) {
  if (!tensor.defined()) return AbstractValue::of_constant(c10::IValue());
  const auto [at, fresh] = constant_paths_.try_emplace(tensor.unsafeGetTensorImpl());
  if (fresh) {
    // What the model has under such a name is another tensor.
    do at->second = "_tensor_constant" + std::to_string(num_constants_++);
    while (root_type_ && (root_type_->hasAttribute(at->second) || root_type_->hasConstant(at->second)));
  }
  return tensor_attribute(at->second, tensor, /*is_parameter=*/false);
}

AbstractValue Importer::attribute_value(const ObjectRef& owner, const std::string& name, std::size_t slot) {
  using Kind = AbstractValue::Kind;
  const std::string path = join_path(owner.path, name);
  const c10::IValue& value = owner.object->getSlot(slot);
  const c10::TypePtr& type = owner.object->type()->getAttribute(slot);
  if (value.isTensor() && value.toTensor().defined()) {
    return tensor_attribute(path, value.toTensor(), owner.object->type()->is_parameter(slot));
  }
  if (value.isCustomClass()) return object_attribute(path, value);
  if (value.isObject()) {
    AbstractValue made;
    made.kind = Kind::object;
    made.type = value.toObject()->type();
    const auto known = paths_.try_emplace(value.toObject().get(), path).first;
    made.object = std::make_shared<ObjectRef>(ObjectRef{value.toObject(), known->second});
    return made;
  }
  if (!value.isList() && !value.isTuple() && !value.isGenericDict()) return from_constant(value, type);
  // One list, whoever reads it; its tensors are buffers below its name.
  const auto [at, fresh] = attribute_lists_.try_emplace(path);
  if (fresh && value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTensor()) {
    Values elements;
    for (const c10::IValue& element : value.toListRef()) {
      elements.push_back(tensor_attribute(join_path(path, std::to_string(elements.size())), element.toTensor(), false));
    }
    at->second = AbstractValue::of_elements(Kind::list, std::move(elements), type);
  } else if (fresh) {
    at->second = from_constant(value, type);
  }
  keep_for_module(at->second);
  return at->second;
}

}  // namespace fx::torchscript
