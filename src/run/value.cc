#include <fxgraph/run/value.h>

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fxgraph/support/error.h>

namespace fx {
namespace {

using c10::IValue;
using c10::TypeKind;
using c10::TypePtr;

// Values that only indexing understands are tuples that begin with one of these; no model's strings do.
constexpr const char* kSliceMark = "\1slice";
constexpr const char* kEllipsisMark = "\1ellipsis";

struct NamedValue {
  const char* name;
  std::int64_t value;
};

constexpr NamedValue named(const char* name, auto value) { return {name, static_cast<std::int64_t>(value)}; }
constexpr NamedValue kMemoryFormats[] = {named("contiguous_format", c10::MemoryFormat::Contiguous),
                                         named("preserve_format", c10::MemoryFormat::Preserve),
                                         named("channels_last", c10::MemoryFormat::ChannelsLast),
                                         named("channels_last_3d", c10::MemoryFormat::ChannelsLast3d)};
constexpr NamedValue kLayouts[] = {named("strided", c10::kStrided),      named("sparse_coo", c10::kSparse),
                                   named("sparse_csr", c10::kSparseCsr), named("_mkldnn", c10::kMkldnn),
                                   named("sparse_csc", c10::kSparseCsc), named("sparse_bsr", c10::kSparseBsr),
                                   named("sparse_bsc", c10::kSparseBsc)};

const c10::Type& unwrap_optional(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional ? *optional->getElementType() : type;
}

// A type variable decides nothing.
TypePtr decided(const TypePtr& type) { return type->kind() == TypeKind::VarType ? nullptr : type; }

TypePtr element_type_of(const TypePtr& type) {
  if (!type) return nullptr;
  const c10::Type& inner = unwrap_optional(*type);
  const auto* list = inner.castRaw<c10::ListType>();
  return list ? decided(list->getElementType()) : nullptr;
}

std::int64_t value_of_name(std::span<const NamedValue> values, Symbol name, const char* what) {
  for (const NamedValue& known : values) {
    if (name == known.name) return known.value;
  }
  throw Error(ErrorKind::unsupported, "unknown " + std::string(what) + " torch." + name.str());
}

const char* name_of_value(std::span<const NamedValue> values, std::int64_t value) {
  const auto known = std::ranges::find(values, value, &NamedValue::value);
  return known == values.end() ? nullptr : known->name;
}

// The element type of a list whose elements say it all: numbers of one kind, strings, tensors, or tensors and None.
TypePtr narrowest_type(const std::vector<IValue>& elements) {
  const auto all = [&](auto&& is) { return std::all_of(elements.begin(), elements.end(), is); };
  if (elements.empty()) return c10::TensorType::get();
  if (all([](const IValue& v) { return v.isTensor(); })) return c10::TensorType::get();
  if (all([](const IValue& v) { return v.isBool(); })) return c10::BoolType::get();
  if (all([](const IValue& v) { return v.isInt(); })) return c10::IntType::get();
  if (all([](const IValue& v) { return v.isDouble(); })) return c10::FloatType::get();
  if (all([](const IValue& v) { return v.isString(); })) return c10::StringType::get();
  if (all([](const IValue& v) { return v.isTensor() || v.isNone(); })) return c10::OptionalType::ofTensor();
  // A tensor's own type says its sizes, which a proxy may not have.
  if (std::any_of(elements.begin(), elements.end(), [](const IValue& v) { return v.isTensor(); }))
    return c10::AnyType::get();
  const TypePtr first = elements.front().type();
  if (all([&](const IValue& v) { return *v.type() == *first; })) return first;
  return c10::AnyType::get();
}

void coerce_to_list(IValue& value, const c10::ListType& type, int repeat) {
  const TypePtr element = decided(type.getElementType());
  if (!element) {
    if (value.isTuple()) value = make_list(elements_of(value));
    return;
  }
  const bool number = value.isInt() || value.isDouble() || value.isBool();
  if (number || (value.isTensor() && element->kind() != TypeKind::TensorType)) {
    value = make_list(std::vector<IValue>(static_cast<std::size_t>(std::max(repeat, 1)), value), element);
  } else if (value.isTuple()) {
    value = make_list(elements_of(value), element);
  } else if (value.isList() && !fits_without_coercion(*value.type(), type)) {
    value = make_list(elements_of(value), element);
  }
}

void coerce_tensor_to_number(IValue& value, TypeKind kind) {
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.defined() || tensor.numel() != 1) return;
  const at::Scalar scalar = tensor.item();
  if (kind == TypeKind::NumberType) {
    value = scalar;
  } else if (kind == TypeKind::FloatType) {
    value = scalar.toDouble();
  } else if (kind == TypeKind::IntType) {
    value = scalar.toLong();
  } else {
    value = scalar.toBool();
  }
}

struct Enumerators {
  TypeKind type;
  std::int64_t count;
  const char* one;
};

constexpr Enumerators kEnumerators[] = {
    {TypeKind::ScalarTypeType, static_cast<std::int64_t>(at::ScalarType::NumOptions), "dtype"},
    {TypeKind::LayoutType, static_cast<std::int64_t>(at::Layout::NumOptions), "layout"},
    {TypeKind::MemoryFormatType, static_cast<std::int64_t>(at::MemoryFormat::NumOptions), "memory format"},
};

const Enumerators* enumerators_of(const c10::Type& type) {
  const auto row = std::ranges::find(kEnumerators, type.kind(), &Enumerators::type);
  return row == std::end(kEnumerators) ? nullptr : row;
}

/// LibTorch takes enumerators as ints and looks up unknown ones in tables that end before them.
void check_enumerator(const IValue& value, const c10::Type& type) {
  if (value.isInt() && !is_enumerator_value(value, type))
    throw Error(ErrorKind::invalid_argument, std::to_string(value.toInt()) + " is no " + enumerators_of(type)->one);
}

}  // namespace

