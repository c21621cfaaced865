#include <fxgraph/run/python_calls.h>

#include <ATen/TensorIndexing.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/python_functions.h>
#include <fxgraph/run/failure.h>
#include <fxgraph/run/int_pow.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using at::indexing::TensorIndex;
using c10::IValue;
using internal::fail;
using internal::PythonTask;
using Args = std::vector<IValue>;

IValue at_or_fail(const std::vector<IValue>& elements, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(elements.size());
  if (index < -size || index >= size) {
    fail("index " + std::to_string(index) + " is out of range for " + std::to_string(size) + " elements");
  }
  return elements[static_cast<std::size_t>(index < 0 ? index + size : index)];
}

auto slice_bound(const IValue& value) {
  return (value.isTensor() ? IValue(value.toTensor().item<std::int64_t>()) : value).toOptional<std::int64_t>();
}

TensorIndex to_tensor_index(const IValue& value) {
  if (value.isNone()) return at::indexing::None;
  if (is_ellipsis(value)) return at::indexing::Ellipsis;
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool();
  if (value.isTensor()) return value.toTensor();
  if (is_slice(value)) {
    const auto& part = value.toTupleRef().elements();
    return at::indexing::Slice(slice_bound(part[1]), slice_bound(part[2]), slice_bound(part[3]));
  }
  if (value.isIntList()) return at::tensor(value.toIntVector());
  fail("a " + value.tagKind() + " cannot index a tensor");
}

std::vector<TensorIndex> to_tensor_indices(const at::Tensor& tensor, const IValue& index) {
  std::vector<TensorIndex> indices;
  if (index.isTuple() && !is_slice(index)) {
    for (const IValue& element : index.toTupleRef().elements()) indices.push_back(to_tensor_index(element));
  } else {
    indices.push_back(to_tensor_index(index));
  }
  // LibTorch compares what a lone slice ends at with the first size, and reads whatever lies where that would be.
  if (tensor.dim() == 0 && indices.size() == 1 && indices[0].is_slice())
    fail("slice() cannot be applied to a 0-dim tensor");
  return indices;
}

