// Graphs for tests and benchmarks: seeded random ones, and the regular shapes whose costs are known.
//
// The same seed and options give the same graph on every platform. All graphs lint clean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include "tests/support/random.h"

namespace fx::testing {

/// One way to call an operator, written as what stands in its arguments:
///   t value   T list of values   U tuple of values   o value or None
///   i int     I list of two ints  f float   b bool   s string   n None   d dtype   v device   m memory format
///   S tuple of slices, ints, None and Ellipsis      M dict of values   0-9 that int
/// `kwargs` is a comma-separated list of `name:letter`; each is present in half of the calls.
/// With `results` > 1 the call is followed by `operator.getitem` nodes, and only those are used further on.
struct OperatorForm {
  Op op = Op::call_function;
  const char* target = "";
  const char* args = "t";
  const char* kwargs = "";
  int results = 1;
};

/// ATen calls that fit their schemas, methods, modules, attributes: what traced models are made of. Nothing writes.
const std::vector<OperatorForm>& default_vocabulary();
/// A few elementwise operators: many equal calls, for matchers and common subexpressions.
const std::vector<OperatorForm>& pointwise_vocabulary();
/// The same with copies, lists and attributes, for what patterns say beyond operators.
const std::vector<OperatorForm>& copying_vocabulary();
/// Views, in-place operators and reads, for effects and aliases.
const std::vector<OperatorForm>& mutating_vocabulary();

/// Where arguments come from.
enum class Shape : std::uint8_t {
  chain,   ///< the newest value, nearly always
  fan,     ///< one of the first few values, mostly: many users each
  ladder,  ///< one of the newest four
  dag,     ///< any value, newer ones more often
};

struct RandomGraphOptions {
  std::size_t nodes = 40;  ///< about: getitem nodes, attributes and the output come on top
  std::size_t inputs = 3;
  Shape shape = Shape::dag;
  const std::vector<OperatorForm>* vocabulary = &default_vocabulary();
  unsigned named_percent = 10;  ///< nodes with a name of their own (clashes and numbers included)
  unsigned typed_percent = 5;   ///< nodes with a type annotation
  bool all_live = false;        ///< return every unused value; else one to three random ones
};

Graph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});
/// Options that vary with the seed: every shape, 0 to `max_nodes` nodes, live or not.
RandomGraphOptions random_options(std::uint64_t seed, std::size_t max_nodes = 60);

/// Small tensors of two dtypes for the values of a graph, at random; some are no tensors.
Shapes random_shapes(const Graph& graph, std::uint64_t seed);

/// The chain workload of the benchmarks: 3·blocks + 3 nodes. A block is
///   a = aten::add.Tensor(t, y); r = aten::relu(a); t = aten::mul.Tensor(r, y)
/// on two inputs x (the first t) and y; the last t is returned.
Graph chain(std::size_t blocks);
/// The same with effects: what a relu gives is multiplied, drawn for, written in place and looked at by a view.
Graph chain_with_effects(std::size_t blocks);
/// One input used by `width` relu nodes, all returned.
Graph fan(std::size_t width);
/// `rungs` diamonds, one after the other: two relus of the last value, added.
Graph ladder(std::size_t rungs);

}  // namespace fx::testing
