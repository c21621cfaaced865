// ModuleState: what running a module's forward may leave behind, remembered and put back.
//
//   const ModuleState state(root);         // before
//   run the program …                      // counters count, caches are reassigned, switches are thrown
//   state.changes();                       // which
//   }                                      // the destructor puts everything back
//
// Of each module below the root: its mode, what it has registered (trace/registrations.h), and its registered tensors
// (what they are, whether they require grad, their gradients); C++ does not tell other members. Of the thread and the
// process: gradient and autocast modes, the default dtype, the random generator of the CPU. What operators do to data
// is no matter: tracing runs none.
//
// Cost: linear in modules, registered tensors and members. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/registrations.h>

namespace fx::internal {

class ProxyImpl;
class Session;

/// Something that is not as it was.
struct StateChange {
  enum class Kind : std::uint8_t { tensor, registered, random };
  Kind kind;
  std::string module;  ///< path of the module, and its type: `blocks.0.attn (Attention)`
  std::string what;    ///< `a tensor`, `a number`, `requires_grad of weight`
  at::Tensor before;   ///< of a tensor; undefined when it was
  at::Tensor now;
  bool is_parameter =
      false;  ///< it was a registered parameter, which stays what it is; another tensor is in the member
};

class ModuleState {
 public:
  /// `root` may be null.
  explicit ModuleState(const std::shared_ptr<torch::nn::Module>& root);
  ~ModuleState();
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  /// Remembers a tensor that lies where this does not look.
  void watch(const std::string& name, at::Tensor& tensor) { watched_.push_back({name, &tensor, tensor}); }

  /// Whether this tensor lay in a module when this was made: registered, in a member, or behind a pointer.
  bool had(const at::Tensor& tensor) const;

  /// What the program has registered: `registers the module 'fc' in the module (Net)`; empty for nothing.
  std::string registered() const { return registrations_.change(); }
  std::vector<StateChange> changes() const;
  /// The traced tensors that the program keeps where this cannot put anything back; between calls of it.
  std::vector<ProxyImpl*> proxies_elsewhere() const;
  /// Those of them that depend on nothing, with their values. A value of a tensor that lay there before is none of
  /// these.
  std::vector<std::pair<ProxyImpl*, at::Tensor>> constants(const Session& session,
                                                           const std::vector<ProxyImpl*>& proxies) const;
  /// Whether something is not as it was in what is known of members, be it no change that anybody need look at.
  bool has_other_members() const;
  /// Switches `root` to this mode, once until restore(). The modes that modules then have are no changes.
  void switch_mode(torch::nn::Module& root, bool training);
  /// Puts everything back; may be called more than once.
  void restore();
  /// The same when a call of a module, in `session`, closed, is over: traced tensors of it that are left elsewhere
  /// become ordinary ones, with what was there before where that is known, else as the call on the examples left them.
  void leave(Session& session);
  /// Whether leave() has found one.
  bool has_left() const { return has_left_; }

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
    at::Tensor* tensor;
    at::Tensor before;
  };
  struct Globals;

  void visit(const std::string& path, const std::shared_ptr<torch::nn::Module>& module);
  static bool has_other_contents(const Registered& registered);
  bool is_parameter(const at::Tensor& tensor) const;

  std::vector<Visited> modules_;
  Registrations registrations_;
  std::vector<Registered> registered_;
  std::vector<Watched> watched_;
  std::unique_ptr<Globals> globals_;
  std::optional<bool> switched_;
  bool has_left_ = false;
};

}  // namespace fx::internal
