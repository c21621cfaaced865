// TensorFacts: what is known of a tensor, for who chooses by it what stands in its place.
//
// A rewrite that goes by a type, a rank or a size holds for calls that have these. So each answer is noted, and who
// commits the rewrite answers for the notes (fxgraph/rewriter/fact_guard.h).
//
// Thread-safety: a log belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fxgraph/ir/node.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ir/type_set.h>

namespace fx {

/// What of a value was asked for.
enum class FactKind : std::uint8_t { dtype, same_dtype, rank, last_size, sizes, same_sizes };

/// What turned out to hold of a value.
struct Fact {
  const Node* value;            ///< in the graph that is rewritten
  FactKind kind;                ///< what was asked
  TypeSet types{};              ///< of `dtype`: it is one of these
  std::uint64_t ranks = 0;      ///< of `rank`: bit i, it may be i
  const Node* other = nullptr;  ///< of `same_dtype` and `same_sizes`: it is like this one
  /// The same answer to the same question.
  friend bool operator==(const Fact&, const Fact&) = default;
};

/// What was asked, each once, in the order of asking.
class FactLog {
 public:
  /// Adds what is not noted yet.
  void note(const Fact& fact) {
    if (std::find(facts_.begin(), facts_.end(), fact) == facts_.end()) facts_.push_back(fact);
  }
  /// Returns all that is noted.
  const std::vector<Fact>& facts() const { return facts_; }
  /// Forgets it.
  void clear() { facts_.clear(); }

 private:
  std::vector<Fact> facts_;
};

/// See the top of this file. Only what is known, which `if (facts)` tells, may be asked.
class TensorFacts {
 public:
  TensorFacts() = default;  ///< nothing is known
  /// Answers from `info`, which may be null, and notes it in `asked`, which may be null.
  TensorFacts(const TensorInfo* info, const Node& value, FactLog* asked) : info_(info), value_(&value), asked_(asked) {}

  /// True when something is known.
  explicit operator bool() const { return info_ != nullptr; }
  /// The element type; where more than one would do, ask is_of().
  DType dtype() const {
    note({value_, FactKind::dtype, TypeSet{info_->dtype}});
    return info_->dtype;
  }
  /// True when the element type is one of these.
  bool is_of(TypeSet types) const {
    const bool is = types.contains(info_->dtype);
    note({value_, FactKind::dtype, is ? types : ~types});
    return is;
  }
  /// True when both are of one type, whatever it is.
  bool is_of_type_of(const TensorFacts& other) const {
    if (info_->dtype != other.info_->dtype) return dtype() == other.dtype();
    note({value_, FactKind::same_dtype, {}, 0, other.value_});
    return true;
  }
  /// How many dimensions it has.
  std::size_t rank() const {
    note({value_, FactKind::rank, {}, std::uint64_t{1} << info_->sizes.size()});
    return info_->sizes.size();
  }
  /// True unless it is a scalar tensor.
  bool has_dimensions() const {
    const bool has = !info_->sizes.empty();
    note({value_, FactKind::rank, {}, has ? ~std::uint64_t{1} : std::uint64_t{1}});
    return has;
  }
  /// Those that differ from call to call are negative where optimize() asks.
  /// @{
  const std::vector<std::int64_t>& sizes() const {
    note({value_, FactKind::sizes});
    return info_->sizes;
  }
  /// Of the last dimension, which there must be.
  std::int64_t last_size() const {
    note({value_, FactKind::last_size});
    return info_->sizes.back();
  }
  /// @}
  /// True when both are of the same sizes, whatever these are.
  bool is_of_sizes_of(const TensorFacts& other) const {
    if (info_->sizes != other.info_->sizes) return sizes() == other.sizes();
    note({value_, FactKind::same_sizes, {}, 0, other.value_});
    return true;
  }
  /// All that is known; type and sizes count as asked for.
  /// @{
  const TensorInfo* operator->() const { return all(); }
  operator const TensorInfo*() const { return all(); }
  /// @}
  /// What the example shows, which nothing is noted of: for choices that are right in every call.
  const TensorInfo& example() const { return *info_; }

 private:
  void note(const Fact& fact) const {
    if (asked_) asked_->note(fact);
  }
  const TensorInfo* all() const {
    if (!info_) return nullptr;
    dtype();
    sizes();
    return info_;
  }

  const TensorInfo* info_ = nullptr;
  const Node* value_ = nullptr;
  FactLog* asked_ = nullptr;
};

}  // namespace fx
