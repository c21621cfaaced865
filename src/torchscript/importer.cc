#include <fxgraph/torchscript/importer.h>

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <utility>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/copies.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/file_mode.h>
#include <fxgraph/torchscript/micro_batches.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {
namespace {

constexpr int kMaxCallDepth = 200;

bool is_plain_type(const c10::TypePtr& type) {
  if (const auto* list = type->castRaw<c10::ListType>()) return is_plain_type(list->getElementType());
  if (const auto* optional = type->castRaw<c10::OptionalType>()) return is_plain_type(optional->getElementType());
  switch (type->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::DeviceObjType: return true;
    case c10::TypeKind::TupleType:
      return std::all_of(type->containedTypes().begin(), type->containedTypes().end(), is_plain_type);
    default: return false;
  }
}

/// Optional, or one of several.
bool is_of_several_types(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType || type.kind() == c10::TypeKind::UnionType ||
         type.kind() == c10::TypeKind::AnyType;
}

/// The type as Python writes it; named tuples are tuples, so that it can be read without their class.
std::string annotation_of(const c10::TypePtr& type) {
  const c10::TypePrinter as_tuple = [&](const c10::Type& inner) -> decltype(std::declval<c10::TypePrinter>()(inner)) {
    const auto* tuple = inner.castRaw<c10::TupleType>();
    if (!tuple || !tuple->schema()) return {};
    std::string elements;
    for (const c10::TypePtr& element : tuple->elements())
      elements += (elements.empty() ? "" : ", ") + annotation_of(element);
    return "Tuple[" + elements + "]";
  };
  return type->annotation_str(as_tuple);
}

}  // namespace

Importer::Importer(const LoadOptions& options, std::optional<bool> training) : options_(options), training_(training) {}

void Importer::import_model(const torch::jit::Module& model) {
  const bool is_cut = internal::saved_micro_batches(model).size > 0;
  const auto method = model.find_method(is_cut ? internal::kMicroBatchMethod : "forward");
  if (!method) throw Error(ErrorKind::unsupported, "the model has no forward method");
  paths_.emplace(model._ivalue().get(), "");
  root_type_ = model.type();
  AbstractValue self;
  self.kind = AbstractValue::Kind::object;
  self.type = model.type();
  self.object = std::make_shared<ObjectRef>(ObjectRef{model._ivalue(), ""});
  Values args{self};
  if (!options_.examples.empty()) {
    examples_ = std::make_unique<Examples>(graph);
    settles_ = [this, model, method = method->name()] {
      return is_settled_by_one_call(model, method, options_.examples);
    };
  }
  import_inputs(method->function().getSchema(), args);
  const AbstractValue result = call(method->function(), std::move(args), "", 0);
  const auto& body = *torch::jit::toGraphFunction(method->function()).graph();
  Frame outermost;
  graph.output(to_argument(result, nullptr, *body.return_node(), outermost));
}

