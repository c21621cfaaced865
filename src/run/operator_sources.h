// Operators that LibTorch may lack, as TorchScript sources (missing_operators.h registers them).
//
// Sources know `torch`, `prepacked` and LibTorch's classes alone, and element types by LibTorch's numbers: 0 uint8, 1
// int8, 3 int32, 4 int64, 5 float16, 6 float32, 7 float64, 11 bool, 13 quint8. Those of others' namespaces branch and
// loop on literals only, not on types and ranks of tensors, or else fx::load could not take back what they are saved
// in; fxgraph's own are saved as functions of their own, and come back by their names.
#pragma once

#include <span>

namespace fx {

struct OperatorSource {
  const char* schema;     ///< without namespace
  const char* source;     ///< TorchScript: a function `body` with the schema's parameters
  const char* last = "";  ///< its last part, where several share what comes before
};

/// What newer releases have in `aten`.
std::span<const OperatorSource> newer_operators();

/// The namespace `quantized_decomposed`, which Python registers when it quantizes (PT2E) and no LibTorch has.
std::span<const OperatorSource> quantized_decomposed_operators();

/// The namespace `fxgraph`: what LibTorch runs slowly.
std::span<const OperatorSource> own_operators();

}  // namespace fx
