// lower: parts of a program handed to a back end, the rest left as it is.
//
//   struct MyBackend : fx::Backend {
//     std::string name() const override { return "mine"; }
//     bool supports(const fx::CallFacts& call) const override;
//     std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<fx::GraphModule> part) const override;
//   };
//   fx::Lowered lowered = fx::lower(*gm, MyBackend(), {.examples = {x}});
//   lowered.module()->forward(x);            // a GraphModule that calls mine_0, mine_1, …
//   std::cout << lowered.report();           // which nodes went where, and why not the others
//   lowered.inlined();                       // the program as it was
//
// A back end gets what it supports in as few parts as can be (partitioner.h). It never gets what writes, draws random
// numbers, raises, or looks at storage that somebody writes: such calls stay, in their order. So a part may copy, keep
// and reorder as it likes. Weights that a part reads are constants to it: train before lowering.
//
// Thread-safety: none beside that of the back end.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/partition/operator_support.h>
#include <fxgraph/rewriter/partition/partitioner.h>

namespace fx {

/// Who compiles parts of programs.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Names its parts: an identifier.
  virtual std::string name() const = 0;
  /// Says whether it can compile this call.
  virtual bool supports(const CallFacts& call) const = 0;
  /// Says why it cannot; nothing when it can. The default asks supports().
  virtual std::optional<std::string> why_not(const CallFacts& call) const;
  /// Returns what computes the same as `part`: a GraphModule, a module of torch::nn or of a registered type, or a
  /// CompiledPart. Null leaves the part in the program as it was. What it throws ends the lowering.
  virtual std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule> part) const = 0;
};

/// A module that a back end makes, called with any number of values. Programs can call every class derived from it.
class CompiledPart : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  /// Takes the inputs of the part, in its order, and returns what the part returns: one value, or a tuple.
  virtual c10::IValue run(std::vector<c10::IValue> inputs) = 0;
  /// For copies of the program (`clone_graph_module()`). The default refuses, with Error(unsupported): nobody else
  /// knows how to copy what was compiled.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;
};

/// Which calls may go together, as in PartitionOptions, and what back ends are told.
struct LowerOptions {
  /// Example inputs: with them back ends can ask for shapes and dtypes.
  std::vector<c10::IValue> examples{};
  /// Parts that compute fewer nodes stay in the program.
  std::size_t min_size = 1;
  std::function<std::int64_t(const Node&)> colour{};              ///< as PartitionOptions::colour
  std::vector<std::pair<const Node*, const Node*>> keep_apart{};  ///< as PartitionOptions::keep_apart
  /// Single tensors alone go into parts and come out of them, beside what the caller of the program gives: FX's
  /// allow_non_tensor = False. Needs examples.
  bool tensors_only = false;
  bool trim = false;  ///< as PartitionOptions::trim
};

/// A program with parts in a back end's hands, made by lower().
class Lowered {
 public:
  /// The program with its parts compiled.
  const std::shared_ptr<GraphModule>& module() const { return module_; }
  /// The paths of the parts in it, in their order of execution.
  const std::vector<std::string>& parts() const { return parts_; }
  /// Which nodes each part has, what keeps parts apart, why the other nodes stayed.
  const std::string& report() const { return report_; }
  /// The program with nothing compiled, as lower() was given it; names and tensors are the same, nodes of a part stand
  /// together.
  std::shared_ptr<GraphModule> inlined() const;

 private:
  friend Lowered lower(GraphModule& module, const Backend& backend, const LowerOptions& options);
  std::shared_ptr<GraphModule> module_, fused_;
  std::vector<std::string> parts_, all_parts_;
  std::string report_;
};

/// Hands what `backend` supports to it. `module` stays as it is; tensors and modules are shared. Throws what compiling
/// throws, as Error(unsupported) that names the part, and Error(execution) when the examples do not fit.
Lowered lower(GraphModule& module, const Backend& backend, const LowerOptions& options = {});

/// Returns a program that calls a module `<prefix><i>` for each list of nodes in place of them, FX's
/// fuse_by_partitions; the other nodes stay. Values used outside of a part are its results. Throws
/// Error(invalid_argument) naming the nodes when parts would have to wait for each other.
std::shared_ptr<GraphModule> fuse_by_partitions(const GraphModule& module,
                                                const std::vector<std::vector<Node*>>& partitions,
                                                const std::string& prefix = "fused_");

/// Why calls of `module` may not go where writes and storage are not what they are here; nothing for one that may.
/// What lower() asks first.
std::function<std::optional<std::string>(const Node&)> why_not_movable(const GraphModule& module);

}  // namespace fx
