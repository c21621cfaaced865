// Which sizes hold for other inputs than the example.
//
// A rule that reads a size says something about every call of the program, though the size comes from one example. So
// before rules that read sizes run, sizes that differ from call to call are marked as free: those that are no numbers
// when every size of every input is a symbol (fxgraph/contract/symbolic_shapes.h). What the program's operators and
// assertions ask of its inputs is taken for given: it refuses all others. Negative numbers stand for free sizes, the
// same one where they are one expression.
//
// Rules that choose by the example's sizes, and are right for all, read them unmarked (TensorFacts::example).
//
// Thread-safety: none.
#pragma once

#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::rules {

/// True when the size differs from call to call. Equal ones go together; none is -1, which reshapes and expand know.
constexpr bool is_free(std::int64_t size) { return size < 0; }
/// True for inputs that may broadcast where the example's are equal.
constexpr bool may_be_equal(std::int64_t a, std::int64_t b) { return a == b || (is_free(a) && is_free(b)); }
/// The size as reshape takes it: -1 for a free one, of which there may be one.
constexpr std::int64_t reshape_size(std::int64_t size) { return is_free(size) ? -1 : size; }

/// Forgets the types of what comes out of a branch, and of what is computed from it: another call may take the other.
void forget_branches(const Graph& graph, Shapes& shapes);

/// Which dimensions of the inputs vary.
enum class Vary : std::uint8_t { all, first };

/// Tensors like `inputs` each of whose sizes that may vary is a symbol of its own.
std::vector<AbstractValue> of_any_size(const std::vector<TensorInfo>& inputs, Vary vary = Vary::all);

/// Marks the sizes of `shapes`, which are those of the example `inputs`, that are free.
void mark_free(const GraphModule& module, const std::vector<TensorInfo>& inputs, Shapes& shapes, Vary vary = Vary::all);

}  // namespace fx::rules
