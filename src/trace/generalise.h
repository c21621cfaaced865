// Generalising: a trace made at the sizes of its examples becomes one that holds for others.
//
// C++ hands out sizes as plain numbers, so the first trace holds them as numbers. The program is run again at other
// sizes (trace/size_search.h); where it does the same, each number of the graph that has changed is explained as an
// expression of sizes (trace/size_explainer.h) and written so (trace/size_writer.h). A dimension on which the program
// depends in another way keeps its size, which the graph asserts.
//
// Leaf modules have been raised before: what they do inside is theirs. Cost: as a rule two to four further runs of the
// program, none of which builds more than a list of its calls.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <fxgraph/trace/probe.h>
#include <fxgraph/trace/size_groups.h>
#include <fxgraph/trace/sizes.h>

namespace fx::internal {

/// What `table.index({Slice(0, n)})` leaves out where n is all that there is, it does not leave out at other sizes:
/// then those are traced, and what was left out is what all of these slices are at the sizes that were given.
struct Retrace {
  std::vector<at::Tensor> examples;  ///< for the tensors among the inputs, of other sizes; empty for those given
  std::vector<at::Tensor> given;     ///< what `examples` stand for
  bool is_refused = false;  ///< the program does something else at the sizes that were given, or runs at no other
  bool is_bounded = false;  ///< the program keeps what it makes for larger sizes; none beyond `largest` are tried
  std::vector<std::vector<std::int64_t>> largest{};  ///< of each tensor among the inputs, each dimension
  std::set<std::string> not_leaves{};  ///< paths of leaf modules for which calls were taken that others are elsewhere

  void refuse() {
    is_refused = true;
    examples.clear();
  }
};

/// The tensors of one more example, beside those that were bound.
using MoreExamples = std::vector<std::vector<at::Tensor>>;
/// Of each of `more` the tensors, in the order of `inputs`. Throws Error(invalid_argument) when one does not fit
/// `examples`.
MoreExamples tensors_of(const std::vector<std::vector<c10::IValue>>& more, const std::vector<c10::IValue>& examples,
                        const std::vector<BoundTensor>& inputs);

/// Told of the sizes that are found to do, and who says of a run whether its numbers are those of the graph.
using AtFoundSizes = std::function<void(SizeGroups& groups, const std::function<bool(const Probe&)>& agrees)>;

/// False when the program has to be traced again, as `retrace` then says.
bool generalise(Graph& graph, const ProbedProgram& program, Session& session, const std::vector<BoundTensor>& inputs,
                const Sizes& sizes, const MoreExamples& more, Retrace& retrace, const AtFoundSizes& at_found_sizes);

}  // namespace fx::internal
