// Meta: notes about a node, kept beside the graph.
//
// FX's node.meta: a small dictionary from names to values of any type. Copying a node copies its notes (shallowly). The
// well-known keys are constants here; others are free.
#pragma once

#include <any>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/support/symbol.h>

namespace fx {

namespace meta_key {
inline constexpr const char* kType = "type";               ///< std::string: the annotation printed after the name
inline constexpr const char* kStackTrace = "stack_trace";  ///< std::string: where the node was made, innermost last
inline constexpr const char* kModuleStack = "nn_module_stack";  ///< std::string: path of the module the node came from
/// std::string or fx::Provenance: the rule and the nodes it was made from.
inline constexpr const char* kProvenance = "from_node";
inline constexpr const char* kTrusted = "trusted";  ///< bool: see trust() in effects/effects_of.h
}  // namespace meta_key

/// A small dictionary from names to values of any type, in the order in which they were set.
class Meta {
 public:
  /// True when no key is set.
  bool empty() const { return !first_.second.has_value(); }
  /// Sets `key`, replacing what it held.
  template <typename T>
  void set(Symbol key, T value) {
    entry(key).template emplace<T>(std::move(value));
  }
  /// The value of `key` if it is there and a T, else null.
  template <typename T>
  const T* get(Symbol key) const {
    const std::any* value = const_cast<Meta*>(this)->find(key);
    return value ? std::any_cast<T>(value) : nullptr;
  }
  /// Forgets `key`; nothing happens when it is not set.
  void erase(Symbol key);
  /// The keys, in the order in which they were first set.
  std::vector<Symbol> keys() const;

 private:
  using Entry = std::pair<Symbol, std::any>;

  std::any* find(Symbol key) {
    if (first_.first == key) return &first_.second;
    for (auto& [name, value] : others_) {
      if (name == key) return &value;
    }
    return nullptr;
  }
  std::any& entry(Symbol key) {
    if (std::any* value = find(key)) return *value;
    return (empty() ? first_ = {key, {}} : others_.emplace_back(key, std::any())).second;
  }

  Entry first_;  // without a value when there is none; most nodes with notes have one, and it costs no allocation
  std::vector<Entry> others_;
};

}  // namespace fx
