// TraceLog: the calls of a trace in the order in which they were recorded, with all their arguments.
//
// It outlives the nodes: raising leaf modules erases many of them, and the arguments here stay. Memory: sixteen bytes
// per argument.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/trace/follower.h>

namespace fx::internal {

/// How many numbers, tensors and the like it has, those inside of lists counted each.
std::uint32_t count_leaves(const Argument& argument);

class TraceLog final : public TraceFollower {
 public:
  struct Call {
    Op op;
    Symbol target;
    const OpRecord* record;
    std::uint32_t first;
    std::uint32_t count;
    Node* node;
    std::size_t list_length;  ///< of the result; 0 when it is no list
  };
  /// A question for the shape of the result of call `of`, when `at` calls had been made.
  struct Question {
    std::uint32_t of;
    std::uint32_t at;
  };

  void making(const TracedCall& call) override;
  void made(Node& node) override;
  void returns_list(std::size_t length) override { calls_.back().list_length = length; }
  void asked(const Node& node) override;
  void note_rank_query(const Node& node) override;
  void refused(const std::exception&) override { meets_errors_ = true; }

  std::uint32_t size() const { return static_cast<std::uint32_t>(calls_.size()); }
  const Call& operator[](std::uint32_t i) const { return calls_[i]; }
  ArgumentSpan arguments(std::uint32_t i) const {
    return ArgumentSpan(arguments_.data() + calls_[i].first, calls_[i].count, sizeof(Argument));
  }
  /// A number, a tensor or the like among the arguments of call `i`, those inside of lists counted each; None when
  /// there are not so many.
  Argument leaf(std::uint32_t i, std::uint32_t leaf) const;
  std::uint32_t num_leaves(std::uint32_t i) const;
  /// Notes that the calls from `first` to `last` are one call of a leaf module.
  void note_leaf(std::uint32_t first, std::uint32_t last);
  /// Whether call `i` comes behind the beginning of such a call: what differs there is that module's own business. At
  /// its beginning nothing says who decided.
  bool is_inside_leaf(std::uint32_t i) const { return i < inside_leaf_.size() && inside_leaf_[i]; }
  /// Which call made `node`.
  std::uint32_t index_of(const Node& node) const { return index_by_id_[node.id()]; }
  /// The same of the node with this id.
  std::uint32_t index_of(std::uint32_t id) const { return index_by_id_[id]; }
  const std::vector<Question>& questions() const { return questions_; }
  /// Those for its number of dimensions.
  const std::vector<Question>& rank_questions() const { return rank_questions_; }
  /// Whether an operator refused the shapes, and the program went on: which do so is a question for sizes.
  bool meets_errors() const { return meets_errors_; }
  /// Whether the program may do something else for another number of dimensions: it has asked for that, or for sizes,
  /// which count from either end.
  bool asks_rank() const { return !rank_questions_.empty() || meets_errors_ || !questions_.empty(); }
  /// The operator that was about to run when call `i` was made: the call itself, or the one that it fetches a tensor
  /// for.
  std::uint32_t operator_at(std::uint32_t i) const;
  /// Where call `i` stands, in words: `conv1.weight (aten::conv2d)`.
  std::string describe(std::uint32_t i) const;

 private:
  std::vector<Call> calls_;
  std::vector<Argument> arguments_;
  std::vector<std::uint32_t> index_by_id_;
  std::vector<Question> questions_, rank_questions_;
  std::vector<bool> inside_leaf_;
  bool meets_errors_ = false;
};

}  // namespace fx::internal
