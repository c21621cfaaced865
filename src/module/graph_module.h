// GraphModule: a Graph with the parameters and modules that it names, as a torch::nn::Module like any other.
//
//   auto gm = fx::load("resnet18.pt");              // or GraphModule(root, graph), or from a bag of attributes
//   torch::Tensor y = gm->forward(x);
//   gm->graph()…; gm->recompile();                  // edit; recompile() may be left out: forward notices
//   gm->save("out.pt");                             // or out.pt2; the library fxgraph::torchscript has it
//
// get_attr and call_module targets are paths in its module tree: `layer1.0.conv1` is the submodule `conv1` of `0` of
// `layer1`, `layer1.0.conv1.weight` a parameter of that. Tensors live in the ordinary tree, so that parameters(), to(),
// state saving, train() and eval() work; modules on the way to something else are plain holders.
//
// Running goes through an execution plan: operators resolved, literals converted, leaf modules inlined, values freed at
// their last use. It is made on first use and again after edits; making it is linear in the graph. Errors while running
// are Error(execution) that name the node.
//
// Thread-safety: several threads may run one GraphModule at once; edits need it for themselves.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fxgraph/contract/contract.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/text/size_report.h>

namespace fx {

class HeldMemory;
class Plan;

/// A graph that runs over its own tree of parameters and modules; see the top of this file.
class GraphModule : public OwningModule {
 public:
  /// What a bag of attributes holds under a path. A tensor that requires grad becomes a parameter, another one a
  /// buffer.
  using Attribute = std::variant<torch::Tensor, std::shared_ptr<torch::nn::Module>>;
  /// Of several entries of one path the first counts.
  using Attributes = std::vector<std::pair<std::string, Attribute>>;

  /// A module without attributes.
  explicit GraphModule(Graph graph = {}, std::string class_name = "GraphModule");
  /// Takes from `root` what the graph names, sharing storage. Throws Error(not_found) naming node and path when `root`
  /// has not got it.
  GraphModule(const torch::nn::Module& root, Graph graph, std::string class_name = "GraphModule");
  /// Takes what the graph names from `attributes`, the others are ignored. Throws as above.
  GraphModule(const Attributes& attributes, Graph graph, std::string class_name = "GraphModule");
  ~GraphModule() override;

  /// The graph, to be edited: the next run notices.
  Graph& graph() { return graph_; }
  /// The graph, to be read.
  const Graph& graph() const override { return graph_; }
  /// For which sizes of its inputs the graph holds, as its trace has found or its assertions say.
  SizeReport sizes() const { return SizeReport(graph_); }
  /// What must hold of its inputs: what the graph asserts of them, or a graph that it calls.
  Contract contract() const;
  /// Python's `forward`, as torch.fx prints it. Other languages: fx::code (module/code.h).
  std::string code() const;
  /// Replaces the graph; its attributes must be here already when it runs.
  void set_graph(Graph graph);
  /// The name of the class that code and saved files give it.
  const std::string& class_name() const { return class_name_; }
  /// Names the class anew.
  void set_class_name(std::string name) { class_name_ = std::move(name); }

  /// Refuses from now on, for `reason`, to be switched from train() to eval() or back: the graph holds for this mode.
  void fix_mode(std::string reason) { fixed_mode_ = std::move(reason); }
  /// Why train() and eval() are refused; empty when they are not.
  const std::string& fixed_mode() const { return fixed_mode_; }
  /// Is from now on in the mode of the program that it was made from, and fixed to it where that is.
  void take_mode(const GraphModule& from);
  /// Throws Error(unsupported) when that would change a mode which is fixed.
  void train(bool on = true) override;

  // ── Running ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Runs on tensors (or anything an IValue is made from) and returns the tensor result. Throws Error(invalid_argument)
  /// when the result is something else: use run().
  template <typename... Values>
  torch::Tensor forward(Values&&... inputs) {
    std::vector<c10::IValue> values;
    values.reserve(sizeof...(inputs));
    (values.emplace_back(std::forward<Values>(inputs)), ...);
    return run_to_tensor(std::move(values));
  }
  /// The same as forward().
  template <typename... Values>
  torch::Tensor operator()(Values&&... inputs) {
    return forward(std::forward<Values>(inputs)...);
  }
  /// Runs and returns whatever the graph returns. Missing trailing inputs take their defaults.
  c10::IValue run(std::vector<c10::IValue> inputs);
  /// Keeps the memory that a run frees for the next (run/held_memory.h): with inputs of the same sizes no later run
  /// asks the system for any. Results may be kept as long as one likes. It holds what one run needs, until it is turned
  /// off or the module dies; CPU tensors of 32 KiB and more. A clone keeps memory of its own.
  void hold_memory(bool on = true);
  /// Bytes that are held now, in tensors that live or waiting for the next run.
  std::size_t held_bytes() const;
  /// Cuts larger batches from now on, runs the parts one after the other and joins their results: what a part computes
  /// lies nearer to the processor than that of the whole. The graph must compute each sample by itself
  /// (rewriter/rules/batch.h), which nobody checks here; optimize() does. Holds until the graph or an attribute is
  /// replaced or edited. Saved with the program, as TorchScript; a clone has it, too. Throws Error(invalid_argument)
  /// when the sizes are not those of each input, or cut none.
  void set_micro_batches(MicroBatches how);
  /// As they were set; of size 0 when batches are run whole.
  MicroBatches micro_batches() const;
  /// Makes the execution plan now; throws what running would throw about the graph itself.
  void recompile();
  /// The plan for the graph as it is; made when there is none.
  std::shared_ptr<const Plan> plan();

