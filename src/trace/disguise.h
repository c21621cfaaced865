// Disguise: inputs of another element type and layout, which a program that takes nothing from these does not notice.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/session.h>

namespace fx::internal {

/// The dimensions, the outermost in memory first.
std::vector<std::int64_t> order_in_memory(const at::Tensor& tensor);

/// A tensor of these sizes and options to stand for `example`, without contents; large ones have no memory.
at::Tensor without_contents(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const at::TensorOptions& options);

/// How inputs lie in memory.
enum class Laid : std::uint8_t {
  as_given,
  otherwise,      ///< dimensions in the other order, with other strides
  contiguous,     ///< what is not
  channels_last,  ///< images and volumes, by their pixels
};

class Disguise {
 public:
  /// For inputs like `inputs`: each type that one of them has becomes another, and they lie otherwise in memory.
  /// Parameters and buffers, `others`, become other types with them; where no input is of their type, too.
  Disguise(const std::vector<at::Tensor>& inputs, const std::vector<std::pair<std::string, at::Tensor>>& others);

  bool is_empty() const { return types_.empty() && !changes_layout_; }
  /// Of each type of the inputs: one that operators take as well, double for float, int32 for int64, bytes for bool.
  const std::vector<OtherType>& types() const { return types_; }
  /// The types besides that programs ask for by name.
  const std::vector<OtherType>& further_types() const { return further_types_; }
  bool changes_layout() const { return changes_layout_; }
  /// Whether there are inputs that do not lie so already, and may.
  static bool may_be(const std::vector<at::Tensor>& inputs, Laid laid);
  /// Whether `input` may lie otherwise.
  static bool may_be_laid_out_otherwise(const at::Tensor& input);
  /// `inputs` of other types, another layout, or both; without their contents.
  static std::vector<at::Tensor> of(std::vector<at::Tensor> inputs, const std::vector<OtherType>& types, Laid laid);

 private:
  std::vector<OtherType> types_, further_types_;
  bool changes_layout_;
};

}  // namespace fx::internal
