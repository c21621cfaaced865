// A note on placeholders: the example that the program was traced with. Written by tracing, read by what needs an
// example and is given none (export/save.h).
//
// The tensors in it have shape, strides, type and device, but no memory; only small ones of integers, which may be
// indices or lengths, keep their numbers. Cost: linear in the example's tensors. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include <fxgraph/ir/graph.h>

namespace fx {

/// The note of a tensor, a number, or tuples, lists and dicts of them; nothing for anything else.
std::optional<c10::IValue> example_note(const c10::IValue& example);

/// Notes that on a placeholder.
void note_example(Node& placeholder, c10::IValue note);

/// What was noted; null when nothing was.
const c10::IValue* noted_example(const Node& placeholder);

/// True when the tensor has its numbers: it may be read.
bool has_numbers(const at::Tensor& tensor);

}  // namespace fx
