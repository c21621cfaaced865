#include <fxgraph/run/operators.h>

#include <ATen/core/enum_tag.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/unsafe_kernels.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

using c10::IValue;
using c10::TypeKind;

// The registry of everything asked for so far. Entries are never removed: plans keep pointers to them.
struct Registry {
  std::mutex mutex;
  std::unordered_map<Symbol, std::vector<const TorchOperator*>> packets;
  std::unordered_map<Symbol, const TorchOperator*> targets;
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

std::string target_of(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

/// TorchScript's quotients of two ints end the process where the processor has none.
void check_quotient(const torch::jit::Stack& stack) {
  if (stack.size() < 2) return;
  const IValue &dividend = stack[stack.size() - 2], &divisor = stack.back();
  if (!dividend.isInt() || !divisor.isInt()) return;
  if (divisor.toInt() == 0) throw Error(ErrorKind::execution, "integer division or modulo by zero");
  if (divisor.toInt() == -1 && dividend.toInt() == std::numeric_limits<std::int64_t>::min())
    throw Error(ErrorKind::execution, "integer division or modulo overflows");
}

bool divides_ints(std::string_view packet) {
  return packet == "aten::remainder" || packet == "aten::floordiv" || packet == "aten::fmod" ||
         packet == "aten::divmod";
}

// What is called for an operator. For a dimension that is counted from behind, LibTorch 1.13's of symbolic sizes read
// what lies in memory before the sizes.
c10::OperatorName called_for(const c10::FunctionSchema& schema) {
  const bool is_symbolic = schema.name() == "aten::sym_size" || schema.name() == "aten::sym_stride";
  std::string name = schema.name();
  if (is_symbolic && schema.overload_name() == "int") name.erase(name.find("sym_"), 4);
  return {name, schema.overload_name()};
}

const TorchOperator* make_operator(const std::shared_ptr<torch::jit::Operator>& source) {
  const c10::FunctionSchema& schema = source->schema();
  auto* made = new TorchOperator{&schema, std::nullopt, {}};
  if (const c10::OperatorName called = called_for(schema); source->isC10Op() || called.name != schema.name()) {
    if (const auto handle = c10::Dispatcher::singleton().findSchema(called)) made->handle = *handle;
  }
  if (!made->handle && divides_ints(schema.name())) {
    made->call = [source, run = source->getOperation()](torch::jit::Stack& stack) mutable {
      check_quotient(stack);
      run(stack);
    };
  } else if (!made->handle) {
    made->call = [source, run = source->getOperation()](torch::jit::Stack& stack) mutable { run(stack); };
  }
  return made;
}

bool is_namespaced(std::string_view name) { return name.find("::") != std::string_view::npos; }

// Loads all overloads of a packet into the registry, which the caller has locked.
std::vector<const TorchOperator*>& load_packet(Registry& all, Symbol packet) {
  install_missing_operators();
  const auto [at, fresh] = all.packets.try_emplace(packet);
  if (!fresh || !is_namespaced(packet.view())) return at->second;
  for (const auto& source : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(packet.str()))) {
    if (!source->hasOperation()) continue;  // made from a node of TorchScript IR: cannot be called by itself
    const TorchOperator* made = make_operator(source);
    at->second.push_back(made);
    all.targets.try_emplace(Symbol(target_of(*made->schema)), made);
  }
  return at->second;
}

// ── Which values a parameter takes ───────────────────────────────────────────────────────────────────────────────────

bool takes(const c10::Type& type, const IValue& value, bool fixed_size);

bool takes_elements(const c10::ListType& type, const IValue& value, bool fixed_size) {
  const c10::Type& element = *type.getElementType();
  const auto fits = [&](const IValue& each) { return takes(element, each, false); };
  if (value.isList()) return std::ranges::all_of(value.toListRef(), fits);
  if (value.isTuple()) return std::ranges::all_of(value.toTupleRef().elements(), fits);
  return fixed_size && (value.isInt() || value.isDouble()) && fits(value);
}

bool takes(const c10::Type& type, const IValue& value, bool fixed_size) {
  if (const auto* optional = type.castRaw<c10::OptionalType>())
    return value.isNone() || takes(*optional->getElementType(), value, fixed_size);
  const bool number = value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
  switch (type.kind()) {
    case TypeKind::NoneType: return value.isNone();
    case TypeKind::TensorType: return value.isTensor() || number;
    case TypeKind::NumberType: return number;
    case TypeKind::IntType: return value.isInt() || value.isBool();
    case TypeKind::FloatType: return value.isDouble() || value.isInt();
    case TypeKind::ComplexType: return value.isComplexDouble();
    case TypeKind::BoolType: return value.isBool();
    case TypeKind::StringType: return value.isString();
    case TypeKind::DeviceObjType: return value.isDevice() || value.isString();
    case TypeKind::ListType: return takes_elements(type.expectRef<c10::ListType>(), value, fixed_size);
    case TypeKind::TupleType: return value.isTuple();
    case TypeKind::DictType: return value.isGenericDict();
    case TypeKind::AnyType:
    case TypeKind::VarType: return true;
    default: return !value.isNone() && value.type()->isSubtypeOf(type);
  }
}

const IValue* keyword_value(const CallValues& call, const std::string& name) {
  for (const auto& [key, value] : call.kwargs) {
    if (key.view() == name || (key == "input" && name == "self")) return &value;
  }
  return nullptr;
}

// A declaration that LibTorch has inferred from a function's type, which does not say whether a result is an argument:
// every tensor among the results may be.
std::string with_unknown_aliases(std::string text) {
  for (std::size_t at = text.rfind("->"); (at = text.find("Tensor", at)) != std::string::npos; at += 9)
    text.insert(at + 6, "(*)");
  return text;
}

std::vector<std::string> schema_texts(std::string_view packet) {
  std::vector<std::string> texts;
  for (const TorchOperator* overload : torch_overloads(Symbol(packet))) {
    std::ostringstream text;
    text << *overload->schema;
    const bool inferred = overload->handle && overload->handle->hasSchema() &&
                          overload->handle->schema().aliasAnalysis() == c10::AliasAnalysisKind::CONSERVATIVE;
    texts.push_back(inferred ? with_unknown_aliases(text.str()) : text.str());
  }
  return texts;
}

}  // namespace

