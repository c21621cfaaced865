// TreeSpec: how tensors are packed into the tuples, lists and dicts of a call, as torch.utils._pytree describes it: the
// arguments of a graph, and the values that a caller gives.
//
// A leaf is one value; None is a leaf. Containers nest, at most kMaxDepth deep. Named tuples and ordered dicts are read
// as tuples and dicts, other classes as tuples of their parts; all are written back under their own names.
//
// Costs: linear in the spec. Thread-safety: values, pure functions.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/ir/argument.h>

namespace fx::pt2 {

struct TreeSpec {
  enum class Kind : std::uint8_t { leaf, tuple, list, dict };
  static constexpr int kMaxDepth = 48;

  Kind kind = Kind::leaf;
  std::string type{};            ///< Python's name of the container: `builtins.dict`
  std::string context{};         ///< its JSON: what Python wrote there
  std::vector<Argument> keys{};  ///< of a dict: strings or ints
  std::vector<TreeSpec> children{};

  static TreeSpec leaf() { return {}; }
  static TreeSpec tuple(std::vector<TreeSpec> children);
  static TreeSpec list(std::vector<TreeSpec> children);
  static TreeSpec dict(std::vector<Argument> keys, std::vector<TreeSpec> children);

  /// Reads what Python's treespec_dumps wrote. Throws Error(io) for a malformed text.
  static TreeSpec parse(const std::string& text);
  /// Writes it so that Python's treespec_loads reads it.
  std::string dump() const;

  /// This, with the classes that containers have in `other` where they are made alike.
  TreeSpec named_like(const TreeSpec& other) const;

  bool is_leaf() const { return kind == Kind::leaf; }
  std::size_t num_leaves() const;
  /// The argument, or the value, packed like this, its leaves taken from `next_leaf` in order.
  /// @{
  Argument pack(const std::function<Argument()>& next_leaf) const;
  c10::IValue pack_values(const std::function<c10::IValue()>& next_leaf) const;
  /// @}
};

/// The spec of `argument`: lists, tuples and dicts are containers, everything else is a leaf, which `visit` sees.
TreeSpec spec_of(const Argument& argument, const std::function<void(const Argument&)>& visit);
/// The same of a value. Both throw Error(unsupported) for keys that are neither strings nor ints.
TreeSpec spec_of(const c10::IValue& value);

}  // namespace fx::pt2