void Importer::import_inputs(const c10::FunctionSchema& schema, Values& args) {
  const std::vector<c10::IValue> examples = copies_of(examples_ ? options_.examples : std::vector<c10::IValue>());
  std::size_t next = 0;
  std::vector<std::pair<std::size_t, Node*>>
      several;  // of several types, with examples: their place among the arguments
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    if (const auto concrete = options_.concrete_inputs.find(parameter.name());
        concrete != options_.concrete_inputs.end()) {
      args.push_back(from_constant(concrete->second, parameter.type()));
      continue;
    }
    std::optional<Argument> default_value;
    if (parameter.default_value()) default_value = fx::to_argument(*parameter.default_value(), parameter.real_type());
    Node& input = graph.placeholder(parameter.name(), default_value);
    if (parameter.type()->kind() != c10::TypeKind::TensorType) {
      input.meta().set(meta_key::kType, annotation_of(parameter.type()));
    }
    args.push_back(AbstractValue::of_node(input, parameter.type()));
    if (!examples_) continue;
    if (next < options_.examples.size()) {
      examples_->set_input(input, examples[next++]);
    } else if (parameter.default_value()) {
      examples_->set_input(input, parameter.default_value()->deepcopy());
    } else {
      throw Error(ErrorKind::invalid_argument, "there is no example for the input '" + parameter.name() + "'");
    }
    if (is_of_several_types(*parameter.type())) several.emplace_back(args.size() - 1, &input);
  }
  if (next < options_.examples.size())
    throw Error(ErrorKind::invalid_argument, std::to_string(options_.examples.size()) +
                                                 " examples are given, and the model takes " + std::to_string(next) +
                                                 " inputs");
  // What is absent, given, or of a type is so for all that the file does with it.
  for (const auto& [place, input] : several) {
    const c10::IValue& example = *examples_->value(*input);
    const c10::TypePtr type = args[place].type;
    const auto assert_that = [&](const Argument& holds, const std::string& what) {
      AssertionWriter(graph).add(holds,
                                 "the program was read for inputs at which `" + input->target().str() + "` is " + what);
    };
    const auto is_none = [&](SizeRelation relation) { return AssertionWriter(graph).holds(relation, *input, {}); };
    if (example.isNone()) {
      assert_that(is_none(SizeRelation::equal), "None");
      args[place] = AbstractValue::of_constant(c10::IValue(), type);
    } else if (type->kind() != c10::TypeKind::OptionalType) {
      const std::string of = annotation_of(example.type());
      assert_that(graph.call_function(python::kIsInstance, {Argument(*input), Argument::opaque(of)}), "of type " + of);
      input->meta().set(meta_key::kType, of);
      args[place].type = example.isTensor() ? c10::TensorType::get() : example.type();
    } else {
      assert_that(is_none(SizeRelation::unequal), "given");
      Node& given = graph.call_function("aten::_unwrap_optional", {Argument(*input)});
      examples_->run(given);
      args[place] = AbstractValue::of_node(given, type->castRaw<c10::OptionalType>()->getElementType());
    }
  }
}

void Importer::import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, const Values& args,
                           const std::vector<bool>& given) {
  Values values = args;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::Argument& parameter = method.getSchema().arguments()[i + 1];
    // What is passed may be known better than what is declared: a tensor for an optional one.
    if (given[i])
      values[i] =
          AbstractValue::of_node(graph.placeholder(parameter.name()), args[i].type ? args[i].type : parameter.type());
  }
  import_leaf(leaf, method, std::move(values));
}

void Importer::import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, const Values& args,
                           const Examples& examples) {
  // Attention has a kernel of its own for those who want no gradients, which gives the same sizes.
  examples_ = std::make_unique<Examples>(graph, /*wants_gradients=*/true);
  std::unordered_map<const Node*, Node*> inputs;
  Values values;
  for (const AbstractValue& arg : args) values.push_back(as_input(arg, examples, inputs));
  import_leaf(leaf, method, std::move(values));
}

AbstractValue Importer::as_input(const AbstractValue& value, const Examples& examples,
                                 std::unordered_map<const Node*, Node*>& inputs) {
  AbstractValue made = value;
  if (value.is_container()) {
    made.elements = std::make_shared<Elements>();
    for (const AbstractValue& each : value.elements->values)
      made.elements->values.push_back(as_input(each, examples, inputs));
  } else if (value.is_node()) {
    Node*& input = inputs[value.node];
    if (!input) {
      const c10::IValue* known = examples.value(*value.node);
      if (!known) throw Error(ErrorKind::unsupported, value.node->name() + " is not known at the examples");
      input = &graph.placeholder(value.node->name());
      examples_->set_input(*input, known->deepcopy());
    }
    made.node = input;
  }
  return made;
}

void Importer::import_leaf(const torch::jit::Module& leaf, torch::jit::Function& method, Values args) {
  inside_leaf_ = true;
  paths_.emplace(leaf._ivalue().get(), "");
  root_type_ = leaf.type();
  AbstractValue self;
  self.kind = AbstractValue::Kind::object;
  self.type = leaf.type();
  self.object = std::make_shared<ObjectRef>(ObjectRef{leaf._ivalue(), ""});
  args.insert(args.begin(), std::move(self));
  const AbstractValue result = call(method, std::move(args), "", 0);
  Frame outermost;
  graph.output(to_argument(result, nullptr, *torch::jit::toGraphFunction(method).graph()->return_node(), outermost));
}

