// The candidates of an AnchorIndex at every node of a graph in turn. Internal to matchers/.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <fxgraph/matchers/anchor_index.h>

namespace fx::internal {

/// AnchorIndex asks about a node's operands, their operands, and so on, for every node anew. Here a node has a state,
/// which tells the answers to all questions that may be asked about it and follows from its target and the states of
/// its operands: a look-up, once such a node has been met. Asks the index where an operand is not known.
class AnchorSweep {
 public:
  AnchorSweep(const AnchorIndex& index, const Graph& graph);

  /// The patterns that may start at `node`, in order. To be asked for the nodes in graph order; valid until the next
  /// call.
  const std::vector<std::uint32_t>& candidates(const Node& node);

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0} - 1;
  static constexpr std::uint32_t kNothing = 0;  // the state of what no question is about
  static constexpr std::size_t kMostStates = 1 << 16;

  /// What an opcode and target may be asked about.
  struct Label {
    std::vector<std::uint32_t> trees;      // of the index
    std::vector<std::uint32_t> positions;  // of operands that these ask about
    std::uint32_t root = 0;                // among them: the questions about an anchor
  };
  struct State {
    std::vector<std::uint32_t> answers;  // by tree of the label: which of lists_
    std::vector<std::uint32_t> ids;      // patterns that may start here
    std::uint32_t label = kUnknown;
  };

  std::uint32_t label_for(std::uint64_t key);
  std::uint32_t label_of_call(const Node& node);
  std::uint32_t state_of(std::uint32_t label, const Node& node);
  std::uint32_t learn(std::uint32_t label, const Node& node);
  std::uint32_t state_with(std::uint32_t label, const Node& node);
  std::uint32_t state_of_operand(const Node& node, std::uint32_t position) const;
  static std::uint64_t step(std::uint32_t state, std::uint32_t operand) {
    return (static_cast<std::uint64_t>(state) << 32) | operand;
  }

  const AnchorIndex& index_;
  std::vector<std::uint32_t> states_of_nodes_;  // by id
  FlatMap<std::uint32_t> label_of_;             // opcode and target -> the label's number, which is its first state
  FlatMap<std::uint32_t> label_of_spelling_;    // as nodes have it -> 1 + what label_of_call says
  std::vector<Label> labels_;
  std::vector<State> states_;
  FlatMap<std::uint32_t> steps_;                              // state and the next operand's state -> state
  std::map<std::vector<std::uint32_t>, std::uint32_t> with_;  // label and answers -> state
  std::map<std::vector<std::uint32_t>, std::uint32_t> list_of_;
  std::vector<std::vector<std::uint32_t>> lists_;  // of patterns, each once
  std::vector<std::uint32_t> place_;               // of a tree among its label's
  std::vector<std::uint32_t> scratch_;
};

}  // namespace fx::internal
