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
#include <unordered_map>
#include <utility>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/callable.h>

namespace fx {

namespace internal {
struct DecomposeAccess;
}

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
  friend struct internal::DecomposeAccess;
  const internal::Callable* find(Symbol target) const;
  void set(Symbol target, internal::Callable function);
  std::unordered_map<Symbol, internal::Callable> functions_;
};

/// Returns a copy of `module` in which no operator of the table is left: what the functions make is decomposed, too.
/// With `shapes` (of `module`'s graph) the functions may ask for sizes. Throws Error(invalid_argument) naming node and
/// argument when a call does not fit its function, and when the functions produce their own operators for ever. Linear
/// in the nodes made.
std::shared_ptr<GraphModule> decompose(const GraphModule& module, const Decompositions& table,
                                       const Shapes* shapes = nullptr);

/// The same for a bare graph. Tensors that the functions capture are added to `attributes`; throws when there are some
/// and it is null.
Graph decompose(const Graph& graph, const Decompositions& table, GraphModule::Attributes* attributes = nullptr,
                const Shapes* shapes = nullptr);

}  // namespace fx