AbstractValue Importer::call(torch::jit::Function& function, Values args, const std::string& path, int depth) {
  if (depth > kMaxCallDepth) throw Error(ErrorKind::unsupported, "the model calls itself: " + function.name());
  torch::jit::GraphFunction* script = torch::jit::tryToGraphFunction(function);
  if (!script) throw Error(ErrorKind::unsupported, "cannot look into the built-in function " + function.name());
  const std::shared_ptr<torch::jit::Graph> body = script->graph();
  Frame frame;
  frame.path = path;
  frame.depth = depth;
  for (std::size_t i = 0; i < body->inputs().size(); ++i) {
    AbstractValue& value = frame.values[body->inputs()[i]] = std::move(args.at(i));
    if (!value.type) value.type = body->inputs()[i]->type();
  }
  Values results = run_block(*body->block(), frame);
  return results.empty() ? AbstractValue::of_constant(c10::IValue()) : std::move(results[0]);
}

Values Importer::run_block(const JitBlock& block, Frame& frame) {
  for (const JitNode* node : block.nodes()) run_node(*node, frame);
  Values results;
  for (const JitValue* output : block.outputs()) results.push_back(value_of(output, frame));
  return results;
}

void Importer::run_node(const JitNode& node, Frame& frame) {
  const auto& table = handlers();
  const auto handler = table.find(node.kind().toQualString());
  if (handler != table.end()) {
    (this->*handler->second)(node, frame);
  } else if (!fold(node, frame)) {
    emit(node, frame);
  }
}

AbstractValue& Importer::value_of(const JitValue* value, Frame& frame) { return frame.values.at(value); }

Values Importer::inputs_of(const JitNode& node, Frame& frame) {
  Values values;
  for (const JitValue* input : node.inputs()) values.push_back(value_of(input, frame));
  return values;
}

void Importer::set(const JitNode& node, Frame& frame, AbstractValue value, std::size_t output) {
  if (!value.type) value.type = node.outputs()[output]->type();
  frame.values[node.outputs()[output]] = std::move(value);
}

// A pure operator on constants whose results are no tensors is run now.
bool Importer::fold(const JitNode& node, Frame& frame) {
  if (!node.maybeOperator() || node.outputs().empty() || node.hasSideEffects() || node.isNondeterministic())
    return false;
  const c10::FunctionSchema& schema = node.schema();
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.alias_info() && argument.alias_info()->isWrite()) return false;
  }
  for (const JitValue* output : node.outputs()) {
    if (!is_plain_type(output->type())) return false;
  }
  torch::jit::Stack stack;
  for (const JitValue* input : node.inputs()) {
    const AbstractValue& value = value_of(input, frame);
    if (!is_known(value)) return false;
    stack.push_back(to_constant(value));
  }
  if (node.inputs().empty()) return false;  // reads the state of the process
  if (schema.is_vararg()) stack.emplace_back(static_cast<std::int64_t>(node.inputs().size()));
  try {
    node.getOperation()(stack);
  } catch (const std::exception& error) {
    refuse(node, frame, first_line(error));
  }
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    set(node, frame, from_constant(stack.at(i), node.outputs()[i]->type()), i);
  }
  return true;
}

AbstractValue Importer::from_constant(const c10::IValue& value, const c10::TypePtr& type) {
  using Kind = AbstractValue::Kind;
  if (value.isTensor()) return tensor_constant(value.toTensor());
  if (!value.isList() && !value.isTuple() && !value.isGenericDict()) return AbstractValue::of_constant(value, type);
  Values elements;
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      elements.push_back(from_constant(item.key(), nullptr));
      elements.push_back(from_constant(item.value(), nullptr));
    }
    return AbstractValue::of_elements(Kind::dict, std::move(elements), type ? type : value.type());
  }
  const auto parts = value.isTuple() ? c10::ArrayRef<c10::IValue>(value.toTupleRef().elements()) : value.toListRef();
  for (const c10::IValue& part : parts) elements.push_back(from_constant(part, nullptr));
  return AbstractValue::of_elements(value.isTuple() ? Kind::tuple : Kind::list, std::move(elements),
                                    type ? type : value.type());
}

