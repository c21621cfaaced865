// TensorInfo and Shapes: what the values of a graph are, without having them: element types, sizes and, where known,
// storage.
//
// Written by shape propagation (shapes/shape_prop.h) and by whoever else knows shapes; read by liveness, cost and
// reports, which need no LibTorch for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/types.h>

namespace fx {

/// One tensor.
struct TensorInfo {
  DType dtype = DType::float32;         ///< of the elements
  std::vector<std::int64_t> sizes{};    ///< 0 elements where one is 0; empty for a scalar tensor
  std::vector<std::int64_t> strides{};  ///< in elements; empty: contiguous
  Device device{};                      ///< where it lies; no type means not known
  /// Which storage it lies in, as a number that tensors share when they share storage; -1: not known, operator schemas
  /// decide.
  std::int64_t storage = -1;
  std::int64_t storage_bytes = -1;  ///< of the whole storage; -1: what the tensor itself spans

  /// The number of elements; 1 for a scalar tensor.
  std::int64_t numel() const;
  /// The bytes of its elements (a view may span more storage, an expanded tensor less).
  std::int64_t bytes() const { return numel() * element_size(dtype); }
  /// The bytes it holds on to: storage_bytes, or what sizes and strides span.
  std::int64_t held_bytes() const;
  /// True when the elements lie in order without gaps; strides of dimensions of size 1 do not count.
  bool is_contiguous() const;
  /// Equal in everything, storages included.
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// The tensors of one value, in order.
using TensorInfos = std::vector<TensorInfo>;

/// One value: a tensor, several (a tuple or list, flattened left to right), or none (a number, or nothing is known).
struct ValueInfo {
  TensorInfos tensors;  ///< flattened; the structure is in the graph, not here

  ValueInfo() = default;
  /// A value that is a tensor, or these tensors.
  /// @{
  ValueInfo(TensorInfo tensor) { tensors.push_back(std::move(tensor)); }
  ValueInfo(TensorInfos all) : tensors(std::move(all)) {}
  /// @}

  /// The tensor if it is exactly one, else null.
  const TensorInfo* tensor() const { return tensors.size() == 1 ? tensors.data() : nullptr; }
  /// The sum over its tensors of TensorInfo::bytes.
  std::int64_t bytes() const;
};

/// Values by node. Nodes without an entry have no tensors.
using Shapes = NodeMap<ValueInfo>;

/// `float32[1, 3, 224, 224]`.
std::string to_string(const TensorInfo& tensor);

/// Reads `1x3x224x224`, `2x16:int64`, or `:float32` of a tensor without dimensions; nothing when it is none of them.
std::optional<TensorInfo> parse_tensor_info(std::string_view text);

}  // namespace fx
