// Disguise: inputs of another element type and layout, which a program that takes nothing from these does not notice.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include <fxgraph/trace/session.h>

namespace fx::internal {

/// A tensor of these sizes and options to stand for `example`, without contents; large ones have no memory.
at::Tensor without_contents(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const at::TensorOptions& options);

class Disguise {
 public:
  /// For inputs like `inputs`: floating-point numbers become those of another type, what is contiguous and has several
  /// dimensions lies the other way round.
  explicit Disguise(const std::vector<at::Tensor>& inputs);

  bool is_empty() const { return !type_ && !changes_layout_; }
  /// Of which type others become which; nothing when there are no floating-point numbers.
  const std::optional<OtherType>& type() const { return type_; }
  bool changes_layout() const { return changes_layout_; }
  /// Whether `input` may lie otherwise.
  static bool may_be_laid_out_otherwise(const at::Tensor& input);
  /// `inputs` of the other type, the other layout, or both; without their contents.
  std::vector<at::Tensor> of(std::vector<at::Tensor> inputs, bool other_type, bool other_layout) const;

 private:
  std::optional<OtherType> type_;
  bool changes_layout_;
};

}  // namespace fx::internal
