// Are the samples of a batch computed each by itself? Then a batch may be cut, the parts computed one after the other,
// and their results joined: in the order of memory that a processor has near, instead of all of it.
//
// A sample is a row of dimension 0 of every input. For each value is found out where the samples lie in it: in which
// dimension, how many rows of it each has, or that it is the same for all of them (weights, and what is computed from
// weights). A table says for each operator where they lie in its result, or that it computes across them (a mean over
// dimension 0). What is not in the table, and is not told by the operator's traits (pointwise), is refused.
//
// Source: the batch dimension of vmap and of GSPMD's sharding propagation, forward only; the table is our own.
#pragma once

#include <optional>
#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// Where it ends that samples are computed each by itself.
struct AcrossSamples {
  std::string node;    ///< the name of the first such node
  std::string reason;  ///< `mean.dim computes along the batch`
};

/// Why a batch may not be cut; nothing where it may: then for every k, and every way to cut, the program computes of
/// the parts of a batch what it computes of the whole, but for rounding (a product of other sizes may add in another
/// order), and each result is a tensor, or a list or tuple of tensors, with the samples in order in dimension 0.
///
/// `shapes` are of this graph, and hold for all inputs that the cut program will be given; a size that differs from
/// call to call is negative, the same number where sizes are equal on all inputs. Inputs that are no tensors, or have
/// no dimension, go to all parts. Random operators, writes to what samples share, side effects but for assertions, and
/// calls of modules are refused. O(nodes), in a copy of the graph.
std::optional<AcrossSamples> computes_across_samples(const Graph& graph, const Shapes& shapes);

}  // namespace fx
