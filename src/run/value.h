// Between the graph's Arguments and LibTorch's values: IValues, scalar types, devices.
//
// Complexity: linear in the value. Thread-safety: pure functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// True when this LibTorch has tensors of the type: 1.13 has no float8 and no unsigned types but uint8.
bool is_available(DType dtype);

/// The same type or device in LibTorch's words, and in ours. A Device without a type is the CPU. Throws
/// Error(unsupported) for a type that is not available.
/// @{
at::ScalarType to_scalar_type(DType dtype);
DType to_dtype(at::ScalarType type);
c10::Device to_torch_device(const Device& device);
Device to_device(const c10::Device& device);
/// @}

/// The value that `argument` stands for; nodes in it are looked up with `node_value`. `type`, when given, is what an
/// operator expects there, see coerce(), as is `repeat`. Slices and `...` become values that only indexing understands.
/// Throws Error(unsupported) for an opaque Python object, Error(invalid_argument) for a node without `node_value`.
c10::IValue to_ivalue(const Argument& argument, const c10::TypePtr& type = nullptr,
                      const std::function<c10::IValue(Node&)>& node_value = {}, int repeat = 1);

/// The argument that stands for `value`: a number, string, device, None, or a list, tuple or dict of such. `type`, when
/// given, tells an int from a dtype, layout or memory format (LibTorch passes those as ints). Nothing for tensors and
/// objects.
std::optional<Argument> to_argument(const c10::IValue& value, const c10::TypePtr& type = nullptr);

/// Turns `value` into what an operator with a parameter of `type` takes, where Python would: an int for a float, a
/// number for a tensor, a tuple for a list, a one-element tensor for a number, one int for `int[n]` (`repeat` times).
/// Leaves it alone where it fits or nothing helps.
void coerce(c10::IValue& value, const c10::Type& type, int repeat = 1);

/// The type of the values that a parameter takes. LibTorch tells dtypes, layouts and memory formats from ints, which
/// its own type of the parameter does not; a SymInt is an int to it, and lists of them are lists of ints, the only ones
/// that every kernel takes.
const c10::TypePtr& value_type(const c10::Argument& parameter);
/// True for the type of a dtype, a layout or a memory format, which are ints as values.
bool is_enumerator(const c10::Type& type);
/// True for an int that is a value of such a type.
bool is_enumerator_value(const c10::IValue& value, const c10::Type& type);

/// True when coerce() is known to leave values of type `from` alone.
bool fits_without_coercion(const c10::Type& from, const c10::Type& to);

/// Makes a list of the narrowest element type that holds the elements; `element_type`, when given, decides.
c10::IValue make_list(std::vector<c10::IValue> elements, const c10::TypePtr& element_type = nullptr);
/// Makes a dict from alternating keys and values.
c10::IValue make_dict(const std::vector<c10::IValue>& keys_and_values);

/// The values in a tuple, list or dict, one level deep.
std::vector<c10::IValue> elements_of(const c10::IValue& value);

/// A slice as a value, for indexing only; nothing for any other value.
c10::IValue make_slice(c10::IValue start, c10::IValue stop, c10::IValue step);
bool is_slice(const c10::IValue& value);  ///< whether make_slice() made it
/// `...` as a value, for indexing only.
c10::IValue make_ellipsis();
bool is_ellipsis(const c10::IValue& value);  ///< whether make_ellipsis() made it

/// Shape, dtype, strides and device of one tensor.
TensorInfo tensor_info(const at::Tensor& tensor);
/// All tensors in `value`, in order.
TensorInfos tensor_infos(const c10::IValue& value);

/// LibTorch's message: its first line that says something, without the stack of frames.
std::string first_line(const std::exception& error);

namespace internal {
/// True for an annotation of what is no object of Python's alone: `List[int]`.
bool is_type(std::string_view text);
}  // namespace internal

}  // namespace fx
