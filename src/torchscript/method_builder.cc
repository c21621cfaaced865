#include <fxgraph/torchscript/method_builder.h>

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <algorithm>
#include <unordered_map>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/codegen/script_name.h>
#include <fxgraph/export/input_notes.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call_on_kinds.h>
#include <fxgraph/ops/element.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/python_names.h>
#include <fxgraph/run/call_target.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/executor_rewrites.h>
#include <fxgraph/torchscript/kept_effects.h>
#include <fxgraph/torchscript/nested_calls.h>
#include <fxgraph/torchscript/own_operators.h>
#include <fxgraph/torchscript/reflected.h>
#include <fxgraph/torchscript/script_inputs.h>
#include <fxgraph/torchscript/script_numbers.h>
#include <fxgraph/torchscript/script_schemas.h>

namespace fx::internal {

namespace {

namespace jit = torch::jit;
using jit::NamedValue;
using jit::Value;

class MethodBuilder {
 public:
  MethodBuilder(const Graph& graph, const c10::ClassTypePtr& self_type, const MethodOf& method_of,
                const ModuleInfo& modules)
      : source_(graph),
        method_of_(method_of),
        known_modules_(modules),
        built_(std::make_shared<jit::Graph>()),
        values_(graph, nullptr) {
    self_ = built_->addInput("self")->setType(self_type);
    modules_.emplace("", self_);
  }

  std::shared_ptr<jit::Graph> build() {
    const Node* first = nullptr;
    if (const std::string unknown = unknown_nested_calls(source_, first); first)
      unsupported(*first, "there are no words in it for " + unknown + "; save the program as .pt2");
    if (const auto dropped = find_dropped_effect(source_, known_modules_))
      unsupported(*dropped->first, dropped->second);
    for (const Node& node : source_.nodes()) {
      try {
        build(node);
      } catch (const Error& error) {
        if (!error.node().empty()) throw;
        unsupported(node, error.message());
      } catch (const std::exception& error) {
        unsupported(node, why_no_schema_fits(error));
      }
    }
    if (!source_.output_node()) built_->registerOutput(built_->insertConstant(c10::IValue()));
    keep_joined_parts(built_);
    return built_;
  }

 private:
  [[noreturn]] static void unsupported(const Node& node, const std::string& why) {
    throw Error(ErrorKind::unsupported, "cannot write " + format_node(node) + " as TorchScript: " + why, node.name());
  }

  void build(const Node& node) {
    switch (node.op()) {
      // The caller's keyword is the target, which need not be the node's name (`input` is kept for Python's own).
      case Op::placeholder: return define(node, build_input(*built_, node));
      case Op::get_attr: return define(node, attribute(node.target().str()));
      case Op::call_module: return define(node, call_module(node));
      case Op::call_function: return define(node, call_function(node));
      case Op::call_method: return define(node, call_python(node));
      case Op::output: return return_value(node.arg(0));
    }
  }

  void define(const Node& node, Value* value) {
    values_[node] = value;
    if (!node.is(Op::placeholder) && value != self_) value->setDebugName(script_variable(node.name()));
  }

  void return_value(const Argument& value) {  // callers write to it
    std::vector<const Node*> constant, decided;
    for_each_node(value, [&](const Node& node) {
      if (values_[node]->type()->is_module()) unsupported(node, "it is a graph, and no value of TorchScript; call it");
      if (values_[node]->type()->isSubtypeOf(*c10::TensorType::get()))
        (is_constant_result(node, known_modules_) ? constant : decided).push_back(&node);
    });
    if (!constant.empty()) make_anew(constant, decided);
    built_->registerOutput(value_of(value, nullptr));
  }

  void make_anew(const std::vector<const Node*>& constant, const std::vector<const Node*>& decided) {
    const Effects effects(source_, {.modules = known_modules_});
    std::vector<const Node*> made;
    for (const Node* node : constant) {
      const auto shares = [&](const Node* other) { return effects.may_alias(*node, *other); };
      if (std::ranges::any_of(decided, shares) || std::ranges::find(made, node) != made.end()) continue;
      if (const auto other = std::ranges::find_if(made, shares); other != made.end())
        unsupported(*node, "it shares memory with %" + (*other)->name() +
                               ", no input decides either, and TorchScript makes two tensors of them; return a clone");
      made.push_back(node);
      values_[*node] = made_anew(*built_, values_[*node]);
    }
  }

  // ── Attributes and modules ───────────────────────────────────────────────────────────────────────────────────────

