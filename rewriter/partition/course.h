// Course: what a program's values, inputs, weights and random numbers are when each unit of its calls begins.
// Internal to rewriter/partition/minimizer.cc.
//
// A unit is a run of neighbouring calls; what one makes is noted when it ends, so that writes inside of it are in. What
// is written in several units (an input, a buffer) has a version behind each of them.
//
// Cost: one run of the program, and copies of what it makes and writes. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// Which inputs and which tensors of the module calls write to.
class Written {
 public:
  /// All must outlive it.
  Written(const GraphModule& module, const Effects& effects, const ModuleInfo& modules);

  struct Places {
    std::set<std::uint32_t> inputs;  ///< ids of placeholders
    std::set<std::string> paths;     ///< of tensors, all that share the storage
  };
  Places of(const std::vector<Node*>& nodes) const;

 private:
  void add_storage(Symbol storage, Places& places) const;

  const Effects& effects_;
  const ModuleInfo& modules_;
  std::map<Symbol, std::vector<std::string>> paths_;  // by storage
};

/// See the top of this file.
class Course {
 public:
  /// Runs a copy of `module` on copies of `inputs`. The generator of random numbers is left as it was.
  Course(GraphModule& module, const std::vector<c10::IValue>& inputs, const std::vector<std::vector<Node*>>& units,
         const Effects& effects, const Written& written);

  /// What the other way makes of it: what is not noted here is as in `base`, which must outlive it.
  explicit Course(const Course* base) : base_(base) {}

  /// A copy of the value as it is when the unit begins.
  c10::IValue value(const Node& node, std::size_t unit) const;
  /// Gives the tensors of a part of the program what they hold when the unit begins.
  void set_state(GraphModule& part, std::size_t unit) const;
  /// Sets the generator of random numbers likewise.
  void set_generator(std::size_t unit) const;

  /// From now on this is what the call has made.
  void note(const Node& node, const c10::IValue& value) { values_[node.id()] = value; }
  /// From now on this is what the input, or the tensor, holds when the unit begins.
  /// @{
  void note_input(std::uint32_t placeholder, std::size_t unit, const c10::IValue& value) {
    inputs_[placeholder][unit] = value;
  }
  void note_state(const std::string& path, std::size_t unit, const at::Tensor& tensor) { state_[path][unit] = tensor; }
  /// @}

 private:
  friend class Noting;
  const Course* base_ = nullptr;
  std::unordered_map<std::uint32_t, c10::IValue> values_;               // looked up alone
  std::map<std::uint32_t, std::map<std::size_t, c10::IValue>> inputs_;  // by placeholder, by unit
  std::map<std::string, std::map<std::size_t, at::Tensor>> state_;
  std::map<std::size_t, at::Tensor> generator_;
};

/// A copy with the strides of the original where elements do not share memory.
c10::IValue copy_as_it_lies(const c10::IValue& value);

/// Leaves the generator of random numbers as it was.
class SameGenerator {
 public:
  SameGenerator();
  ~SameGenerator();
  SameGenerator(const SameGenerator&) = delete;
  SameGenerator& operator=(const SameGenerator&) = delete;

 private:
  at::Tensor state_;
};

}  // namespace fx