IValue slice_of(const IValue& sequence, const IValue& slice) {
  const std::vector<IValue> all = elements_of(sequence);
  const auto& part = slice.toTupleRef().elements();
  const auto size = static_cast<std::int64_t>(all.size());
  const std::int64_t step = part[3].isNone() ? 1 : part[3].toInt();
  if (step == 0) fail("a slice's step must not be 0");
  const auto bound = [&](const IValue& given, std::int64_t missing) {
    if (given.isNone()) return missing;
    std::int64_t at = given.toInt();
    if (at < 0) at += size;
    return std::clamp<std::int64_t>(at, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const std::int64_t start = bound(part[1], step < 0 ? size - 1 : 0);
  const std::int64_t stop = bound(part[2], step < 0 ? -1 : size);
  std::vector<IValue> chosen;
  for (std::int64_t i = start; step < 0 ? i > stop : i < stop; i += step)
    chosen.push_back(all[static_cast<std::size_t>(i)]);
  if (sequence.isTuple()) return c10::ivalue::Tuple::create(std::move(chosen));
  return make_list(std::move(chosen), sequence.type()->expectRef<c10::ListType>().getElementType());
}

IValue getitem(Args& args) {
  const IValue& object = args[0];
  const IValue& index = args[1];
  if (object.isTensor()) return object.toTensor().index(to_tensor_indices(object.toTensor(), index));
  if (object.isGenericDict()) {
    const auto dict = object.toGenericDict();
    const auto found = dict.find(index);
    if (found == dict.end()) fail("the dict has no such key");
    return found->value();
  }
  if (object.isTuple() || object.isList()) {
    if (is_slice(index)) return slice_of(object, index);
    return at_or_fail(elements_of(object), index.isTensor() ? index.toTensor().item<std::int64_t>() : index.toInt());
  }
  fail("a " + object.tagKind() + " cannot be indexed");
}

IValue setitem(Args& args) {
  if (args[0].isTensor()) {
    at::Tensor tensor = args[0].toTensor();
    const std::vector<TensorIndex> indices = to_tensor_indices(tensor, args[1]);
    if (args[2].isTensor()) {
      tensor.index_put_(indices, args[2].toTensor());
    } else {
      tensor.index_put_(indices, args[2].toScalar());
    }
  } else if (args[0].isList()) {
    auto list = args[0].toList();
    std::int64_t at = args[1].toInt();
    if (at < 0) at += static_cast<std::int64_t>(list.size());
    list.set(static_cast<std::size_t>(at), args[2]);
  } else if (args[0].isGenericDict()) {
    args[0].toGenericDict().insert_or_assign(args[1], args[2]);
  } else {
    fail("a " + args[0].tagKind() + " cannot be assigned to by index");
  }
  return IValue();
}

bool truth(const IValue& value) {
  if (value.isTensor()) return value.toTensor().is_nonzero();
  if (value.isNone()) return false;
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt() != 0;
  if (value.isDouble()) return value.toDouble() != 0;
  if (value.isString()) return !value.toStringRef().empty();
  if (value.isList()) return !value.toListRef().empty();
  if (value.isTuple()) return !value.toTupleRef().elements().empty();
  return true;
}

IValue python_assert(Args& args) {
  if (!truth(args[0])) fail(args.size() > 1 && args[1].isString() ? args[1].toStringRef() : "assertion failed");
  return IValue();
}

// Python's `unique` gives what was asked for, ATen's all three.
IValue asked_of_unique(const std::tuple<at::Tensor, at::Tensor, at::Tensor>& all, bool inverse, bool counts) {
  const auto& [values, places, numbers] = all;
  if (inverse && counts) return c10::ivalue::Tuple::create(values, places, numbers);
  if (inverse) return c10::ivalue::Tuple::create(values, places);
  if (counts) return c10::ivalue::Tuple::create(values, numbers);
  return values;
}

bool flag(const Args& args, std::size_t i, bool otherwise = false) {
  return i < args.size() && !args[i].isNone() ? truth(args[i]) : otherwise;
}

IValue python_unique(Args& args) {
  const at::Tensor self = args[0].toTensor();
  const bool sorted = flag(args, 1, true), inverse = flag(args, 2), counts = flag(args, 3);
  const bool along = args.size() > 4 && !args[4].isNone();
  return asked_of_unique(along ? at::unique_dim(self, args[4].toInt(), sorted, inverse, counts)
                               : at::_unique2(self, sorted, inverse, counts),
                         inverse, counts);
}

IValue python_unique_consecutive(Args& args) {
  const bool inverse = flag(args, 1), counts = flag(args, 2);
  const c10::optional<std::int64_t> dim = args.size() > 3 ? args[3].toOptional<std::int64_t>() : c10::nullopt;
  return asked_of_unique(at::unique_consecutive(args[0].toTensor(), inverse, counts, dim), inverse, counts);
}

double as_double(const IValue& value) {
  return value.isTensor() ? value.toTensor().item<double>() : value.toScalar().toDouble();
}

IValue python_int(Args& args) {
  return args[0].isTensor() ? args[0].toTensor().item<std::int64_t>() : static_cast<std::int64_t>(as_double(args[0]));
}

// A bool counts as an int.
at::Scalar number_of(const IValue& value) {
  return value.isBool() ? at::Scalar(static_cast<std::int64_t>(value.toBool())) : value.toScalar();
}

// Operators of LibTorch give a float of two ints, or round, and no number of a root of what is negative.
IValue python_pow(Args& args) {
  const at::Scalar a = number_of(args[0]), b = number_of(args[1]);
  if (a.isIntegral(false) && b.isIntegral(false)) return internal::int_pow(a.toLong(), b.toLong());
  if (a.isComplex() || b.isComplex()) return std::pow(a.toComplexDouble(), b.toComplexDouble());
  const double base = a.toDouble(), power = b.toDouble();
  if (base == 0 && power < 0) fail("0.0 cannot be raised to a negative power");
  if (base >= 0 || std::floor(power) == power || !std::isfinite(base)) return std::pow(base, power);
  return std::pow(c10::complex<double>(base), c10::complex<double>(power));
}

// Of floats, as Python defines it by the remainder: 1.0 // 0.1 is 9.0.
IValue python_floordiv(Args& args) {
  const double a = as_double(args[0]), b = as_double(args[1]);
  if (b == 0) fail("float floor division by zero");
  double rest = std::fmod(a, b);
  double whole = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) whole -= 1;
  if (whole == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(whole);
  return whole - floor > 0.5 ? floor + 1 : floor;
}

// A float where one of the two is.
IValue one_of(const Args& args, bool second) {
  const IValue& value = args[second ? 1 : 0];
  return args[0].isDouble() || args[1].isDouble() ? IValue(as_double(value)) : value;
}

IValue python_len(Args& args) {
  const IValue& value = args[0];
  if (value.isTensor()) return value.toTensor().size(0);
  if (value.isString()) {  // of characters, not of the bytes of UTF-8
    return static_cast<std::int64_t>(
        std::ranges::count_if(value.toStringRef(), [](char each) { return (each & 0xC0) != 0x80; }));
  }
  if (value.isGenericDict()) return static_cast<std::int64_t>(value.toGenericDict().size());
  return static_cast<std::int64_t>(elements_of(value).size());
}

struct TensorAttribute {
  const char* name;
  IValue (*read)(const at::Tensor& tensor);
};
const TensorAttribute kTensorAttributes[] = {
    {"shape", [](const at::Tensor& t) { return IValue(t.sizes().vec()); }},
    {"dtype", [](const at::Tensor& t) { return IValue(static_cast<std::int64_t>(t.scalar_type())); }},
    {"device", [](const at::Tensor& t) { return IValue(t.device()); }},
    {"layout", [](const at::Tensor& t) { return IValue(static_cast<std::int64_t>(t.layout())); }},
    {"ndim", [](const at::Tensor& t) { return IValue(t.dim()); }},
    {"data", [](const at::Tensor& t) { return IValue(t.detach()); }},
    {"T", [](const at::Tensor& t) { return IValue(t.numpy_T()); }},
    {"mT", [](const at::Tensor& t) { return IValue(t.mT()); }},
    {"real", [](const at::Tensor& t) { return IValue(at::real(t)); }},
    {"imag", [](const at::Tensor& t) { return IValue(at::imag(t)); }},
    {"is_cuda", [](const at::Tensor& t) { return IValue(t.is_cuda()); }},
    {"requires_grad", [](const at::Tensor& t) { return IValue(t.requires_grad()); }},
};

IValue python_getattr(Args& args) {
  const std::string& name = args[1].toStringRef();
  if (args[0].isTensor()) {
    for (const TensorAttribute& attribute : kTensorAttributes) {
      if (name == attribute.name) return attribute.read(args[0].toTensor());
    }
  }
  fail("a " + args[0].tagKind() + " has no attribute " + name + " here");
}

/// Of a type by its annotation, which to_ivalue() makes a text.
IValue python_isinstance(Args& args) { return args[0].type()->annotation_str() == args[1].toStringRef(); }

IValue of_double(double number) { return number; }
IValue of_int(double number) { return static_cast<std::int64_t>(number); }

IValue (*function_of(PythonTask task))(Args& args) {
  switch (task) {
    case PythonTask::take_item: return getitem;
    case PythonTask::set_item: return setitem;
    case PythonTask::read_attribute: return python_getattr;
    case PythonTask::length: return python_len;
    case PythonTask::to_int: return python_int;
    case PythonTask::to_float: return [](Args& args) { return of_double(as_double(args[0])); };
    case PythonTask::to_bool: return [](Args& args) { return IValue(truth(args[0])); };
    case PythonTask::negate: return [](Args& args) { return IValue(!truth(args[0])); };
    case PythonTask::divide_down: return python_floordiv;
    case PythonTask::power: return python_pow;
    case PythonTask::keep_number: return [](Args& args) { return IValue(number_of(args[0])); };
    case PythonTask::invert_bits: return [](Args& args) { return IValue(~number_of(args[0]).toLong()); };
    case PythonTask::is_same: return [](Args& args) { return IValue(args[0].is(args[1])); };
    case PythonTask::is_other: return [](Args& args) { return IValue(!args[0].is(args[1])); };
    case PythonTask::is_instance: return python_isinstance;
    case PythonTask::check: return python_assert;
    case PythonTask::larger: return [](Args& args) { return one_of(args, as_double(args[1]) > as_double(args[0])); };
    case PythonTask::smaller: return [](Args& args) { return one_of(args, as_double(args[1]) < as_double(args[0])); };
    case PythonTask::choose: return [](Args& args) { return truth(args[0]) ? args[1] : args[2]; };
    case PythonTask::unique: return python_unique;
    case PythonTask::unique_consecutive: return python_unique_consecutive;
    case PythonTask::square_root: return [](Args& args) { return of_double(std::sqrt(as_double(args[0]))); };
    case PythonTask::exponential: return [](Args& args) { return of_double(std::exp(as_double(args[0]))); };
    case PythonTask::logarithm: return [](Args& args) { return of_double(std::log(as_double(args[0]))); };
    case PythonTask::round_down: return [](Args& args) { return of_int(std::floor(as_double(args[0]))); };
    case PythonTask::round_up: return [](Args& args) { return of_int(std::ceil(as_double(args[0]))); };
  }
  return nullptr;
}

std::vector<PythonFunction> make_functions() {
  std::vector<PythonFunction> made = higher_order_functions();
  for (const internal::PythonSignature& signature : internal::python_signatures()) {
    const auto end = std::ranges::find(signature.parameters, nullptr);
    std::vector<const char*> parameters(signature.parameters.begin(), end);
    const std::size_t least = parameters.size() - signature.optional;
    made.push_back({signature.name.data(), std::move(parameters), function_of(signature.task), least});
  }
  return made;
}

const std::unordered_map<Symbol, PythonFunction>& function_index() {
  static const auto& index = *[] {
    auto* map = new std::unordered_map<Symbol, PythonFunction>;
    for (PythonFunction& function : make_functions()) map->emplace(Symbol(function.target), std::move(function));
    return map;
  }();
  return index;
}

}  // namespace

IValue PythonFunction::call(Args& args) const {
  if (args.size() < least) {
    fail(std::string(target) + " takes " + std::to_string(least) + (least == 1 ? " value, " : " values, ") +
         std::to_string(args.size()) + (args.size() == 1 ? " is given" : " are given"));
  }
  return function(args);
}

const PythonFunction* find_python_function(Op op, Symbol target) {
  const bool method = op == Op::call_method;
  const Symbol name = Symbol::find(internal::python_name(op, target));
  const auto found = name.empty() ? function_index().end() : function_index().find(name);
  return found == function_index().end() || (name.view().front() == '.') != method ? nullptr : &found->second;
}

bool internal::is_type(std::string_view text) {
  constexpr std::string_view kTypes[] = {"int", "float", "bool", "str", "complex", "Tensor", "List", "Dict", "Tuple"};
  return std::ranges::find(kTypes, text.substr(0, text.find('['))) != std::end(kTypes);
}

}  // namespace fx
