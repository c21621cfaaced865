// Where the samples lie in the arguments of a call: what the rules of batch_rules.cc ask. Internal to
// rewriter/rules/batch*.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

/// So many rows for each sample: a number, times sizes that differ from call to call, by what stands for them.
struct SampleRows {
  std::int64_t factor = 1;
  std::vector<std::int64_t> free{};  ///< sorted

  /// The product of sizes; nothing when one is 0.
  static std::optional<SampleRows> of(std::span<const std::int64_t> sizes);
  SampleRows times(const SampleRows& other) const;
  /// Nothing when it cannot be divided by that.
  std::optional<SampleRows> over(const SampleRows& other) const;
  friend bool operator==(const SampleRows&, const SampleRows&) = default;
};

/// Where the samples lie in a value.
struct SampleValue {
  enum class Kind : std::uint8_t {
    shared,   ///< nowhere: it is the same for all
    batched,  ///< a tensor; its dimension `dim` is `outer` times the samples times `rows`, as if these were dimensions
    count,    ///< a number: `rows` times that of the samples
    items,    ///< a list or tuple of `items`
  };
  Kind kind = Kind::shared;
  std::size_t dim = 0;
  SampleRows rows{}, outer{};
  bool each = false;   ///< a list or tuple, all elements of which are batched so
  bool known = false;  ///< a number that is the same for all: `rows`
  std::vector<SampleValue> items{};

  static SampleValue batched(std::size_t dim, SampleRows rows = {}) { return {Kind::batched, dim, std::move(rows)}; }
  static SampleValue count(SampleRows rows) { return {Kind::count, 0, std::move(rows)}; }
  static SampleValue number(SampleRows value) { return {.rows = std::move(value), .known = true}; }
  bool is_shared() const { return kind == Kind::shared; }
  /// A batched tensor, and no list of them.
  bool is_batched() const { return kind == Kind::batched && !each; }
  bool is_count() const { return kind == Kind::count; }
  friend bool operator==(const SampleValue&, const SampleValue&) = default;
};

class CallSamples {
 public:
  using Result = std::optional<SampleValue>;

  CallSamples(const Node& node, const Shapes& shapes, const NodeMap<SampleValue>& values)
      : node_(node), call_(call_of(node)), shapes_(shapes), values_(values) {}

  const Node& node() const { return node_; }
  /// What the node calls; nothing for functions of Python that no operator is.
  const Call& call() const { return call_; }

  /// The argument at that place, or of that name; null when there is none. Without an operator, as it is written.
  const Argument* argument(std::size_t i) const;
  const Argument* argument(std::string_view name) const;
  std::size_t num_arguments() const { return call_ ? call_.schema().arguments.size() : node_.args().size(); }

  SampleValue value(const Argument& argument) const;
  /// That of the argument; shared when there is none.
  SampleValue value(std::size_t i) const;
  bool all_shared() const;
  /// All but the first `from` are.
  bool shared_from(std::size_t from) const;

  /// The tensor that the argument is; null when it is none or its form is not known.
  const TensorInfo* info(const Argument& argument) const;
  /// The tensor that the call returns.
  const TensorInfo* result_info() const { return shapes_[node_].tensor(); }
  std::optional<std::size_t> rank(std::size_t argument) const;
  /// The literal dimensions of a tensor of that rank, counted from the left; nothing when they are not literals.
  static std::optional<std::vector<std::size_t>> dims(const Argument& named, std::size_t rank);

  /// Nothing, and why.
  std::nullopt_t no(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }
  const std::string& why() const { return why_; }
  /// The result of an operator that keeps the samples where they are: a list where it returns several.
  SampleValue returned(SampleValue value) const;

 private:
  const Node& node_;
  const Call call_;
  const Shapes& shapes_;
  const NodeMap<SampleValue>& values_;
  std::string why_;
};

/// Where the samples lie in what the call returns.
CallSamples::Result result_of_batch_call(CallSamples& call);
/// What it returns when all of its arguments are shared: the number, where it is known.
SampleValue result_of_shared_call(CallSamples& call);

}  // namespace fx::internal
