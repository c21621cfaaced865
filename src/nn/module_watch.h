// ModuleWatch: what was read from a tree of modules, to be asked later whether it is all still so.
//
//   ModuleWatch watch;
//   watch.child(*gm, "layer1.0.conv");   watch.tensor(*gm, "layer1.0.conv.weight");   watch.options(*conv);
//   … if (!watch.unchanged()) make the plan again
//
// Notices modules and tensors that were replaced, removed, renamed or registered where nothing was, children that came
// or went, leaf modules with another body, options that were set. It does not look into tensors. A question costs a few
// nanoseconds for each thing watched; nothing is copied but options. Modules below the root are only read after their
// parents were found to hold them still, so that none that is gone is touched.
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

class LeafModule;

class ModuleWatch {
 public:
  /// Watches every module on the way to `path` below `root`, which must outlive the watch or be watched itself.
  void child(const torch::nn::Module& root, const std::string& path);
  /// Watches the tensor at `path`, and the modules on the way to it.
  void tensor(const torch::nn::Module& root, const std::string& path);
  /// Watches which children a container has.
  void children(const torch::nn::Module& module);
  /// Watches what the leaf computes in its present mode.
  void body(const LeafModule& leaf);
  /// Watches numbers that lie somewhere: a module's options. They must live as long as a module that is watched.
  void bytes(std::span<const std::byte> bytes);

  bool unchanged() const;

 private:
  /// Something registered in `owner`: the entry at `index` of a dictionary of its own.
  struct Entry {
    enum class Kind : std::uint8_t { child, parameter, buffer };
    const torch::nn::Module* owner;
    std::string name;
    const void* value;  ///< the module, the TensorImpl
    std::uint32_t index;
    Kind kind;
  };
  struct Count {
    const torch::nn::Module* owner;
    std::size_t children;
  };
  struct Body {
    const LeafModule* leaf;
    const Graph* body;
    bool training;
  };
  struct Bytes {
    std::span<const std::byte> now;
    std::vector<std::byte> then;
  };

  void add(Entry entry);
  static bool holds(const Entry& entry);

  std::vector<Entry> entries_;
  std::vector<Count> counts_;
  std::vector<Body> bodies_;
  std::vector<Bytes> bytes_;
  std::unordered_set<std::string> known_;  // look-up only: owner, kind and name of each entry
};

}  // namespace fx
