#include <fxgraph/run/operators.h>

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

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

// ── Which values a parameter takes, and at what cost ─────────────────────────────────────────────────────────────────

constexpr int kExact = 0;
constexpr int kWider = 1;       // a Scalar for an int, an int for a float
constexpr int kReshaped = 2;    // a tuple for a list, one int for int[2]
constexpr int kGeneric = 3;     // anything fits
constexpr int kEnumerator = 4;  // a plain int for a dtype, layout or memory format
constexpr int kWrapped = 10;    // a number for a tensor

std::optional<int> cost_of(const IValue& value, const c10::Type& type, bool fixed_size);

std::optional<int> cost_of_elements(c10::ArrayRef<IValue> elements, const c10::Type& type) {
  int worst = kExact;
  for (const IValue& element : elements) {
    const std::optional<int> cost = cost_of(element, type, false);
    if (!cost) return std::nullopt;
    worst = std::max(worst, *cost);
  }
  return worst;
}

std::optional<int> cost_of_list(const IValue& value, const c10::ListType& type, bool fixed_size) {
  const c10::Type& element = *type.getElementType();
  if (value.isList()) return cost_of_elements(value.toListRef(), element);
  if (value.isTuple()) {
    const std::optional<int> cost = cost_of_elements(value.toTupleRef().elements(), element);
    return cost ? std::optional<int>(*cost + kReshaped) : std::nullopt;
  }
  if (fixed_size && (value.isInt() || value.isDouble())) {
    const std::optional<int> cost = cost_of(value, element, false);
    return cost ? std::optional<int>(*cost + kReshaped) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<int> when(bool fits, int cost) { return fits ? std::optional<int>(cost) : std::nullopt; }

std::optional<int> cost_of(const IValue& value, const c10::Type& type, bool fixed_size) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    return value.isNone() ? std::optional<int>(kExact) : cost_of(value, *optional->getElementType(), fixed_size);
  }
  const bool number = value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
  switch (type.kind()) {
    case TypeKind::NoneType: return when(value.isNone(), kExact);
    case TypeKind::TensorType: return value.isTensor() ? std::optional<int>(kExact) : when(number, kWrapped);
    case TypeKind::NumberType: return when(number, kWider);
    case TypeKind::IntType: return value.isInt() ? std::optional<int>(kExact) : when(value.isBool(), kReshaped);
    case TypeKind::FloatType: return value.isDouble() ? std::optional<int>(kExact) : when(value.isInt(), kWider);
    case TypeKind::ComplexType: return when(value.isComplexDouble(), kExact);
    case TypeKind::BoolType: return when(value.isBool(), kExact);
    case TypeKind::StringType: return when(value.isString(), kExact);
    case TypeKind::DeviceObjType: return value.isDevice() ? std::optional<int>(kExact) : when(value.isString(), kWider);
    case TypeKind::ListType: return cost_of_list(value, type.expectRef<c10::ListType>(), fixed_size);
    case TypeKind::TupleType: return when(value.isTuple(), kExact);
    case TypeKind::DictType: return when(value.isGenericDict(), kExact);
    case TypeKind::AnyType:
    case TypeKind::VarType: return kGeneric;
    default: return when(!value.isNone() && value.type()->isSubtypeOf(type), kExact);
  }
}

// `view(x, 2, -1)`: from the first int[] parameter on, all positional values are ints: they are its elements. An int[2]
// is no such list: `conv2d(x, w, b, 1, 1)` has a stride and a padding.
std::optional<std::vector<IValue>> gather_trailing_ints(const c10::FunctionSchema& schema,
                                                        const std::vector<IValue>& args) {
  const auto& parameters = schema.arguments();
  for (std::size_t i = 0; i < parameters.size() && i < args.size(); ++i) {
    const auto* list = parameters[i].type()->castRaw<c10::ListType>();
    if (!list) continue;
    if (list->getElementType()->kind() != TypeKind::IntType || parameters[i].N()) return std::nullopt;
    if (!std::all_of(args.begin() + static_cast<std::ptrdiff_t>(i), args.end(),
                     [](const IValue& v) { return v.isInt(); })) {
      return std::nullopt;
    }
    std::vector<IValue> gathered(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(i));
    gathered.push_back(make_list({args.begin() + static_cast<std::ptrdiff_t>(i), args.end()}, c10::IntType::get()));
    return gathered;
  }
  return std::nullopt;
}