  // One chain of GetAttr per path.
  Value* attribute(const std::string& path) {
    if (const auto known = modules_.find(path); known != modules_.end()) return known->second;
    const std::size_t dot = path.rfind('.');
    Value* parent = attribute(dot == std::string::npos ? "" : path.substr(0, dot));
    const std::string name = script_name(dot == std::string::npos ? path : path.substr(dot + 1));
    if (!parent->type()->expect<c10::ClassType>()->hasAttribute(name)) {
      throw Error(ErrorKind::not_found, "the module has no attribute " + path);
    }
    return modules_[path] = built_->insertGetAttr(parent, name);
  }

  Value* call_module(const Node& node) {
    Value* module = attribute(node.target().str());
    const std::string method = method_of_(node.target().str());
    const jit::Function* forward = module->type()->expect<c10::ClassType>()->findMethod(method);
    if (!forward)
      throw Error(ErrorKind::unsupported,
                  "what the module " + node.target().str() +
                      " computes is not known here; trace with raise_leaf_modules = false, or without reading the text "
                      "in between");
    const c10::FunctionSchema& schema = forward->getSchema();
    std::vector<NamedValue> args = {NamedValue(module)};
    add_positional(args, node.args(), schema);
    const jit::MatchedSchema matched =
        jit::matchSchema(schema, no_source(), *built_, args, keywords(node.kwargs(), schema));
    jit::Node* call = built_->insertNode(built_->create(c10::prim::CallMethod, matched.inputs));
    call->s_(c10::attr::name, method);
    call->output()->setType(matched.return_types.at(0));
    return call->output();
  }

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

  Value* call_function(const Node& node) {
    const std::optional<Element> taken = taken_element(node);
    if (taken || (node.target() == python::kGetItem && node.args().size() == 2))
      return build_getitem(*built_, value_of(node.arg(0), nullptr), taken ? Argument(taken->index) : node.arg(1),
                           [this](Node& input) { return values_[input]; });
    if (node.target() == python::kAssert) return build_assertion(*built_, value_of(node.arg(0), nullptr), node);
    if (node.target() == python::kIsInstance && node.args().size() == 2)
      return build_type_question(*built_, value_of(node.arg(0), nullptr), node.arg(1).as_string());
    if (node.target() == python::kLength && node.args().size() == 1) return length(node);
    const NamedValueOf value_of = [this](const Argument& value) { return named({}, value, nullptr); };
    if (Value* called = build_nested_call(*built_, node.target(), node.args(), value_of)) return called;
    if (Value* power = build_int_pow(*built_, node, value_of)) return power;
    if (const TorchOperator* op = exact_operator(node.op(), node.target())) return call_schema({node}, *op->schema);
    return call_python(node);
  }

  // The types of all values are known here: with them fx::Call knows the overload.
  Value* call_python(const Node& node) {
    CallOnKinds meant(node, [this](const Node& input) {
      const std::string kind = enumerator_kind(input);
      return kind.empty() && values_[input] ? annotation_of(*values_[input]->type()) : kind;
    });
    if (const std::string_view packet = script_operator(python_name(node.op(), node.target())); !packet.empty())
      meant.set_target(fx::Symbol(packet));
    if (!meant.resolve()) meant.resolve_forced();
    const TorchOperator* op = meant.call() ? torch_operator(meant.call()) : nullptr;
    if (!op && candidate_overloads(node.op(), node.target()).empty())
      throw Error(ErrorKind::unsupported, "TorchScript has no operator of that name");
    if (!op) throw Error(ErrorKind::unsupported, meant.refusal() + "; save the program as .pt2");
    const std::vector<Node*> inputs = node.all_input_nodes();
    const auto input_of = [&](Node& fake) { return Argument(inputs[meant.input_number(fake)]); };
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (const Argument& arg : meant.call().args()) args.push_back(map_nodes(arg, input_of));
    for (const auto& [name, value] : meant.call().kwargs()) kwargs.push_back({name, map_nodes(value, input_of)});
    return call_schema({node, args, kwargs}, *op->schema);
  }

  // Of a list, a dict, a string or a tensor; of a tuple as of a list of anything.
  Value* length(const Node& node) {
    Value* whole = value_of(node.arg(0), nullptr);
    if (whole->type()->kind() == c10::TypeKind::TupleType)
      return call_exactly({node}, *find_torch_operator("aten::len.any")->schema);
    return jit::emitBuiltinCall(no_source(), *built_, c10::aten::len, {NamedValue(whole)}, {});
  }

  Value* call_schema(const Given& given, const c10::FunctionSchema& schema) {
    if (Value* value = call_with_number(given, schema)) return value;
    if (Value* value = arithmetic_with_bool(given, schema)) return value;
    const c10::FunctionSchema* other = overload_without_bools(given, schema, is_bool);
    return call_exactly(given, other ? *other : schema);
  }