bool is_available(DType dtype) { return static_cast<at::ScalarType>(dtype) < at::ScalarType::Undefined; }
at::ScalarType to_scalar_type(DType dtype) {
  if (is_available(dtype)) return static_cast<at::ScalarType>(dtype);
  throw Error(ErrorKind::unsupported, "this LibTorch has no torch." + std::string(to_string(dtype)) +
                                          "; use another type, or a newer LibTorch");
}
DType to_dtype(at::ScalarType type) { return static_cast<DType>(type); }
c10::Device to_torch_device(const Device& device) {
  return device.type.empty() ? c10::Device(c10::kCPU) : c10::Device(to_string(device));
}
Device to_device(const c10::Device& device) {
  return {Symbol(c10::DeviceTypeName(device.type(), /*lower_case=*/true)), device.index()};
}

IValue make_slice(IValue start, IValue stop, IValue step) {
  return c10::ivalue::Tuple::create({IValue(kSliceMark), std::move(start), std::move(stop), std::move(step)});
}

bool is_slice(const IValue& value) {
  if (!value.isTuple()) return false;
  const auto& elements = value.toTupleRef().elements();
  return elements.size() == 4 && elements[0].isString() && elements[0].toStringRef() == kSliceMark;
}

IValue make_ellipsis() { return IValue(kEllipsisMark); }
bool is_ellipsis(const IValue& value) { return value.isString() && value.toStringRef() == kEllipsisMark; }

IValue make_list(std::vector<IValue> elements, const TypePtr& element_type) {
  const TypePtr type = element_type ? element_type : narrowest_type(elements);
  c10::impl::GenericList list(type);
  list.reserve(elements.size());
  for (IValue& element : elements) {
    coerce(element, *type);
    list.push_back(std::move(element));
  }
  return IValue(std::move(list));
}

IValue make_dict(const std::vector<IValue>& keys_and_values) {
  std::vector<IValue> values;
  for (std::size_t i = 1; i < keys_and_values.size(); i += 2) values.push_back(keys_and_values[i]);
  const TypePtr key_type = keys_and_values.empty() ? c10::StringType::get() : keys_and_values[0].type();
  c10::impl::GenericDict dict(key_type, narrowest_type(values));
  for (std::size_t i = 0; i < values.size(); ++i) dict.insert(keys_and_values[2 * i], std::move(values[i]));
  return IValue(std::move(dict));
}

bool fits_without_coercion(const c10::Type& from, const c10::Type& to) {
  if (from.kind() == TypeKind::AnyType) return false;
  return from.isSubtypeOf(to) || to.kind() == TypeKind::AnyType || to.kind() == TypeKind::VarType;
}

bool is_enumerator(const c10::Type& declared) { return enumerators_of(unwrap_optional(declared)) != nullptr; }

