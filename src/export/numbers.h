// What TorchScript and its traces compute with tensors and lists, and torch.export with numbers; and what a program
// asserts of tensors beside their sizes: element type, layout. In an archive that is a call of
// `aten._assert_tensor_metadata`, which Python runs, with a note of what was asked and what is to be said, which is
// read here. Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fxgraph/export/json.h>
#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// Numbers that torch.jit.trace keeps in tensors: `x.size(0) * 2` is `prim::NumToTensor`, `aten::mul.Scalar` and
/// `aten::Int.Tensor`. What is read out of such a tensor becomes arithmetic of numbers, by one table of operators.
/// Where the tensor is used as one, its calls stay and `aten::scalar_tensor` makes it, of the same element type: so
/// promotion is what it was. `graph` runs over `module`'s attributes. Throws Error(unsupported), naming the call, for a
/// number that is made of sizes by an operator that has no words: one that rounds as 32-bit floats do, or writes in
/// place where that is seen elsewhere.
void compute_with_numbers(Graph& graph, const GraphModule& module);

/// Lists of sizes: `x.size()`, slices and sums of such; torch.export has words for their elements alone. Puts the
/// elements in place of such lists wherever `graph` reads them; `values` says how many there are, and learns what the
/// new nodes are.
void take_lists_apart(Graph& graph, ValueShapes& values);

/// Assertions that a number in a parameter or buffer is what it was (`item()`, as a trace asserts it) become ones of
/// tensors: the number is none that data decide, and Python asserts it where it lies.
void compare_as_tensors(Graph& graph);

inline constexpr const char* kAssertTensor = "torch.ops.aten._assert_tensor_metadata.default";
/// In the metadata of such a call.
inline constexpr const char* kAssertionNote = "fxgraph_assertion";

/// `question(permute(tensor, order)) == answer`.
struct TensorQuestion {
  const Node* tensor = nullptr;
  Symbol question{};
  Argument answer{};              ///< a number, a bool or a list of ints
  std::vector<Argument> order{};  ///< empty: the tensor as it is
  std::string message{};
};

/// What `check`, a torch._assert, asks of a tensor; nothing where it asks something else.
std::optional<TensorQuestion> question_of(const Node& check);

/// Whether the call is of numbers that stand there, where literal inputs were: it gives the same in all runs.
bool is_of_literals(const Node& call);

/// Whether `check` asks for sizes and numbers of the call alone: what the archive says of its inputs decides them.
bool is_about_sizes(const Node& check, const ValueShapes& shapes);

/// The note that read_question() reads.
std::string write_question(const TensorQuestion& question);
/// Adds the nodes of the torch._assert, of `tensor`, at the graph's insertion point. Throws Error(io) for a note that
/// write_question() did not write.
void read_question(Graph& graph, Node& tensor, const std::string& note);

}  // namespace fx::pt2
