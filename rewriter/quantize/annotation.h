// Annotation: which nodes of a flat program run on quantized values, which values share a range, and why not the rest.
//
// Operators with ranges of their own (convolutions, add, hardswish) are marked first. Operators that only move or pick
// elements follow: backward, where a quantized operator reads what they make; forward, where their input exists in
// quantized form only. A relu or clamp that alone reads a result becomes part of the operator before it.
//
// Linear in the program. A snapshot: valid until the graph is edited.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/config.h>

namespace fx::quantize {

/// What becomes of a node.
struct Mark {
  const Row* row = nullptr;
  const QuantSettings* settings = nullptr;
  bool quantized = false;      ///< it reads and makes quantized values
  Node* activation = nullptr;  ///< the relu after it that becomes part of it
  Node* part_of = nullptr;     ///< it is such a relu, of this node
  std::string reason;          ///< why not, in words; empty when quantized
};

/// Values that held NaN or infinity for a sample, and values that were seen and never did, by name. What is in neither
/// and reads one of the first counts as not finite.
struct Finiteness {
  std::unordered_set<std::string> not_finite{}, finite{};
};

class Annotation {
 public:
  static constexpr int kNone = -1;

  /// `shapes` are those of `flat` for some input; values without an entry are not quantized. All must outlive it.
  Annotation(const GraphModule& flat, const Shapes& shapes, const QuantConfig& config, Finiteness finiteness = {});

  const Mark& of(const Node& node) const { return marks_[node]; }
  /// The range that the value has, or kNone when it stays float. Lists have the range of their elements.
  int range_of(const Node& value) const { return ranges_[value]; }
  int num_ranges() const { return static_cast<int>(roots_.size()); }
  /// The value that the range is measured at.
  Node& root(int range) const { return *roots_[static_cast<std::size_t>(range)]; }
  /// True when a quantized operator makes the value: whoever reads it, reads it rounded.
  bool is_made_quantized(const Node& value) const { return made_[value]; }
  /// True when `user` computes with the quantized form of `value`.
  bool reads_quantized(const Node& user, const Node& value) const;
  /// How values of the range become whole numbers.
  const Quantizer& quantizer(int range) const { return quantizers_[static_cast<std::size_t>(range)]; }
  /// The node that computes the range's root; for a relu that became part of it, the operator before.
  const Node& maker(const Node& root) const;

 private:
  std::string obstacle(Node& node, const Row& row) const;
  std::string not_finite_obstacle(const Node& node, const Row& row);
  std::string weight_obstacle(const Site& site) const;
  bool is_float_tensor(const Node& value) const;
  bool is_float_value(const Node& value) const;
  void mark_candidates(const QuantConfig& config);
  void fuse_activations();
  void spread();
  void find_ranges();
  void join_ranges();
  bool has_free_range(const Node& root) const;

  const GraphModule& flat_;
  const Shapes& shapes_;
  Finiteness finiteness_;
  /// Why the value is not the same to all its readers, at every call; empty when it is.
  std::function<std::string(const Node&)> changes_;
  NodeMap<Mark> marks_;
  NodeMap<bool> wanted_, made_;
  NodeMap<int> ranges_;
  std::vector<Node*> roots_;
  std::vector<Quantizer> quantizers_;
};

/// The row of the table that a call falls under; null when there is none.
const Row* row_for(const Node& node);

/// Calls `visit(Node&)` for each value that a node of this row reads quantized.
void for_each_quantized_operand(const Row& row, const Node& node, const std::function<void(Node&)>& visit);

/// The axis of the output channels in the weight of a `weighted` row, or nothing when scales cannot go by channel.
std::optional<std::int64_t> channel_axis(const Row& row);

}  // namespace fx::quantize
