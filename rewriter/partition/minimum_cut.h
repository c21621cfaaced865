// The cuts between stages, moved to where the fewest bytes go over. Internal to rewriter/partition/stage_cuts.cc.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/rewriter/partition/stage_cuts.h>

namespace fx {

class MinimumCuts {
 public:
  /// `limit`: how many seconds a stage may take.
  MinimumCuts(const StageProblem& problem, const std::vector<Node*>& calls, double limit)
      : problem_(problem), calls_(calls), limit_(limit) {}

  /// Moves calls between neighbouring stages while that sends less and no stage passes the limits.
  void improve(NodeMap<std::uint32_t>& stage) const;

 private:
  static constexpr std::size_t kWindow = 4000;

  std::vector<Node*> window(const NodeMap<std::uint32_t>& stage, std::uint32_t left) const;
  bool within_limits(const NodeMap<std::uint32_t>& stage) const;
  double sent(const NodeMap<std::uint32_t>& stage) const;
  NodeMap<std::uint32_t> cut(const NodeMap<std::uint32_t>& stage, std::uint32_t left,
                             const std::vector<Node*>& window) const;

  const StageProblem& problem_;
  const std::vector<Node*>& calls_;
  double limit_;
};

}  // namespace fx
