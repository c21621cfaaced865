#include <fxgraph/torchscript/script_schemas.h>

#include <torch/csrc/jit/frontend/script_type_parser.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

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

// `Tensor`, `torch.Tensor`, `Optional[int]`, `List[Tensor]`; Tensor when it is no type of TorchScript.
static c10::TypePtr parse_annotation(std::string_view annotation) {
  std::string text(annotation);
  for (const std::string_view prefix : {"torch.", "typing."}) {
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
      text.erase(at, prefix.size());
  }
  try {
    return torch::jit::ScriptTypeParser().parseType(text);
  } catch (const std::exception&) {
    return c10::TensorType::get();  // a Python class: whatever it was, tensors are what programs take
  }
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

const Argument* Given::for_parameter(const c10::FunctionSchema& schema, std::size_t i) const {
  return i < args.size() ? &args[i] : kwargs.find(fx::Symbol(schema.arguments()[i].name()));
}

std::string annotation_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType: return "Tensor";
    case c10::TypeKind::NumberType: return "number";
    case c10::TypeKind::IntType: return "int";
    case c10::TypeKind::FloatType: return "float";
    case c10::TypeKind::BoolType: return "bool";
    case c10::TypeKind::ComplexType: return "complex";
    case c10::TypeKind::StringType: return "str";
    case c10::TypeKind::DeviceObjType: return "torch.device";
    case c10::TypeKind::NoneType: return "None";
    case c10::TypeKind::OptionalType: return annotation_of(unwrapped(type));
    case c10::TypeKind::ListType:
    case c10::TypeKind::TupleType: break;
    default: return "";
  }
  const auto elements = type.containedTypes();
  const std::string first = elements.empty() ? "" : annotation_of(*elements[0]);
  const bool alike =
      std::ranges::all_of(elements, [&](const c10::TypePtr& each) { return annotation_of(*each) == first; });
  const bool plain = !first.empty() && first != "list" && !first.ends_with(']');
  return alike && plain ? "List[" + first + "]" : "list";
}

// For each argument of the schema, whether it is given a bool where a number is wanted; empty when that is never so.
static std::vector<bool> bools_for_numbers(const Given& given, const c10::FunctionSchema& schema,
                                           const std::function<bool(const Argument&)>& is_bool) {
  std::vector<bool> bools(schema.arguments().size());
  for (std::size_t i = 0; i < bools.size(); ++i) {
    const Argument* value = given.for_parameter(schema, i);
    bools[i] = value && is_bool(*value) && is_number(*schema.arguments()[i].type());
  }
  return std::ranges::find(bools, true) == bools.end() ? std::vector<bool>() : bools;
}

const c10::FunctionSchema* overload_without_bools(const Given& given, const c10::FunctionSchema& schema,
                                                  const std::function<bool(const Argument&)>& is_bool) {
  const std::vector<bool> bools = bools_for_numbers(given, schema, is_bool);
  if (bools.empty()) return nullptr;
  const auto fits = [&](const c10::FunctionSchema& other) {
    if (other.arguments().size() != bools.size()) return false;
    for (std::size_t i = 0; i < bools.size(); ++i) {
      const c10::Argument &wanted = schema.arguments()[i], &found = other.arguments()[i];
      if (wanted.name() != found.name()) return false;
      if (bools[i] ? !is_tensor(*found.type()) : *wanted.type() != *found.type() && given.for_parameter(schema, i))
        return false;
    }
    return true;
  };
  for (const TorchOperator* op : torch_overloads(fx::Symbol(schema.name()))) {
    if (fits(*op->schema) && schema.name().starts_with("aten::lerp"))
      throw Error(ErrorKind::unsupported,
                  "TorchScript takes a bool for a tensor here, which is no weight; give a number");
    if (fits(*op->schema)) return op->schema;
  }
  return nullptr;
}

void require_seen_writes(const Node& node, const c10::FunctionSchema& schema) {
  if (!schema.returns().empty()) return;
  for (const c10::Argument& argument : schema.arguments()) {
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    const auto* list = argument.type()->castRaw<c10::ListType>();
    if (written && list && is_tensor(*list->getElementType()))
      throw Error(ErrorKind::unsupported,
                  "TorchScript drops " + schema.name() +
                      ", which writes to the tensors of a list; write to each of them in a "
                      "call of its own",
                  node.name());
  }
}

}  // namespace fx::internal