  Value* call_exactly(const Given& given, const c10::FunctionSchema& schema) {
    std::vector<NamedValue> args;
    std::vector<NamedValue> kwargs = keywords(given.kwargs, schema);
    const bool expands =
        schema.name() == "aten::expand";  // `implicit`, which no kernel reads, is left out by executors
    std::vector<Argument> positional = given.args.to_vector();
    if (expands && positional.size() > 2) positional.resize(2);
    add_positional(args, positional, schema);
    std::erase_if(kwargs, [&](const NamedValue& each) { return expands && each.name() == "implicit"; });
    // The dtype of a bool, which the number in its place does not tell.
    static const Symbol kFull("aten::full");
    const ArgumentSpan all = given.args;
    if (schema.name() == kFull.view() && all.size() > 1 && is_bool(all[1]) && !given.kwargs.find("dtype"))
      kwargs.emplace_back("dtype", static_cast<std::int64_t>(at::kBool));
    return emit(given.node, schema, jit::matchSchema(schema, no_source(), *built_, args, kwargs));
  }

  // TorchScript's interpreter makes a Scalar of a constant tensor without dimensions here, which for bools it has not.
  // As a number it gives the same values, and a bool of another type than itself only for bools, which the tensor's
  // type mends.
  Value* arithmetic_with_bool(const Given& given, const c10::FunctionSchema& schema) {
    const std::string& name = schema.name();
    const bool keeps_type = name == "aten::add" || name == "aten::sub" || name == "aten::mul";
    if ((!keeps_type && name != "aten::div") || schema.arguments().size() < 2) return nullptr;
    if (schema.overload_name() != "Tensor" && schema.overload_name() != "Scalar") return nullptr;
    const Argument* other = given.for_parameter(schema, 1);
    const TorchOperator* scalar = find_torch_operator(fx::Symbol(name + ".Scalar"));
    if (!other || !is_bool(*other) || !scalar || given.args.empty() || is_bool(given.args[0])) return nullptr;
    Value* result = call_exactly(given, *scalar->schema);
    if (!keeps_type) return result;
    return jit::emitBuiltinCall(no_source(), *built_, c10::aten::type_as,
                                {NamedValue(result), named({}, given.args[0], nullptr)}, {});
  }

  const std::function<bool(const Argument&)> is_bool = [this](const Argument& arg) {
    const Value* value = arg.is_node() ? values_[arg.node()] : nullptr;
    return arg.is_bool() || (value && value->type()->kind() == c10::TypeKind::BoolType);
  };

  // A number for a tensor has no say in the type of the result. As the tensor that TorchScript makes of it, it would.
  Value* call_with_number(const Given& given, const c10::FunctionSchema& schema) {
    const auto is_number = [this](const Argument& arg) {
      const Value* value = arg.is_node() ? values_[arg.node()] : nullptr;
      return arg.is_int() || arg.is_float() || (value && value->type()->isSubtypeOf(*c10::NumberType::get()));
    };
    const ArgumentSpan args = given.args;
    if (schema.overload_name() != "Tensor" || args.size() < 2 || schema.arguments().size() < 2 ||
        !schema.arguments()[1].type()->isSubtypeOf(*c10::TensorType::get()))
      return nullptr;
    if (is_number(args[1]) && !is_number(args[0])) {
      const TorchOperator* scalar = find_torch_operator(fx::Symbol(schema.name() + ".Scalar"));
      return scalar ? call_exactly(given, *scalar->schema) : nullptr;
    }
    if (!is_number(args[0])) return nullptr;
    if (args.size() != 2 || !given.kwargs.empty())
      throw Error(ErrorKind::unsupported,
                  "TorchScript takes its first operand, a number, for a tensor, which has a say in "
                  "the type of the result; multiply by alpha in a call of its own");
    const NamedValue left = named({}, args[0], nullptr), right = named({}, args[1], nullptr);
    return build_reflected(*built_, fx::Symbol(schema.name()), left.value(*built_), right.value(*built_));
  }

  // An operator that this LibTorch has only through fxgraph is written out: whoever loads the file has not got it.
  Value* emit(const Node& node, const c10::FunctionSchema& schema, const jit::MatchedSchema& matched) {
    require_seen_writes(node, schema);
    const std::string& overload = schema.overload_name();
    const fx::Symbol target(schema.name() + (overload.empty() ? "" : "." + overload));
    if (const auto body = missing_operator_body(target)) {
      if (is_own_operator(target)) return call_own_operator(*built_, unit(), target, *body, matched);
      return jit::insertGraph(*built_, *body, matched.inputs).at(0);
    }
    jit::Node* call = built_->insertNode(built_->create(c10::Symbol::fromQualString(schema.name()), matched.inputs, 0));
    for (const c10::TypePtr& type : matched.return_types) call->addOutput()->setType(type);
    call->getOperation();  // throws when there is no such operator
    if (call->outputs().size() == 1) return written_if_left_out(*built_, call);
    if (call->outputs().empty()) return built_->insertConstant(c10::IValue());
    return built_->insertNode(built_->createTuple(call->outputs()))->output();
  }

