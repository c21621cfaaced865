// LeafModule: a module that graphs call and do not look into, such as an imported Conv2d.
//
// It is a torch::nn::Module with its own parameters and buffers and a type name. What it computes is known in one of
// two ways:
//  - a *body*: a small Graph of operators over its own attributes (get_attr "weight"), hyper-parameters written
//    as literals. Plans inline it, so that calling a leaf costs nothing; rules read hyper-parameters from it:
//      graph(): %input = placeholder; %weight = get_attr[target=weight]; %bias = …
//               %conv2d = call_function[target=torch.ops.aten.conv2d.default](args = (%input, %weight, %bias, …
//  - a TorchScript module, run as it is, for leaves whose forward branches on data.
// A leaf may have different bodies for training and evaluation; train() and eval() choose.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/torch_compat.h>

namespace torch::jit {
struct Module;
}

namespace fx {

/// A tensor of a module under its path inside that module (`weight`, `norm.running_mean`).
struct NamedTensor {
  std::string path;          ///< inside the module, `norm.running_mean`
  torch::Tensor tensor;      ///< shared with the module
  bool is_parameter = true;  ///< else a buffer
};

/// A module that only holds others and tensors: the inner nodes of a GraphModule's tree.
class Holder : public torch::nn::Module {
 public:
  Holder() = default;
  /// A deep copy.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;
};

/// A module of which a graph knows the type, the tensors and what it computes; see the top of this file.
class LeafModule : public torch::nn::Module {
 public:
  /// `qualified_name` is Python's, `torch.nn.modules.conv.Conv2d`; a bare `Conv2d` is completed when torch.nn has it.
  LeafModule(const std::string& qualified_name, const std::vector<NamedTensor>& tensors);
  ~LeafModule() override;

  /// `Conv2d`
  const std::string& type_name() const { return type_name_; }
  /// `torch.nn.modules.conv.Conv2d`
  const std::string& qualified_name() const { return qualified_name_; }

  /// What it computes in its present mode, or null when only TorchScript can run it.
  const Graph* body() const { return body_in_mode(is_training()).get(); }
  /// The body for that mode, or null.
  const std::shared_ptr<const Graph>& body_in_mode(bool training) const { return bodies_[training]; }
  void set_body(std::shared_ptr<const Graph> body);  ///< for both modes
  /// The body for one mode.
  void set_body(std::shared_ptr<const Graph> body, bool training);

  /// The TorchScript module that this leaf came from, or null. It shares the leaf's tensors.
  const torch::jit::Module* script() const { return script_.get(); }
  const std::string& script_method() const { return script_method_; }  ///< the one that a call of the leaf runs
  /// Lets the leaf run `method` of `module`, which must have the leaf's own tensors.
  void set_script(const torch::jit::Module& module, std::string method = "forward");

  /// The tensor at a path inside this leaf; undefined when there is none.
  torch::Tensor find_tensor(const std::string& path) const;
  /// All its tensors with their paths.
  std::vector<NamedTensor> tensors() const;

  /// Switches body and script to that mode.
  void train(bool on = true) override;
  /// A deep copy: body shared, tensors and script copied.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;
  /// Prints qualified_name(): the line that printing a module has for this one.
  void pretty_print(std::ostream& stream) const override;

 private:
  std::string type_name_;
  std::string qualified_name_;
  std::shared_ptr<const Graph> bodies_[2];
  std::unique_ptr<torch::jit::Module> script_;
  std::string script_method_ = "forward";
};

/// Makes a leaf that computes `body` in both modes: what rules install. `body` may name `tensors` by their paths and
/// aten operators; throws Error(not_found) when it names a tensor that is not there.
std::shared_ptr<LeafModule> make_leaf(const std::string& qualified_name, const std::vector<NamedTensor>& tensors,
                                      Graph body);

/// Completes a type name of torch.nn: `Conv2d` -> `torch.nn.modules.conv.Conv2d`; any other name is returned as it is.
std::string qualify_module_type(const std::string& name);

}  // namespace fx
