#include <fxgraph/torchscript/script_schemas.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/method_builder.h>

namespace fx::internal {

static const c10::Type& unwrapped(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional ? *optional->getElementType() : type;
}
bool is_number(const c10::Type& type) { return unwrapped(type).kind() == c10::TypeKind::NumberType; }
bool is_tensor(const c10::Type& type) { return unwrapped(type).kind() == c10::TypeKind::TensorType; }

// LibTorch's message is a schema, then what does not fit it; or one that names nothing, then all the schemas.
std::string why_no_schema_fits(const std::exception& error) {
  const std::string first = first_line(error);
  const std::string_view all = error.what();
  if (first.starts_with("Arguments for call are not valid"))
    return "none of TorchScript's operators of that name takes values of these types; save the program as .pt2";
  if (!first.ends_with(':')) return first;
  const std::size_t from = all.find("Expected "), line = std::min(all.find('\n', from), all.size());
  return from == std::string_view::npos
             ? "TorchScript's " + first.substr(0, first.find('(')) + " takes no such values; save the program as .pt2"
             : std::string(all.substr(from, line - from)) + "; save the program as .pt2";
}

void of_several_types(const std::string& what) {
  throw Error(ErrorKind::unsupported,
              what +
                  " of values of different types, for which TorchScript has no type; make it a tuple, or save the "
                  "program as .pt2");
}

// TorchScript takes what has no type for a tensor; with a number for its default it would be read without that. As in
// Python's older spelling, a type whose default is None is optional.
static c10::TypePtr with_default(c10::TypePtr type, const Argument& standard) {
  const c10::IValue value = to_ivalue(standard, type);
  if (!type) type = value.isNone() ? c10::TensorType::get() : value.type();
  return value.isNone() && !value.type()->isSubtypeOf(*type) ? c10::OptionalType::create(type) : type;
}

c10::TypePtr input_type(const Node& node) {
  const Meta* meta = node.find_meta();
  const std::string* annotation = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
  if (!annotation && meta && meta->get<pt2::TreeSpec>(pt2::kTreeNote)) {
    if (node.num_users() != 0) of_several_types("the input '" + node.target().str() + "' is a container");
    return c10::AnyType::get();
  }
  c10::TypePtr type = annotation ? parse_annotation(*annotation) : nullptr;
  if (!node.args().empty()) return with_default(std::move(type), node.args()[0]);
  return type ? type : c10::TensorType::get();
}

const Argument* given_for(const Node& node, const c10::FunctionSchema& schema, std::size_t i) {
  return i < node.args().size() ? &node.args()[i] : node.kwarg(schema.arguments()[i].name());
}

std::vector<fx::Symbol> script_packets(fx::Symbol function) {
  constexpr const char* kOfNumbers[][2] = {{"builtins.len", "aten::len"},
                                           {"math.sqrt", "aten::sqrt"},
                                           {"math.log", "aten::log"},
                                           {"math.trunc", "aten::Int"}};
  for (const auto& [name, packet] : kOfNumbers) {
    if (function == name) return {fx::Symbol(packet)};
  }
  std::vector<fx::Symbol> packets = packets_of_function(function);
  std::erase(packets, "fxgraph::int_pow");  // build_int_pow's
  return packets;
}

std::vector<bool> bools_for_numbers(const Node& node, const c10::FunctionSchema& schema,
                                    const std::function<bool(const Argument&)>& is_bool) {
  std::vector<bool> bools(schema.arguments().size());
  for (std::size_t i = 0; i < bools.size(); ++i) {
    const Argument* given = given_for(node, schema, i);
    bools[i] = given && is_bool(*given) && is_number(*schema.arguments()[i].type());
  }
  return std::ranges::find(bools, true) == bools.end() ? std::vector<bool>() : bools;
}

std::vector<const TorchOperator*> numbers_first(const Node& node, std::vector<const TorchOperator*> overloads,
                                                const std::function<bool(const Argument&)>& is_bool) {
  std::ranges::stable_partition(overloads, [&](const TorchOperator* op) {
    const c10::FunctionSchema& schema = *op->schema;
    if (schema.overload_name() == "Tensor") return true;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const Argument* given = given_for(node, schema, i);
      if (given && is_bool(*given) && is_tensor(*schema.arguments()[i].type())) return false;
    }
    return true;
  });
  return overloads;
}

const c10::FunctionSchema* overload_without_bools(const Node& node, const c10::FunctionSchema& schema,
                                                  const std::function<bool(const Argument&)>& is_bool) {
  const std::vector<bool> bools = bools_for_numbers(node, schema, is_bool);
  if (bools.empty()) return nullptr;
  const auto fits = [&](const c10::FunctionSchema& other) {
    if (other.arguments().size() != bools.size()) return false;
    for (std::size_t i = 0; i < bools.size(); ++i) {
      const c10::Argument &wanted = schema.arguments()[i], &found = other.arguments()[i];
      if (wanted.name() != found.name()) return false;
      if (bools[i] ? !is_tensor(*found.type()) : *wanted.type() != *found.type() && given_for(node, schema, i))
        return false;
    }
    return true;
  };
  for (const TorchOperator* op : torch_overloads(fx::Symbol(schema.name()))) {
    if (fits(*op->schema)) return op->schema;
  }
  return nullptr;
}

void require_seen_writes(const Node& node, const c10::FunctionSchema& schema) {
  if (!schema.returns().empty()) return;
  for (const c10::Argument& argument : schema.arguments()) {
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    if (written && argument.type()->kind() == c10::TypeKind::ListType)
      throw Error(ErrorKind::unsupported,
                  "TorchScript drops " + schema.name() +
                      ", which writes to the tensors of a list; write to each of them in a "
                      "call of its own",
                  node.name());
  }
}

std::optional<Graph> methods_as_functions(const Graph& graph) {
  const auto function_of = [](const Node& node) -> const char* {
    if (!node.is(Op::call_method)) return nullptr;
    return node.target() == "where" ? "torch.where" : node.target() == "polygamma" ? "torch.polygamma" : nullptr;
  };
  bool any = false;
  for (const Node& node : graph.nodes()) any = any || function_of(node);
  if (!any) return std::nullopt;
  Graph plain = graph.clone();
  for (Node& node : plain.nodes()) {
    const char* function = function_of(node);
    if (!function) continue;
    std::vector<Argument> args = node.args().to_vector();
    std::vector<NamedArgument> kwargs = node.kwargs().to_vector();
    if (args.size() > 1) std::swap(args[0], args[1]);
    if (args.size() == 1) {
      const Symbol first(node.target() == "where" ? "condition" : "n");
      const auto given = std::ranges::find(kwargs, first, &NamedArgument::name);
      if (given == kwargs.end()) continue;
      args.insert(args.begin(), given->value);
      kwargs.erase(given);
    }
    node.set_args_kwargs(args, kwargs);
    node.set_target(Op::call_function, function);
  }
  return plain;
}

}  // namespace fx::internal
