// Decompositions: operators replaced by what ordinary C++ functions compute.
//
//   fx::Decompositions table;
//   table["aten::relu"] = [](torch::Tensor x) { return (x > 0) * x; };
//   table["aten::addmm"] = [](auto bias, auto a, auto b) { return bias + torch::matmul(a, b); };
//   auto decomposed = fx::decompose(*gm, table);
//
// A function's parameters are the operator's, in the order of its schema; those that the function leaves out must have
// their default value in the call. Tensors are traced; number, bool and string parameters get the literal of the call.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/callable.h>

namespace fx {

namespace internal {
/// Functions by the canonical names of their operators, in the order in which they were set.
using DecompositionTable = std::vector<std::pair<Symbol, Callable>>;
/// The function for `target`, in any spelling of the overload, or null.
const Callable* find(const DecompositionTable& table, Symbol target);
}  // namespace internal

/// A function for each operator that is to be replaced.
class Decompositions {
 public:
  /// What `table["aten::relu"]` is: something to assign a function to.
  class Entry {
   public:
    /// Sets the function, in place of the one that is there; whether it fits the operator is seen when a call is
    /// decomposed.
    template <typename Function>
    void operator=(Function&& function) {
      table_.set(target_, internal::make_callable(std::forward<Function>(function)));
    }

   private:
    friend class Decompositions;
    Entry(Decompositions& table, Symbol target) : table_(table), target_(target) {}
    Decompositions& table_;
    Symbol target_;
  };

  /// `target` in any spelling of an operator overload.
  Entry operator[](Symbol target) { return Entry(*this, canonical_target(target)); }
  /// True when the table has a function for `target`, in any spelling of the overload.
  bool contains(Symbol target) const { return find(target) != nullptr; }
  /// How many operators have a function.
  std::size_t size() const { return functions_.size(); }

 private:
  friend std::shared_ptr<GraphModule> decompose(const GraphModule&, const Decompositions&, const Shapes*);
  friend Graph decompose(const Graph&, const Decompositions&, GraphModule::Attributes*, const Shapes*);
  const internal::Callable* find(Symbol target) const { return internal::find(functions_, target); }
  void set(Symbol target, internal::Callable function);
  internal::DecompositionTable functions_;
};

/// Returns a copy of `module` in which no operator of the table is left: what the functions make is decomposed, too.
/// With `shapes` (of `module`'s graph) the functions may ask for sizes. Each decomposition is checked as every rewrite
/// is. Throws Error(invalid_argument) naming the node when a call does not fit its function, when the program would see
/// the difference (a result that becomes an input, which a later call writes), and when the functions produce their own
/// operators for ever. Linear in the nodes made.
std::shared_ptr<GraphModule> decompose(const GraphModule& module, const Decompositions& table,
                                       const Shapes* shapes = nullptr);

/// The same for a bare graph. Tensors that the functions capture are added to `attributes`; throws when there are some
/// and it is null.
Graph decompose(const Graph& graph, const Decompositions& table, GraphModule::Attributes* attributes = nullptr,
                const Shapes* shapes = nullptr);

}  // namespace fx