bool is_enumerator_value(const IValue& value, const c10::Type& type) {
  const Enumerators* known = enumerators_of(type);
  return known && value.isInt() && value.toInt() >= 0 && value.toInt() < known->count;
}

const TypePtr& value_type(const c10::Argument& parameter) {
  return is_enumerator(*parameter.real_type()) ? parameter.real_type() : parameter.type();
}

void coerce(IValue& value, const c10::Type& declared, int repeat) {
  if (value.isNone()) return;
  const c10::Type& type = unwrap_optional(declared);
  switch (type.kind()) {
    case TypeKind::TensorType:
      if (value.isDouble() || value.isInt() || value.isBool() || value.isComplexDouble()) {
        at::Tensor tensor =
            at::scalar_tensor(value.toScalar(), at::TensorOptions(value.isDouble() ? at::kDouble
                                                                  : value.isInt()  ? at::kLong
                                                                  : value.isBool() ? at::kBool
                                                                                   : at::kComplexDouble));
        tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
        value = std::move(tensor);
      }
      break;
    case TypeKind::FloatType:
      if (value.isInt())
        value = static_cast<double>(value.toInt());
      else if (value.isBool())
        value = static_cast<double>(value.toBool());
      else if (value.isTensor())
        coerce_tensor_to_number(value, type.kind());
      break;
    case TypeKind::IntType:
      if (value.isBool())
        value = static_cast<std::int64_t>(value.toBool());
      else if (value.isTensor())
        coerce_tensor_to_number(value, type.kind());
      break;
    case TypeKind::BoolType:
      if (value.isInt())
        value = value.toInt() != 0;
      else if (value.isTensor())
        coerce_tensor_to_number(value, type.kind());
      break;
    case TypeKind::NumberType:
      if (value.isTensor()) coerce_tensor_to_number(value, type.kind());
      break;
    case TypeKind::DeviceObjType:
      if (value.isString()) value = c10::Device(value.toStringRef());
      break;
    case TypeKind::ListType: coerce_to_list(value, type.expectRef<c10::ListType>(), repeat); break;
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType: check_enumerator(value, type); break;
    default: break;
  }
}

namespace {

IValue container_to_ivalue(const Argument& argument, const TypePtr& type,
                           const std::function<IValue(Node&)>& node_value) {
  std::vector<IValue> elements;
  const TypePtr element_type = argument.is_sequence() ? element_type_of(type) : nullptr;
  for (const Argument& element : argument.elements()) elements.push_back(to_ivalue(element, element_type, node_value));
  switch (argument.kind()) {
    case ArgumentKind::list: return make_list(std::move(elements), element_type);
    case ArgumentKind::tuple:
      if (element_type) return make_list(std::move(elements), element_type);
      return c10::ivalue::Tuple::create(std::move(elements));
    case ArgumentKind::dict: return make_dict(elements);
    case ArgumentKind::slice: return make_slice(std::move(elements[0]), std::move(elements[1]), std::move(elements[2]));
    default: return IValue(c10::complex<double>(argument.as_complex()));
  }
}

}  // namespace

IValue to_ivalue(const Argument& argument, const TypePtr& type, const std::function<IValue(Node&)>& node_value,
                 int repeat) {
  IValue value;
  switch (argument.kind()) {
    case ArgumentKind::none: return value;
    case ArgumentKind::node:
      if (!node_value) throw Error(ErrorKind::invalid_argument, "a literal is wanted here, not a node");
      value = node_value(argument.node());
      break;
    case ArgumentKind::boolean: value = argument.as_bool(); break;
    case ArgumentKind::integer: value = argument.as_int(); break;
    case ArgumentKind::floating: value = argument.as_float(); break;
    case ArgumentKind::string: value = argument.as_symbol().str(); break;
    case ArgumentKind::dtype: value = static_cast<std::int64_t>(to_scalar_type(argument.as_dtype())); break;
    case ArgumentKind::device: value = to_torch_device(argument.as_device()); break;
    case ArgumentKind::layout: value = value_of_name(kLayouts, argument.as_layout().name, "layout"); break;
    case ArgumentKind::memory_format:
      value = value_of_name(kMemoryFormats, argument.as_memory_format().name, "memory format");
      break;
    case ArgumentKind::ellipsis: return make_ellipsis();
    case ArgumentKind::opaque:
      if (internal::is_type(argument.as_string())) return std::string(argument.as_string());
      throw Error(ErrorKind::unsupported, "cannot run the Python object " + std::string(argument.as_string()));
    default: value = container_to_ivalue(argument, type, node_value);
  }
  if (type) coerce(value, *type, repeat);
  return value;
}

