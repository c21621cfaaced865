// ViewPlaces: where in a tensor's storage its views lie. Internal to rewriter/program/reinplace.cc.
//
// Worked out from the calls that make views and the shapes of their results; offsets are in elements, from the tensor
// that is no view. What is not known (a size that the program computes, a view of several results) has no place.
// Cost: a look at each view once. Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// Elements of the storage that `root` made.
struct ViewPlace {
  const Node* root = nullptr;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;

  /// Elements one after the other.
  static ViewPlace contiguous(const Node* root, std::int64_t offset, const std::vector<std::int64_t>& sizes);
  /// True when both are the same elements in the same order; strides of dimensions of one element do not count.
  bool is_same(const ViewPlace& other) const;
};

/// What a scatter (`aten::slice_scatter`, select_scatter, diagonal_scatter, as_strided_scatter) does, in place: a copy
/// into a view.
struct ScatterView {
  Symbol target;               ///< makes the view: `aten::slice.Tensor`
  Node* base = nullptr;        ///< what it is a view of
  Node* source = nullptr;      ///< what is copied into it
  std::vector<Argument> args;  ///< of the view, behind the base
  ViewPlace place;             ///< of the view; in `base` where nobody knows where that lies
};

/// See the top of this file.
class ViewPlaces {
 public:
  /// Both must outlive it and stay as they are.
  explicit ViewPlaces(const Shapes& shapes) : shapes_(shapes) {}
  /// Nothing when it is not known.
  std::optional<ViewPlace> of(const Node& node);
  /// Nothing when the call is no scatter, or its arguments or the shape of its base are not known.
  std::optional<ScatterView> scatter_view(const Node& node);

 private:
  const TensorInfo* info(const Node& node) const {
    return node.id() < shapes_.size() ? shapes_[node].tensor() : nullptr;
  }
  std::optional<ViewPlace> find(const Node& node);

  const Shapes& shapes_;
  NodeMap<std::optional<ViewPlace>> known_;
  NodeMap<bool> asked_;
};

}  // namespace fx