  jit::CompilationUnit& unit() const { return *self_->type()->expect<c10::ClassType>()->compilation_unit(); }

  // ── Arguments ────────────────────────────────────────────────────────────────────────────────────────────────────

  void add_positional(std::vector<NamedValue>& args, ArgumentSpan values, const c10::FunctionSchema& schema) {
    const auto& wanted = schema.arguments();
    for (const Argument& value : values)
      args.push_back(named({}, value, args.size() < wanted.size() ? wanted[args.size()].type() : nullptr));
  }

  std::vector<NamedValue> keywords(KwargSpan values, const c10::FunctionSchema& schema) {
    std::vector<NamedValue> kwargs;
    for (const auto& [name, value] : values) {
      auto index = schema.argumentIndexWithName(name.str());
      std::string keyword = index ? name.str() : script_variable(name.view());  // as an input's name was written
      if (!index) index = schema.argumentIndexWithName(keyword);
      kwargs.push_back(
          named(keyword, value, index ? schema.arguments()[static_cast<std::size_t>(*index)].type() : nullptr));
    }
    return kwargs;
  }

  NamedValue named(const std::string& name, const Argument& argument, const c10::TypePtr& type) {
    return NamedValue(no_source(), name, value_of(argument, type));
  }

  // `type` is what is expected, or null; type variables say nothing.
  Value* value_of(const Argument& argument, c10::TypePtr type) {
    if (const Node* node = argument.node_or_null()) return as_wanted(*built_, values_[*node], type);
    if (type && type->hasFreeVariables()) type = nullptr;
    if (!names_nodes(argument)) return insert_literal(*built_, argument, type);
    if (type && type->kind() == c10::TypeKind::OptionalType) type = type->expect<c10::OptionalType>()->getElementType();
    if (argument.is_dict()) return dict(argument);
    if (!argument.is_sequence())
      throw Error(ErrorKind::unsupported, "a " + std::string(to_string(argument.kind())) + " of values");
    const c10::ListTypePtr list_type = type ? type->cast<c10::ListType>() : nullptr;
    std::vector<Value*> elements;
    for (const Argument& element : argument.elements())
      elements.push_back(value_of(element, list_type ? list_type->getElementType() : nullptr));
    if (argument.is_tuple() && !list_type) return built_->insertNode(built_->createTuple(elements))->output();
    return list(std::move(elements), list_type);
  }

  // The element type is the one expected, else the one that all elements have.
  Value* list(std::vector<Value*> elements, const c10::ListTypePtr& expected) {
    c10::TypePtr element_type = expected ? expected->getElementType() : nullptr;
    if (!element_type) {
      element_type = elements.empty() ? c10::TensorType::get() : elements[0]->type();
      for (const Value* element : elements) {
        const auto unified = c10::unifyTypes(element_type, element->type());
        if (!unified) of_several_types("a list");
        element_type = *unified;
      }
    } else {
      for (Value*& element : elements)
        element = jit::tryConvertToType(no_source(), *built_, element_type, element, true);
    }
    return built_->insertNode(built_->createList(element_type, elements))->output();
  }

  Value* dict(const Argument& argument) {
    std::vector<Value*> keys, values;
    const ArgumentSpan pairs = argument.elements();
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      keys.push_back(value_of(pairs[i], nullptr));
      values.push_back(value_of(pairs[i + 1], nullptr));
    }
    const auto differs = [](const std::vector<Value*>& all) {
      return std::ranges::any_of(all, [&](const Value* each) { return !each->type()->isSubtypeOf(*all[0]->type()); });
    };
    if (differs(keys) || differs(values)) of_several_types("a dict");
    return built_->insertNode(built_->createDict(keys[0]->type(), values[0]->type(), keys, values))->output();
  }

  const Graph& source_;
  const MethodOf& method_of_;
  const ModuleInfo& known_modules_;
  std::shared_ptr<jit::Graph> built_;
  NodeMap<Value*> values_;
  Value* self_;
  std::unordered_map<std::string, Value*> modules_;  // path -> GetAttr; look-up only
};

}  // namespace

std::shared_ptr<torch::jit::Graph> build_method(const fx::Graph& graph, const c10::ClassTypePtr& self_type,
                                                const MethodOf& method_of, const ModuleInfo& modules) {
  return MethodBuilder(graph, self_type, method_of, modules).build();
}

}  // namespace fx::internal
