// ModuleState: what running a module's forward may leave behind, remembered and put back.
//
//   const ModuleState state(root, size);   // before
//   run the program …                      // counters count, caches are reassigned, switches are thrown
//   state.changes();                       // which
//   }                                      // the destructor puts everything back
//
// Of each module below the root: its mode, its registered tensors (what they are, whether they require grad, their
// gradients) and, for types that are not LibTorch's own, its members (trace/object_memory.h). Of the thread and the
// process: gradient and autocast modes, the default dtype, the random generator of the CPU. What operators do to data
// is no matter: tracing runs none.
//
// Cost: linear in modules, registered tensors and members. Thread-safety: none.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/trace/object_memory.h>

namespace fx::internal {

/// Something that is not as it was.
struct StateChange {
  enum class Kind : std::uint8_t { tensor, number, other, registered, random };
  Kind kind;
  std::string module;  ///< path of the module, and its type: `blocks.0.attn (Attention)`
  std::string what;    ///< `a tensor`, `a number`, `requires_grad of weight`
  at::Tensor before;   ///< of a tensor; undefined when it was
  at::Tensor now;
  std::uintptr_t address = 0;  ///< of a member
  std::uintptr_t value = 0;    ///< what stands there now
};

class ModuleState {
 public:
  /// `size` is sizeof the root where its type is known, else 0. `root` may be null.
  explicit ModuleState(torch::nn::Module* root, std::size_t size = 0);
  ~ModuleState();
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  /// Remembers a tensor that lies where this does not look.
  void watch(const std::string& name, at::Tensor& tensor) { watched_.push_back({name, &tensor, tensor}); }

  std::vector<StateChange> changes() const;
  /// Puts everything back; may be called more than once. False when something could not be.
  bool restore();

 private:
  struct Visited {
    std::string path;
    torch::nn::Module* module;
    bool training;
  };
  struct Registered {
    std::string path;
    at::Tensor tensor;
    at::Tensor contents;  // another handle on what it was
    bool requires_grad;
    at::Tensor gradient;
  };
  struct Watched {
    std::string name;
    at::Tensor* tensor;
    at::Tensor before;
  };
  struct Globals;

  void visit(const std::string& path, torch::nn::Module& module, std::size_t size, const void* owner);
  static bool has_other_contents(const Registered& registered);

  std::vector<Visited> modules_;
  std::vector<std::size_t> objects_;  // which of modules_ the objects of memory_ are
  std::vector<Registered> registered_;
  std::vector<Watched> watched_;
  ObjectMemory memory_;
  std::unique_ptr<Globals> globals_;
};

}  // namespace fx::internal