namespace {

bool takes_tensors(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
    return argument.type()->isSubtypeOf(*c10::TensorType::get());
  });
}

}  // namespace

void call_boxed(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.returns().size() < 2) return op.callBoxed(&stack);
  make_safe(schema, stack.data() + (stack.size() - schema.arguments().size()));
  if (!schema.is_mutable()) return op.callBoxed(&stack);
  const torch::jit::Stack held(stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), stack.end());
  op.callBoxed(&stack);
}

const TorchOperator* find_torch_operator(Symbol target) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const std::string_view text = target.view();
  const std::size_t colons = text.find("::");
  if (colons == std::string_view::npos) return nullptr;
  const std::size_t dot = text.find('.', colons);
  if (dot != std::string_view::npos) {
    if (const auto known = all.targets.find(target); known != all.targets.end()) return known->second;
  }
  const std::vector<const TorchOperator*>& overloads = load_packet(all, Symbol(text.substr(0, dot)));
  TorchOperator const*& found = all.targets.try_emplace(target, nullptr).first->second;
  // `aten::add` alone is TorchScript's sum of two numbers; who writes it means the packet, whose overload the values
  // pick.
  const auto on_tensors = [](const TorchOperator* op) { return takes_tensors(*op->schema); };
  if (found && dot == std::string_view::npos && !on_tensors(found) &&
      std::any_of(overloads.begin(), overloads.end(), on_tensors)) {
    found = nullptr;
  }
  return found;
}

const std::vector<const TorchOperator*>& torch_overloads(Symbol packet) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return load_packet(all, packet);
}

const TorchOperator* returning_variant(const c10::FunctionSchema& schema) {
  if (!schema.is_mutable()) return nullptr;
  const auto is_written = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  std::vector<const c10::Argument*> read;
  for (const c10::Argument& argument : schema.arguments()) {
    if (!is_written(argument)) read.push_back(&argument);
  }
  const auto is_same = [&](const c10::Argument* a, const c10::Argument& b) {
    return !is_written(b) && a->name() == b.name() && *a->type() == *b.type();
  };
  for (const TorchOperator* other : torch_overloads(Symbol(schema.name()))) {
    const auto& arguments = other->schema->arguments();
    if (other->handle && other->schema->returns().size() == schema.returns().size() &&
        std::equal(read.begin(), read.end(), arguments.begin(), arguments.end(), is_same))
      return other;
  }
  return nullptr;
}

bool bind_values(const c10::FunctionSchema& schema, const CallValues& call, torch::jit::Stack& stack) {
  std::size_t positional = 0, keywords = 0;
  for (const c10::Argument& parameter : schema.arguments()) {
    const IValue* value = nullptr;
    if (positional < call.args.size()) {
      if (parameter.kwarg_only()) return false;
      value = &call.args[positional++];
    } else if ((value = keyword_value(call, parameter.name()))) {
      ++keywords;
    }
    if (!value && !parameter.default_value()) return false;
    if (value && !takes(*parameter.type(), *value, parameter.N().has_value())) return false;
    stack.push_back(value ? *value : *parameter.default_value());
    if (value) coerce(stack.back(), *value_type(parameter), parameter.N().value_or(1));
  }
  return positional == call.args.size() && keywords == call.kwargs.size();
}

bool data_decide_sizes(const c10::OperatorHandle& op, Symbol target) {
  return has_flag(target, OperatorFlag::sizes_of_data) ||
         (!target.view().starts_with("aten::") && op.hasTag(at::Tag::dynamic_output_shape));
}

void install_schema_source() {
  static const bool installed = (set_schema_source({&schema_texts}), true);
  static_cast<void>(installed);
}

}  // namespace fx