namespace {

std::optional<Argument> list_to_argument(const c10::ArrayRef<IValue>& values, const TypePtr& type, bool tuple) {
  std::vector<Argument> elements;
  for (const IValue& value : values) {
    std::optional<Argument> element = to_argument(value, type);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
  }
  return tuple ? Argument::tuple(elements) : Argument::list(elements);
}

Argument int_to_argument(std::int64_t value, const TypePtr& type) {
  const TypeKind kind = type ? unwrap_optional(*type).kind() : TypeKind::IntType;
  if (kind == TypeKind::ScalarTypeType) return Argument(static_cast<DType>(value));
  if (kind == TypeKind::LayoutType) {
    if (const char* name = name_of_value(kLayouts, value)) return Argument(Layout{name});
  } else if (kind == TypeKind::MemoryFormatType) {
    if (const char* name = name_of_value(kMemoryFormats, value)) return Argument(MemoryFormat{name});
  }
  return Argument(value);
}

}  // namespace

std::optional<Argument> to_argument(const IValue& value, const TypePtr& type) {
  if (value.isNone()) return Argument();
  if (value.isBool()) return Argument(value.toBool());
  if (value.isInt()) return int_to_argument(value.toInt(), type);
  if (value.isDouble()) return Argument(value.toDouble());
  if (value.isComplexDouble()) return Argument(std::complex<double>(value.toComplexDouble()));
  if (value.isString()) return is_ellipsis(value) ? Argument::ellipsis() : Argument(value.toStringRef());
  if (value.isDevice()) return Argument(to_device(value.toDevice()));
  if (value.isTuple()) return list_to_argument(value.toTupleRef().elements(), nullptr, /*tuple=*/true);
  if (value.isList()) return list_to_argument(value.toListRef(), element_type_of(type), /*tuple=*/false);
  if (value.isGenericDict()) {
    std::vector<Argument> pairs;
    for (const auto& item : value.toGenericDict()) {
      std::optional<Argument> key = to_argument(item.key());
      std::optional<Argument> mapped = to_argument(item.value());
      if (!key || !mapped) return std::nullopt;
      pairs.push_back(std::move(*key));
      pairs.push_back(std::move(*mapped));
    }
    return Argument::dict(pairs);
  }
  return std::nullopt;
}

TensorInfo tensor_info(const at::Tensor& tensor) {
  TensorInfo info;
  info.dtype = to_dtype(tensor.scalar_type());
  info.sizes = tensor.sizes().vec();
  if (tensor.layout() == at::kStrided) {
    info.strides = tensor.strides().vec();
    if (tensor.has_storage()) {
      info.storage = reinterpret_cast<std::intptr_t>(tensor.storage().unsafeGetStorageImpl());
      info.storage_bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
    }
  }
  info.device = to_device(tensor.device());
  return info;
}

std::vector<IValue> elements_of(const IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isList()) return value.toListRef().vec();
  std::vector<IValue> values;
  for (const auto& item : value.toGenericDict()) values.push_back(item.value());
  return values;
}

TensorInfos tensor_infos(const IValue& value) {
  TensorInfos infos;
  if (value.isTensor()) {
    if (value.toTensor().defined()) infos.push_back(tensor_info(value.toTensor()));
  } else if (value.isTuple() || value.isList() || value.isGenericDict()) {
    for (const IValue& element : elements_of(value)) {
      for (TensorInfo& info : tensor_infos(element)) infos.push_back(std::move(info));
    }
  }
  return infos;
}

std::string first_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // Errors that passed through TorchScript's interpreter begin with a heading and a listing; the cause is the last
  // line.
  std::string_view all(text);
  constexpr std::string_view kHeading = "The following operation failed in the TorchScript interpreter";
  if (all.starts_with(kHeading)) {
    const std::size_t at = all.rfind("RuntimeError: ");
    if (at != std::string_view::npos) all.remove_prefix(at);
  }
  while (!all.empty() && (all.front() == '\n' || all.front() == ' ')) all.remove_prefix(1);
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace fx
