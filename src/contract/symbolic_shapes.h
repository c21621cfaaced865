// SymbolicShapes: the sizes of every value of a program as expressions of those of its inputs.
//
//   const fx::SymbolicShapes shapes(graph, {fx::dims("batch", 3, "h", "w")});
//   std::cout << shapes.of(conv)[2];             // (h - 1)//2 + 1
//   std::cout << shapes.of(flat)[1];             // 512*((h - 1)//32 + 1)*((w - 1)//32 + 1)
//   shapes.conditions();                         // what sizes must satisfy, and which node says so
//
// One pass over the graph, by the operators' rows (fxgraph/ops/records/size_inference.h), without running anything. A
// size that data decide, or that nothing decides, is a symbol of its own, u0, u1, …; an operator without a row gives
// values of which nothing is known, and unknown() names it.
//
// Cost: O(nodes), and what the expressions take. Thread-safety: const functions may run together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/size_inference.h>

namespace fx {

/// A tensor of these sizes, each a number or the name of one that varies: `dims("batch", 3, "h", "w")`.
template <typename... Sizes>
TensorType dims(const Sizes&... sizes) {
  const auto size_of = [](const auto& size) -> SizeExpr {
    if constexpr (std::is_convertible_v<decltype(size), std::string>) {
      return SizeExpr::symbol(size);
    } else {
      return size;
    }
  };
  TensorType made{DType::float32, {size_of(sizes)...}, {}};
  made.strides = contiguous_strides(made.sizes);
  return made;
}

/// `info` with the sizes that it has.
TensorType tensor_type(const TensorInfo& info);
/// The tensor where its sizes are numbers; nothing of others.
std::optional<TensorInfo> tensor_info(const TensorType& type);

/// A call that has no row, or that its row does not decide.
struct UndecidedCall {
  const Node& node;                          ///< where it stands; in a called module one of that module's graph
  const Call& call;                          ///< what it calls; none where that is no operator
  std::span<const AbstractValue> arguments;  ///< one for each that the operator has, or that are written
  const InferredCall& inferred;              ///< why it is not decided
  const NodeMap<AbstractValue>& values;      ///< of the nodes before it
  std::function<SizeExpr()> fresh;           ///< a size of its own
};

/// What is known beside a graph.
struct ShapeSources {
  ModuleInfo modules{};  ///< bodies of called modules
  /// What the attribute at a path is; without it nothing is known of attributes.
  std::function<std::optional<TensorType>(std::string_view path)> attribute{};
  /// What is known of a node of the graph beside what its call says: its value from then on.
  std::function<AbstractValue(const Node& node, AbstractValue said)> refine{};
  /// Asked for what rows do not decide; several results are a list.
  std::function<AbstractValue(const UndecidedCall& call)> other{};
  SizeRanges ranges{};    ///< of symbols of the inputs; of others from 0 on
  bool may_stop = false;  ///< once refused() is known: nothing is known then of what follows
};

/// See the top of this file.
class SymbolicShapes {
 public:
  /// What a node asks of sizes.
  struct Asked {
    const Node* node;         ///< a call that refuses others, or an assertion
    SizeCondition condition;  ///< in symbols of the inputs, and of what nothing decides
  };
  /// Of which call nothing is known.
  struct Unknown {
    const Node* node;  ///< the call
    std::string why;   ///< what is missing
  };

  /// `inputs` are the placeholders', in order; of those that have none their default is taken.
  SymbolicShapes(const Graph& graph, std::vector<AbstractValue> inputs, const ShapeSources& sources = {});

  /// The value of a node, as far as it is known.
  const AbstractValue& operator[](const Node& node) const { return values_[node]; }
  /// The sizes of a tensor. Throws Error(invalid_argument) naming the node when it is none, or nothing is known of it.
  const std::vector<SizeExpr>& of(const Node& node) const;

  const std::vector<Asked>& conditions() const { return conditions_; }  ///< each once, in the order of the graph
  const std::vector<Unknown>& unknown() const { return unknown_; }      ///< in the order of the graph
  /// Assertions that follow from what is asked before them.
  const std::vector<Asked>& implied() const { return implied_; }
  /// Calls that ask more than conditions() say: views of strides that are not known.
  const std::vector<Unknown>& unsaid() const { return unsaid_; }
  /// Calls of which ShapeSources::other said more than their rows.
  const std::vector<const Node*>& said_by_others() const { return said_by_others_; }
  const SizeFacts& facts() const { return facts_; }        ///< what follows from the conditions
  const std::string& refused() const { return refused_; }  ///< why no input of these forms does, when that is known

 private:
  class Pass;

  NodeMap<AbstractValue> values_;
  std::vector<Asked> conditions_, implied_;
  std::vector<Unknown> unknown_, unsaid_;
  std::vector<const Node*> said_by_others_;
  SizeFacts facts_;
  std::string refused_;
};

}  // namespace fx
