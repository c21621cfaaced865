#include <fxgraph/run/call_target.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_target.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

using c10::IValue;

std::string list_of_kinds(c10::ArrayRef<IValue> elements);

/// The annotation that says of what kind the value is; empty where there is none.
std::string kind_of(const IValue& value) {
  if (value.isTensor()) return "Tensor";
  if (value.isInt()) return "int";
  if (value.isDouble()) return "float";
  if (value.isBool()) return "bool";
  if (value.isComplexDouble()) return "complex";
  if (value.isString()) return "str";
  if (value.isDevice()) return "torch.device";
  if (value.isList()) return list_of_kinds(value.toListRef());
  if (value.isTuple()) return list_of_kinds(value.toTupleRef().elements());
  return {};
}

std::string list_of_kinds(c10::ArrayRef<IValue> elements) {
  const std::string first = elements.empty() ? "" : kind_of(elements[0]);
  const bool plain = !first.empty() && first.find('[') == first.npos && first != "list";
  const bool alike = std::ranges::all_of(elements, [&](const IValue& each) { return kind_of(each) == first; });
  return plain && alike ? "List[" + first + "]" : "list";
}

/// The names that Python gives parameters which take a dtype or a memory format.
c10::TypePtr type_of_keyword(Symbol name) {
  if (name == "dtype") return c10::ScalarTypeType::get();
  return name == "memory_format" ? c10::TypePtr(c10::MemoryFormatType::get()) : nullptr;
}

bool is_enumerator(const IValue& value, const c10::TypePtr& type) {
  const auto count = type->kind() == c10::TypeKind::ScalarTypeType
                         ? static_cast<std::int64_t>(at::ScalarType::NumOptions)
                         : static_cast<std::int64_t>(at::MemoryFormat::NumOptions);
  return value.isInt() && value.toInt() >= 0 && value.toInt() < count;
}

/// The same with dtypes for ints that may be some.
std::vector<Argument> with_dtypes(ArgumentSpan args) {
  std::vector<Argument> made = args.to_vector();
  const c10::TypePtr type = c10::ScalarTypeType::get();
  for (Argument& each : made) {
    if (each.is_int() && is_enumerator(each.as_int(), type)) each = to_argument(each.as_int(), type).value_or(each);
  }
  return made;
}

}  // namespace

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

CallOnValues::CallOnValues(const Node& node, const std::vector<IValue>& inputs) {
  const std::vector<Node*> nodes = node.all_input_nodes();
  NodeMap<Argument> fakes(node.graph());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    add_input(inputs[i], nodes[i]);
    fakes[*nodes[i]] = fakes_.back();
  }
  node_ = &graph_.node_copy(node, [&](Node& input) { return fakes[input]; });
  resolve();
}

CallOnValues::CallOnValues(Op op, Symbol target, const CallValues& values) {
  const auto argument_of = [&](const IValue& value, const c10::TypePtr& type) {
    const bool named = type && is_enumerator(value, type);
    if (std::optional<Argument> literal = to_argument(value, named ? type : nullptr)) return *std::move(literal);
    inputs_.push_back(value);
    add_input(value, nullptr);
    return fakes_.back();
  };
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const IValue& value : values.args) args.push_back(argument_of(value, nullptr));
  for (const auto& [name, value] : values.kwargs) kwargs.push_back({name, argument_of(value, type_of_keyword(name))});
  node_ = &graph_.create_node(op, target, args, kwargs);
  resolve();
  if (op_) return;
  node_->set_args_kwargs(with_dtypes(args), kwargs);
  resolve();
  if (!op_) node_->set_args_kwargs(args, kwargs);
}

void CallOnValues::add_input(const IValue& value, const Node* of) {
  if (value.isNone()) return fakes_.emplace_back(), void();
  Node& input = graph_.placeholder("value");
  std::string kind = of && value.isInt() ? enumerator_kind(*of) : "";
  if (kind.empty()) kind = kind_of(value);
  if (!kind.empty()) input.meta().set(meta_key::kType, std::move(kind));
  position_[input] = fakes_.size();
  fakes_.emplace_back(&input);
}

bool CallOnValues::find() {
  call_ = call_of(*node_);
  // All kinds are known: what wants another one fits no value.
  const bool fits = call_ && !internal::conversion_cost(call_.schema(), call_.args(), call_.kwargs()).wrong;
  op_ = fits ? torch_operator(call_) : nullptr;
  return op_ != nullptr;
}

/// As in LibTorch, where nothing else fits, a number is taken for a tensor, and Python's operators compare strings and
/// lists.
void CallOnValues::resolve() {
  const auto is_none = [](const Argument& argument) { return argument.is_none(); };
  if (find() || find_python_function(node_->op(), node_->target()) || std::ranges::any_of(node_->args(), is_none))
    return;
  const internal::PythonTarget& known = internal::python_target(node_->op(), node_->target());
  std::vector<Symbol> packets = {known.packet};
  if (known.op) packets = {Symbol(known.op->packet), Symbol(known.op->numbers)};
  for (const internal::PythonRow& row : known.rows) {
    if (row.same_arguments) packets.push_back(row.target);
  }
  const Op op = node_->op();
  const Symbol target = node_->target();
  for (const Symbol packet : packets) {
    if (packet.empty()) continue;
    node_->set_target(Op::call_function, packet);
    if (find()) return;
  }
  node_->set_target(op, target);
}

std::vector<IValue> CallOnValues::positional(const std::vector<IValue>& inputs) const {
  std::vector<IValue> values;
  for (const Argument& argument : node_->args())
    values.push_back(to_ivalue(argument, nullptr, [&](Node& input) { return inputs[position_[input]]; }));
  return values;
}

torch::jit::Stack CallOnValues::arguments(const std::vector<IValue>& inputs) const {
  const auto value_of = [&](Node& input) { return inputs[position_[input]]; };
  torch::jit::Stack stack;
  const std::vector<c10::Argument>& parameters = op_->schema->arguments();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Argument* given =
        i < call_.args().size() ? &call_.args()[i] : call_.kwargs().find(Symbol(parameters[i].name()));
    if (!given) {
      stack.push_back(parameters[i].default_value().value_or(IValue()));
      continue;
    }
    stack.push_back(to_ivalue(*given, value_type(parameters[i]), value_of, parameters[i].N().value_or(1)));
  }
  return stack;
}

std::string CallOnValues::refusal() const {
  std::string kinds, twice;
  const auto add = [&](const Argument& argument, const std::string& before) {
    const Node* node = argument.node_or_null();
    const Meta* meta = node ? node->find_meta() : nullptr;
    const std::string* kind = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    kinds += (kinds.empty() ? "" : ", ") + before + (kind ? *kind : node ? "?" : to_string(argument));
  };
  for (const Argument& argument : node_->args()) add(argument, "");
  for (const auto& [name, value] : node_->kwargs()) {
    add(value, name.str() + "=");
    std::string why;
    for (const OperatorSchema* schema : internal::candidate_overloads(node_->op(), node_->target())) {
      why = check_call(*schema, node_->args(), node_->kwargs()).value_or("");
      if (why.ends_with("' twice")) twice = "; " + why.substr(why.find("argument '"));
    }
  }
  return "no overload of " + node_->target().str() + " takes these arguments: (" + kinds + ")" + twice;
}

}  // namespace fx
