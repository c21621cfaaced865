// Who needs what of whom: the plan's wiring, read. Internal to rewriter/partition/pipeline*.cc.
#pragma once

#include <map>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/rewriter/partition/pipeline.h>

namespace fx {

/// A value of the whole program: a result of a stage, or an input (held by rank 0; index -1, -2, …).
struct WiredValue {
  int stage = 0;
  int index = 0;
  auto operator<=>(const WiredValue&) const = default;
};

class Pipeline::Wiring {
 public:
  /// Throws Error(invalid_argument) when the text is not a graph that calls each of its stages once, with values
  /// of stages before it.
  explicit Wiring(const PipelinePlan& plan);

  int num_stages() const { return static_cast<int>(stages_.size()); }
  /// What the stage is called with, in order.
  const std::vector<WiredValue>& inputs(int stage) const { return stages_[static_cast<std::size_t>(stage)].inputs; }
  /// True when the stage returns a tuple, whose elements are its results.
  bool returns_tuple(int stage) const { return stages_[static_cast<std::size_t>(stage)].tuple; }
  /// What `to` needs of `from`, in the order in which it is sent.
  const std::vector<WiredValue>& needs(int to, int from) const;
  /// What the program returns, from the values that it names.
  c10::IValue output(const std::map<WiredValue, c10::IValue>& values) const;
  /// The program's inputs, defaults taken for those that are missing. Throws Error(invalid_argument) on a wrong number.
  std::map<WiredValue, c10::IValue> bind(const std::vector<c10::IValue>& inputs) const;

 private:
  struct Stage {
    const Node* call = nullptr;
    bool tuple = false;
    std::vector<WiredValue> inputs;
    std::map<int, std::vector<WiredValue>> needs;
  };
  Stage& stage_called(const Node& call);
  WiredValue value_of(const Node& node) const;
  void need(int to, const WiredValue& value);

  Graph graph_;
  std::vector<Stage> stages_;
};

}  // namespace fx
