#include <fxgraph/run/call_target.h>

#include <algorithm>
#include <optional>
#include <string>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/python_target.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/run/value.h>

namespace fx {

namespace {

using c10::IValue;

/// The annotation that says of what kind the value is; empty where there is none.
std::string annotation_of(const IValue& value) {
  static constexpr const char* kNames[] = {"", "Tensor", "int", "float", "bool", "complex", "str", "torch.device", ""};
  const auto name = [](InputKind kind) { return kNames[static_cast<std::size_t>(kind)]; };
  if (!value.isList() && !value.isTuple()) return name(kind_of(value));
  const c10::ArrayRef<IValue> elements = value.isList() ? value.toListRef() : value.toTupleRef().elements();
  const std::string first = elements.empty() ? "" : name(kind_of(elements[0]));
  const bool alike = std::ranges::all_of(elements, [&](const IValue& each) { return name(kind_of(each)) == first; });
  return alike && !first.empty() ? "List[" + first + "]" : "list";
}

/// The names that Python gives parameters which take a dtype or a memory format.
c10::TypePtr type_of_keyword(Symbol name) {
  if (name == "dtype") return c10::ScalarTypeType::get();
  return name == "memory_format" ? c10::TypePtr(c10::MemoryFormatType::get()) : nullptr;
}

/// Whether the number is the dtype, layout or memory format that stands in the graph.
bool is_enumerator(const Argument& literal, const IValue& value) {
  const ArgumentKind kind = literal.kind();
  const bool names = kind == ArgumentKind::dtype || kind == ArgumentKind::layout || kind == ArgumentKind::memory_format;
  return names && value.isInt() && to_ivalue(literal) == value;
}

/// The same with dtypes for ints that may be some.
std::vector<Argument> with_dtypes(ArgumentSpan args) {
  std::vector<Argument> made = args.to_vector();
  const c10::TypePtr type = c10::ScalarTypeType::get();
  for (Argument& each : made) {
    if (each.is_int() && is_enumerator_value(each.as_int(), *type))
      each = to_argument(each.as_int(), type).value_or(each);
  }
  return made;
}

}  // namespace

InputKind kind_of(const IValue& value) {
  if (value.isTensor()) return InputKind::tensor;
  if (value.isInt()) return InputKind::integer;
  if (value.isDouble()) return InputKind::floating;
  if (value.isBool()) return InputKind::boolean;
  if (value.isNone()) return InputKind::none;
  if (value.isString()) return InputKind::string;
  return value.isComplexDouble() ? InputKind::complex : value.isDevice() ? InputKind::device : InputKind::other;
}

std::string enumerator_kind(const Node& node) {
  using Base = SchemaType::Base;
  const internal::ArgumentType type = internal::argument_type(Argument(const_cast<Node&>(node)));
  if (type.list) return {};
  return type.base == Base::dtype           ? "torch.dtype"
         : type.base == Base::layout        ? "torch.layout"
         : type.base == Base::memory_format ? "torch.memory_format"
                                            : "";
}

const TorchOperator* exact_operator(Op op, Symbol target) {
  if (op != Op::call_function) return nullptr;
  const Symbol canonical = canonical_target(target);
  const internal::TargetInfo& info = internal::target_info(canonical);
  const bool spelt = packet_of(canonical.view()) != canonical.view();
  return info.exact || spelt || info.overloads->empty() ? find_torch_operator(canonical) : nullptr;
}

const TorchOperator* torch_operator(const Call& call) {
  for (const Symbol target : {call.schema().target, operator_name(call.schema())}) {
    const std::string_view packet = packet_of(target.view());
    const std::string_view overload = target.view().substr(std::min(packet.size() + 1, target.view().size()));
    for (const TorchOperator* each : torch_overloads(Symbol(packet))) {
      if (each->schema->overload_name() == overload) return each;
    }
  }
  return nullptr;
}

static std::string kind_of_input(const IValue& value, const Node* of) {
  if (value.isNone()) return "None";
  const std::string kind = of && value.isInt() ? enumerator_kind(*of) : "";
  return kind.empty() ? annotation_of(value) : kind;
}

CallOnValues::CallOnValues(const Node& node, const std::vector<IValue>& inputs)
    : call_(node,
            [&, next = std::size_t{0}](const Node& input) mutable { return kind_of_input(inputs[next++], &input); }) {
  resolve();
}

CallOnValues::CallOnValues(Op op, Symbol target, const CallValues& values) {
  const auto argument_of = [&](const IValue& value, const c10::TypePtr& type) {
    const bool named = type && is_enumerator_value(value, *type);
    if (std::optional<Argument> literal = to_argument(value, named ? type : nullptr)) return *std::move(literal);
    inputs_.push_back(value);
    return call_.add_input(kind_of_input(value, nullptr));
  };
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  const Node* written = values.written && values.written->is(op) && values.written->target() == target &&
                                values.written->args().size() == values.args.size()
                            ? values.written
                            : nullptr;
  for (std::size_t i = 0; i < values.args.size(); ++i) {
    const bool named = written && is_enumerator(written->args()[i], values.args[i]);
    args.push_back(named ? written->args()[i] : argument_of(values.args[i], nullptr));
  }
  for (const auto& [name, value] : values.kwargs) kwargs.push_back({name, argument_of(value, type_of_keyword(name))});
  call_.set_call(op, target, args, kwargs);
  resolve();
  if (op_) return;
  call_.set_call(op, target, with_dtypes(args), kwargs);
  resolve();
  if (!op_) call_.set_call(op, target, args, kwargs);
}

void CallOnValues::resolve() {
  const Node& written = call_.written();
  const auto is_none = [](const Argument& argument) { return argument.is_none(); };
  const bool own = !internal::python_target(written.op(), written.target()).op &&
                   find_python_function(written.op(), written.target());
  if (!call_.resolve() && !own && std::ranges::none_of(written.args(), is_none)) call_.resolve_forced();
  op_ = call_.call() ? torch_operator(call_.call()) : nullptr;
}

std::vector<IValue> CallOnValues::positional(const std::vector<IValue>& inputs) const {
  std::vector<IValue> values;
  for (const Argument& argument : call_.written().args())
    values.push_back(to_ivalue(argument, nullptr, [&](Node& input) { return inputs[call_.input_number(input)]; }));
  return values;
}

torch::jit::Stack CallOnValues::arguments(const std::vector<IValue>& inputs) const {
  const auto value_of = [&](Node& input) { return inputs[call_.input_number(input)]; };
  const Call& call = call_.call();
  torch::jit::Stack stack;
  const std::vector<c10::Argument>& parameters = op_->schema->arguments();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Argument* given = i < call.args().size() ? &call.args()[i] : call.kwargs().find(Symbol(parameters[i].name()));
    if (!given) {
      stack.push_back(parameters[i].default_value().value_or(IValue()));
      continue;
    }
    stack.push_back(to_ivalue(*given, value_type(parameters[i]), value_of, parameters[i].N().value_or(1)));
  }
  return stack;
}

}  // namespace fx
