// ModuleState: what is put back after each run of a program that is traced.
//
//   ModuleState state(root);               // before
//   run the program …                      // switches are thrown, gradients are set
//   state.change();                        // the first of them, in words
//   }                                      // the destructor puts everything back
//
// Of each module below the root: its mode and its registered tensors (what they are, whether they require grad, their
// gradients). Of the thread and the process: gradient and autocast modes, the default dtype, the random generator of
// the CPU. Of members that are registered nowhere, those that the caller names (watch()). All others are the program's
// own: the runs leave them as they are then. What operators do to data is no matter: tracing runs none.
//
// Cost: linear in modules and registered tensors. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/registrations.h>
#include <fxgraph/trace/state_member.h>

namespace fx::internal {

class ModuleState {
 public:
  using TensorsByPath = std::vector<std::pair<std::string, at::Tensor>>;
  /// A tensor that the caller has named, before and now.
  struct Replaced {
    std::string path;
    at::Tensor now;
  };

  /// `root` may be null.
  explicit ModuleState(const std::shared_ptr<torch::nn::Module>& root);
  ~ModuleState();
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  /// Puts this member back, too. Returns its tensors that are defined, by the paths that they get.
  TensorsByPath watch(const std::string& name, const StateMember& member);

  /// What the program has registered: `registers the module 'fc' in the module (Net)`; empty for nothing.
  std::string registered() const { return registrations_.change(); }
  /// What is registered, or of the process, and is not as it was: `changes its requires_grad of w`; empty for nothing.
  std::string change() const;
  /// The tensors of watched members that are others now.
  std::vector<Replaced> replaced() const;
  /// Whether this path is that of a tensor which calls may change: no parameter.
  bool is_buffer(const std::string& path) const;
  /// Switches `root` to this mode, once until restore(). The modes that modules then have are no changes.
  void switch_mode(torch::nn::Module& root, bool training);
  /// Puts everything back; may be called more than once.
  void restore();

 private:
  struct Visited {
    std::string path;
    std::shared_ptr<torch::nn::Module> module;  // the program may let go of it
    bool training;
    bool expected;  // the same, or what switch_mode() has made of it
  };
  struct Registered {
    std::string path;
    at::Tensor tensor;
    at::Tensor contents;  // another handle on what it was
    bool requires_grad;
    at::Tensor gradient;
    bool is_parameter;
  };
  struct Watched {
    std::string name;
    StateMember member;
    std::vector<at::Tensor> before;
    std::function<void()> put_back;
  };
  struct Globals;

  void visit(const std::string& path, const std::shared_ptr<torch::nn::Module>& module);
  static bool has_other_contents(const Registered& registered);

  std::vector<Visited> modules_;
  Registrations registrations_;
  std::vector<Registered> registered_;
  std::vector<Watched> watched_;
  std::unique_ptr<Globals> globals_;
  std::optional<bool> switched_;
};

}  // namespace fx::internal
