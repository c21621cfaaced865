// Which sizes hold for other inputs than the example.
//
// A rule that reads a size says something about every call of the program, though the size comes from one example. So
// before rules that read sizes run, the program's shapes are worked out for inputs of other sizes too: dimension by
// dimension, and those of equal size together, a batch of one more, twice as much, the elements of one sample as those
// of several. Sizes that differ are free: negative numbers stand for them, the same one where they are equal on every
// input that was tried. What stays the same under every input that the program takes is fixed. Sizes that depend on
// numbers (nonzero, a graph that a tensor chooses) are looked at with zeros and with ones. Nothing is asked when no
// rule reads sizes or nothing in the graph could interest one.
//
// Rules that choose by the example's sizes, and are right for all, read them unmarked and ask `always_same` where two
// sizes must be one.
//
// Cost: a shape propagation for each input dimension that varies; the rounds after the first work out what has changed.
// Thread-safety: none.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

/// True when the size differs from call to call. Equal ones go together; none is -1, which reshapes and expand know.
constexpr bool is_free(std::int64_t size) { return size < 0; }
/// True for inputs that may broadcast where the example's are equal.
constexpr bool may_be_equal(std::int64_t a, std::int64_t b) { return a == b || (is_free(a) && is_free(b)); }
/// The size as reshape takes it: -1 for a free one, of which there may be one.
constexpr std::int64_t reshape_size(std::int64_t size) { return is_free(size) ? -1 : size; }

/// Forgets the types of what comes out of a branch, and of what is computed from it: another call may take the other.
void forget_branches(const Graph& graph, Shapes& shapes);

class FreeSizes {
 public:
  /// `inputs` are the example's.
  FreeSizes(GraphModule& module, std::vector<TensorInfo> inputs) : module_(module), inputs_(std::move(inputs)) {}

  /// Marks the sizes of `shapes`, which are the example's, that are free.
  void mark(Shapes& shapes);
  /// Marks every size of what is computed from inputs, each by itself: nothing is known of other examples.
  void mark_all(Shapes& shapes) const;

  /// Finds the sizes that the program takes, unless that is done: by running it when meta tensors do not do. Before
  /// lowering: packed calls are not asked what they do with sizes that a convolution refuses.
  void find_samples(bool by_running);
  /// Works out the program as it is now on those sizes, and on the example's with each input of another type, for
  /// always_same().
  void run_samples();
  /// True when two values have equal sizes and types on all of them.
  bool always_same(const Node& a, const Node& b) const;

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // input, dimension

  bool agree(const Node& node, const TensorInfos& tensors, bool (*alike)(const TensorInfo&, const TensorInfo&)) const;
  void take_samples();
  bool take(const std::vector<TensorInfo>& inputs, StandIns stand_ins = StandIns::zeros);
  void rearrange(std::size_t input);
  bool vary(const std::vector<Place>& places);
  void vary_pairs(const std::vector<Place>& places);
  void spread_samples(const std::vector<Place>& batch);

  GraphModule& module_;
  std::vector<TensorInfo> inputs_;
  std::optional<Shapes> run(const std::vector<TensorInfo>& inputs) const;
  std::optional<Shapes> run_on_zeros(const std::vector<TensorInfo>& inputs) const;

  bool sampled_ = false;
  bool not_asked_ = false;  // a sample without elements, which a kernel would have been given
  bool untold_ = false;     // of some size nothing is known, for that reason
  bool by_running_ = false;
  std::vector<std::unique_ptr<ShapeProp>> samples_;
  std::vector<std::vector<TensorInfo>> sample_inputs_;  // of each
  std::vector<Shapes> runs_;                            // of the program as it was at run_samples()
  bool says_nothing_ = false;                           // it took not all of them then
};

}  // namespace fx::rules
