// Between what the sizes of values lie in every call, whatever the inputs: worked out front to back from weights,
// literals, operators that keep sizes, and what the program asserts.
//
// Unlike shapes of an example they hold always; unlike FreeSizes they are proved, not sampled. What is not known is
// unbounded, which is never wrong.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>

namespace fx::rules {

/// What a size lies between.
struct Extent {
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = 0, most = kAny;

  bool is(std::int64_t size) const { return least == size && most == size; }
  friend bool operator==(const Extent&, const Extent&) = default;
};
/// One for each dimension; nothing when it is not known how many there are.
using Extents = std::optional<std::vector<Extent>>;

/// A convolution by its weight and numbers, packed or not.
struct ConvolutionSizes {
  /// Of an image.
  std::int64_t channels = 0, made_channels = 0;
  struct Dim {
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1, output_padding = 0;
  };
  std::vector<Dim> dims{};
  bool transposed = false;

  /// The least size of an image along `dim`, 0 for its height, of which the kernel makes something.
  std::int64_t least(std::size_t dim) const;
  /// What it makes of such a size.
  std::int64_t made(std::size_t dim, std::int64_t size) const;
};

class SizeBounds {
 public:
  explicit SizeBounds(const GraphModule& module);

  /// Works out those of the next node: once for each, in the order of the graph.
  void visit(const Node& node);
  const Extents& operator[](const Node& node) const { return known_[node]; }

  /// What an assertion at this place has said of the value.
  /// @{
  void learn_rank(const Node& value, std::size_t rank);
  void learn(const Node& value, std::int64_t dim, const Extent& extent);
  /// @}

  /// Of a call of a packed kernel, whose second argument is `pack`; nothing when the sizes of its weight are not known.
  std::optional<ConvolutionSizes> convolution(const Node& node) const;

  /// Of a linear layer, packed or not.
  Extents weight_of_linear(const Node& call) const;

 private:
  Extents of(const Node& node) const;
  Extents of_operator(const Node& node) const;
  static Extents rearranged(const Call& call, std::vector<Extent> sizes);
  Extents broadcast(const Node& node) const;
  Extents cat(const Call& call) const;
  Extents made_by(const Call& call, const ConvolutionSizes& convolution) const;
  std::optional<ConvolutionSizes> plain_convolution(const Call& call) const;
  Extents at(const Call& call, std::string_view argument) const;
  void learn_from(const Node& assertion);

  const GraphModule& module_;
  bool restructures_ = false;  // sizes of values change while the program runs
  NodeMap<Extents> known_;
};

}  // namespace fx::rules
