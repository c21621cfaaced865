// Inputs that samples of other sizes do not reach: of size zero, and of another number of dimensions. Whether a traced
// program does with them what the graph does.
//
// Programs treat them on their own (`if (x.size(0) == 0) return …`, `if (x.dim() == 3) x = x.unsqueeze(0)`), count
// dimensions from behind (`x.size(-1)`), or end the process. So they are tried in a child process; what goes another
// way is asserted not to be.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/child_trials.h>
#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

class OddInputs {
 public:
  OddInputs(const SampledProgram& program, const std::vector<BoundTensor>& inputs, SizeGroups& groups)
      : program_(program), inputs_(inputs), groups_(groups) {}

  /// Zero for all free groups at once; where that does not do, for each alone.
  void add_empty();
  /// One dimension more, in front, and the first one less, of all inputs at once, and of each alone: it may compare
  /// them.
  void add_ranks();
  /// Tries them. What does not do at size zero has a size of one at least from now on in the groups. Where no process
  /// can be made, so has everything. `agrees` as try_in_children() has it.
  void run(const std::function<bool(const Sample&)>& agrees);
  /// Asserts the rank of the inputs that the program treats differently at another. To be called when the graph has
  /// what it asserts of sizes: a size of a dimension that is not there is no clear answer.
  void write(Graph& graph) const;

 private:
  struct Empty {
    std::size_t trial;
    std::uint32_t group;
  };
  struct Rank {
    std::size_t trial;
    std::vector<std::uint32_t> inputs;
  };
  void forbid_empty(std::uint32_t group, const std::string& why, const std::string& where);
  void add_rank(bool more, const std::vector<std::uint32_t>& some);
  const ChildTrial* against(std::uint32_t input) const;

  const SampledProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  SizeGroups& groups_;
  std::vector<ChildTrial> trials_;
  std::vector<Empty> empty_;
  std::vector<Rank> ranks_;
};

}  // namespace fx::internal