const IValue* keyword_value(const CallValues& call, const std::string& name) {
  for (const auto& [key, value] : call.kwargs) {
    if (key.view() == name || (key == "input" && name == "self")) return &value;
  }
  return nullptr;
}

std::optional<int> bind_given(const c10::FunctionSchema& schema, const CallValues& call,
                              const std::vector<IValue>& args, torch::jit::Stack* stack) {
  std::size_t positional = 0;
  std::size_t keywords = 0;
  int total = 0;
  for (const c10::Argument& parameter : schema.arguments()) {
    const IValue* value = nullptr;
    if (positional < args.size()) {
      if (parameter.kwarg_only()) return std::nullopt;
      value = &args[positional++];
    } else if ((value = keyword_value(call, parameter.name()))) {
      ++keywords;
    } else if (!parameter.default_value()) {
      return std::nullopt;
    }
    if (!value) {
      if (stack) stack->push_back(*parameter.default_value());
      continue;
    }
    const std::optional<int> cost = cost_of(*value, *parameter.type(), parameter.N().has_value());
    if (!cost) return std::nullopt;
    total += *cost + (value->isInt() && is_enumerator(*parameter.real_type()) ? kEnumerator : 0);
    if (stack) {
      stack->push_back(*value);
      coerce(stack->back(), *value_type(parameter), parameter.N().value_or(1));
    }
  }
  if (positional < args.size() || keywords < call.kwargs.size()) return std::nullopt;
  return total;
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

std::optional<int> bind_values(const c10::FunctionSchema& schema, const CallValues& call, torch::jit::Stack* stack) {
  const std::size_t base = stack ? stack->size() : 0;
  if (const auto cost = bind_given(schema, call, call.args, stack)) return cost;
  if (stack) stack->resize(base);
  if (const auto gathered = gather_trailing_ints(schema, call.args)) {
    if (const auto cost = bind_given(schema, call, *gathered, stack)) return *cost + kReshaped;
    if (stack) stack->resize(base);
  }
  return std::nullopt;
}

const TorchOperator* pick_overload(const OverloadSets& sets, const CallValues& call) {
  const TorchOperator* best = nullptr;
  int best_cost = 0;
  for (const auto& overloads : sets) {
    for (const TorchOperator* candidate : overloads) {
      if (candidate->schema->is_vararg()) continue;
      const std::optional<int> cost = bind_values(*candidate->schema, call, nullptr);
      if (cost && (!best || *cost < best_cost)) {
        best = candidate;
        best_cost = *cost;
      }
    }
  }
  return best;
}

const TorchOperator* pick_overload(const std::vector<Symbol>& packets, const CallValues& call) {
  OverloadSets sets;
  for (const Symbol packet : packets) sets.push_back(torch_overloads(packet));
  return pick_overload(sets, call);
}

std::string said_twice(const OverloadSets& sets, const CallValues& call) {
  const auto by_position = [&](Symbol name) {
    bool any = false;
    for (const auto& overloads : sets) {
      for (const TorchOperator* overload : overloads) {
        const auto at = overload->schema->argumentIndexWithName(name == "input" ? "self" : name.str());
        if (!at) continue;
        if (static_cast<std::size_t>(*at) >= call.args.size()) return false;
        any = true;
      }
    }
    return any;
  };
  for (std::size_t i = 0; i < call.kwargs.size(); ++i) {
    const Symbol name = call.kwargs[i].first;
    const bool doubled = std::any_of(call.kwargs.begin(), call.kwargs.begin() + static_cast<std::ptrdiff_t>(i),
                                     [&](const auto& before) { return before.first == name; });
    if (doubled || by_position(name)) return "; argument '" + name.str() + "' is given twice";
  }
  return {};
}

void install_schema_source() {
  static const bool installed = (set_schema_source({&schema_texts}), true);
  static_cast<void>(installed);
}

}  // namespace fx