  // ── Attributes ───────────────────────────────────────────────────────────────────────────────────────────────────
  /// The tensor at `path`. Throws Error(not_found).
  torch::Tensor attribute(const std::string& path) const;
  /// The same; undefined when there is none.
  torch::Tensor find_attribute(const std::string& path) const;
  /// True for a parameter, false for a buffer and for paths where there is no tensor.
  bool is_parameter(const std::string& path) const;
  /// The module at `path`. Throws Error(not_found).
  std::shared_ptr<torch::nn::Module> submodule(const std::string& path) const;
  /// The same; null when there is none.
  std::shared_ptr<torch::nn::Module> find_submodule(const std::string& path) const;
  /// The leaf at `path`, made on the spot for a C++ torch::nn module (`Conv2d`, `BatchNorm2d`, …) whose computation is
  /// known; null when there is no such module. What rules look at.
  std::shared_ptr<const LeafModule> leaf(const std::string& path) const;
  /// `Conv2d` for a leaf or C++ module of that type; empty when there is no module at `path`.
  std::string module_type(const std::string& path) const;

  /// Sets the tensor at `path`, making holders on the way. A tensor that is there already is replaced and stays what it
  /// was, parameter or buffer; a new one is a parameter if it requires grad. Throws Error(invalid_argument) where a
  /// module is, as the next two do.
  void set_attribute(const std::string& path, const torch::Tensor& tensor);
  /// Sets the tensor as a parameter, whatever was there.
  void set_parameter(const std::string& path, const torch::Tensor& tensor);
  /// Sets the tensor as a buffer, whatever was there.
  void set_buffer(const std::string& path, const torch::Tensor& tensor);
  /// Puts a module at `path`, making holders on the way, and replacing the one that is there. Throws
  /// Error(invalid_argument) for null, and for a module that would then be inside itself.
  void add_submodule(const std::string& path, std::shared_ptr<torch::nn::Module> module);
  /// The same; throws Error(not_found) when there is nothing to replace.
  void replace_submodule(const std::string& path, std::shared_ptr<torch::nn::Module> module);
  /// Removes the module; false when there is none.
  bool delete_submodule(const std::string& path);
  /// Removes the tensor; false when there is none.
  bool delete_attribute(const std::string& path);
  /// Removes every module that the graph neither calls nor reads from, and holders left empty; returns how many leaf
  /// modules went.
  std::size_t delete_all_unused_submodules();
  /// Removes every tensor outside of called modules that no get_attr names; returns how many.
  std::size_t delete_all_unused_attributes();
  /// A path that is free: `stem`, or `stem_1`, `stem_2`, …; beside modules of C++ that others may hold, not in them
  /// (`conv.weight` is `conv_weight` where `conv` is the caller's).
  std::string fresh_path(const std::string& stem) const;

  // ── torch::nn::Module ────────────────────────────────────────────────────────────────────────────────────────────
  /// @{
  /// As of any module, but constants of a trace (`_tensor_constant0`, …) keep the types that the program gave them, as
  /// they do in C++; they go to the device.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  using torch::nn::Module::to;
  /// @}
  /// A deep copy: graph, tensors and modules.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;
  /// The same as clone(), with its type.
  std::shared_ptr<GraphModule> clone_graph_module() const;
  /// Writes TorchScript, or a .pt2 by its ending, as fx::save() does; defined in the library fxgraph::torchscript.
  void save(const std::string& file) const;
  using torch::nn::Module::save;
  /// Prints class_name(): the line that printing a module has for this one.
  void pretty_print(std::ostream& stream) const override;

 private:
  torch::Tensor run_to_tensor(std::vector<c10::IValue> inputs);
  torch::nn::Module& holder_for(const std::string& path, std::string& name);
  bool cuts_batches() const;
  void attributes_changed();

  Graph graph_;
  std::string class_name_;
  std::string fixed_mode_;
  std::unique_ptr<HeldMemory> held_memory_;  // null when memory is not held
  MicroBatches micro_batches_;
  std::uint64_t micro_batches_revision_ = 0;  // of the graph that they were set for
  std::mutex plan_mutex_;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace fx
