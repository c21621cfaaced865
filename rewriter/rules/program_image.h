// What a program is at a moment, by names: what Transformation compares and restores. Internal to rewriter/rules.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/meta.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// A node; other nodes stand in its arguments by name.
struct NodeImage {
  std::string name;
  Op op = Op::placeholder;
  Symbol target;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  const void* object = nullptr;  ///< the tensor or module that it names
  Meta meta;

  /// Equal but for notes.
  bool same_call(const NodeImage& other) const;
};

/// A tensor or module at the end of a path.
struct LeafImage {
  std::string path;
  GraphModule::Attribute object;
  bool is_parameter = false;
  bool inside = false;  ///< a tensor of a module that is a leaf itself

  const void* identity() const;
};

struct ProgramImage {
  std::vector<NodeImage> nodes;       ///< in graph order
  std::vector<LeafImage> leaves;      ///< in the order of their registration
  std::map<std::string, bool> modes;  ///< training or not, of the modules on the way to them

  static ProgramImage of(const GraphModule& module);
  /// Makes the program this: its graph with these names and this order, and these tensors and modules. Throws
  /// Error(invalid_argument), before it changes anything, when an argument names a node that is not before its user.
  void install(GraphModule& module) const;
};

/// What stayed and is, or shares the storage of, what went.
struct Tie {
  std::string path;
  bool is_it = false;
  std::int64_t offset = 0;  ///< in elements: of what went from what stayed
};

/// What turned one image into another.
struct ProgramChange {
  std::string by;
  std::uint64_t number = 0;              ///< later changes have greater ones
  const GraphModule* made_in = nullptr;  ///< never looked into
  std::map<std::string, Tie> ties;       ///< of what went
  std::map<std::string, NodeImage> before,
      after;                       ///< nodes that differ, by name; one that is in one alone came or went
  std::vector<std::string> order;  ///< of all nodes before
  std::map<std::string, LeafImage> leaves_before, leaves_after;
  std::vector<std::string> leaf_order;
  std::map<std::string, bool> modes;

  bool empty() const { return before.empty() && after.empty() && leaves_before.empty() && leaves_after.empty(); }
  std::size_t size() const;
  /// The image with this change undone. Throws Error(invalid_argument) naming a node that is no longer what the change
  /// made it.
  ProgramImage undo(ProgramImage now) const;
  /// The same change for a copy of the program: what comes back are copies, tied among each other and to what the copy
  /// has as the originals are.
  ProgramChange for_copy(const ProgramImage& now) const;
};

ProgramChange change_between(const ProgramImage& before, const ProgramImage& after);

/// For each leaf of `before` that went, one that stayed and is it, or shares its storage.
std::map<std::string, Tie> ties_of(const std::vector<LeafImage>& before, const std::map<std::string, LeafImage>& went);

}  // namespace fx