void Importer::refuse(const JitNode& node, const Frame& frame, const std::string& what) const {
  const JitNode* placed = &node;  // what sets an attribute has no line of its own
  for (const JitValue* input : node.inputs()) {
    if (!location_of(node).known() && location_of(*input->node()).known()) placed = input->node();
  }
  const SourceLocation place = location_of(*placed);
  const std::string line = source_line(*placed);
  std::string message = what;
  if (!line.empty()) message += ": `" + line + "`";
  if (place.known()) message += " (" + place.str() + (frame.path.empty() ? ")" : ", in module '" + frame.path + "')");
  throw Error(ErrorKind::unsupported, message, {}, {});
}

const std::unordered_map<std::string, Importer::Handler>& Importer::handlers() {
  static const auto& table = *new std::unordered_map<std::string, Handler>{
      {"prim::Constant", &Importer::load_constant},
      {"prim::GetAttr", &Importer::get_attribute},
      {"prim::SetAttr", &Importer::set_attribute},
      {"prim::CallMethod", &Importer::call_method},
      {"prim::CallFunction", &Importer::call_function},
      {"prim::CreateObject", &Importer::create_object},
      {"prim::Enter", &Importer::enter},
      {"prim::Exit", &Importer::leave},
      {"prim::If", &Importer::run_if},
      {"prim::Loop", &Importer::run_loop},
      {"prim::RaiseException", &Importer::raise},
      {"prim::Uninitialized", &Importer::uninitialized},
      {"prim::isinstance", &Importer::is_instance},
      {"prim::unchecked_cast", &Importer::pass_through},
      {"prim::unchecked_unwrap_optional", &Importer::pass_through},
      {"aten::_unwrap_optional", &Importer::pass_through},
      {"aten::__is__", &Importer::is_none},
      {"aten::__isnot__", &Importer::is_none},
      {"aten::warn", &Importer::ignore},
      {"prim::profile", &Importer::pass_through},
      {"prim::ListConstruct", &Importer::make_list},
      {"prim::TupleConstruct", &Importer::make_tuple},
      {"prim::DictConstruct", &Importer::make_dict},
      {"prim::ListUnpack", &Importer::unpack},
      {"prim::TupleUnpack", &Importer::unpack},
      {"prim::TupleIndex", &Importer::tuple_index},
      {"prim::TupleSlice", &Importer::tuple_slice},
      {"aten::len", &Importer::length},
      {"aten::__getitem__", &Importer::get_item},
      {"aten::_set_item", &Importer::set_item},
      {"aten::append", &Importer::append},
      {"aten::extend", &Importer::extend},
      {"aten::insert", &Importer::insert},
      {"aten::pop", &Importer::pop},
      {"aten::clear", &Importer::clear},
      {"aten::reverse", &Importer::reverse},
      {"aten::sort", &Importer::sort},
      {"aten::dict", &Importer::new_dict},
      {"aten::copy", &Importer::copy_list},
      {"aten::list", &Importer::copy_list},
      {"aten::slice", &Importer::slice},
      {"aten::add", &Importer::concatenate},
      {"aten::add_", &Importer::concatenate},
      {"aten::mul", &Importer::repeat_list},
      {"aten::__contains__", &Importer::contains},
      {"aten::keys", &Importer::dict_keys},
      {"aten::values", &Importer::dict_values},
      {"aten::items", &Importer::dict_items},
      {"aten::get", &Importer::dict_get},
      {"aten::update", &Importer::dict_update},
      {"aten::Delete", &Importer::dict_delete},
  };
  return table;
}

}  // namespace fx::torchscript
