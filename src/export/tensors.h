// Tensors of an archive: what the graph says of them, and the weights and constants themselves.
//
// Weights that shared memory when they were exported share it again; two names of one tensor get one tensor. A tensor
// that reaches past its record is refused, so that what is allocated is what the file has.
//
// Costs: each record is read once, straight into its tensor. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fxgraph/export/json.h>
#include <fxgraph/ir/types.h>
#include <fxgraph/run/archive.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {

/// The values of symbols.
using Symbols = std::map<std::string, std::int64_t>;

/// A size and, where it depends on the inputs, what it was in the example.
struct SymbolicSize {
  SizeExpr expr;
  std::int64_t example = 0;
};

/// One tensor as the graph describes it.
struct TensorMeta {
  DType dtype = DType::float32;
  std::vector<SymbolicSize> sizes;
  std::vector<SymbolicSize> strides;
  static constexpr std::int64_t kVaries = -1;  ///< an offset that sizes decide
  std::int64_t storage_offset = 0;
  bool requires_grad = false;
  Device device;
};

SymbolicSize read_symbolic_size(const Json& json);
TensorMeta read_tensor_meta(const Json& json);
Json write_size(const SymbolicSize& size);
/// A number that sizes or data decide; no `example` for those of data.
Json write_expression(const SizeExpr& expr, Json example);
Json write_tensor_meta(const TensorMeta& meta);
/// What a tensor is, every size a number.
TensorMeta meta_of_tensor(const at::Tensor& tensor);
/// A tensor of these sizes and strides with the numbers of `example`, again and again where it is larger; with numbers
/// of its own where that is undefined. What is the same memory again is so.
at::Tensor made_like(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                     const at::TensorOptions& options);

struct StoredTensor {
  at::Tensor tensor;
  bool is_parameter = false;
};
/// By qualified name.
using StoredTensors = std::map<std::string, StoredTensor>;

/// Reads the tensors of `models/NAME.json`: its weights, or its constants. Throws Error(io) for what is damaged,
/// Error(unsupported) for what is no tensor.
StoredTensors read_weights(ArchiveReader& archive, const std::string& model);
StoredTensors read_constants(ArchiveReader& archive, const std::string& model);

}  // namespace fx::pt2
