// Meta: notes about a node, kept beside the graph.
//
// FX's node.meta: a small dictionary from names to values of any type. Copying a node copies its notes (shallowly). The
// well-known keys are constants here; others are free.
#pragma once

#include <any>
#include <string>
#include <utility>
#include <vector>

#include "support/symbol.h"

namespace fx {

namespace meta_key {
inline constexpr const char* kType = "type";               ///< std::string: the annotation printed after the name
inline constexpr const char* kStackTrace = "stack_trace";  ///< std::string: where the node was made, innermost last
inline constexpr const char* kModuleStack = "nn_module_stack";  ///< std::string: path of the module the node came from
inline constexpr const char* kProvenance =
    "from_node";  ///< std::string or fx::Provenance: the rule and the nodes it was made from
}  // namespace meta_key

class Meta {
 public:
  bool empty() const { return entries_.empty(); }
  /// Sets `key`, replacing what it held.
  template <typename T>
  void set(Symbol key, T value) {
    entry(key).template emplace<T>(std::move(value));
  }
  /// The value of `key` if it is there and a T, else null.
  template <typename T>
  const T* get(Symbol key) const {
    for (const auto& [name, value] : entries_) {
      if (name == key) return std::any_cast<T>(&value);
    }
    return nullptr;
  }
  void erase(Symbol key) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
  }
  /// The keys with their values, in the order in which they were first set.
  const std::vector<std::pair<Symbol, std::any>>& entries() const { return entries_; }

 private:
  std::any& entry(Symbol key) {
    for (auto& [name, value] : entries_) {
      if (name == key) return value;
    }
    return entries_.emplace_back(key, std::any()).second;
  }
  std::vector<std::pair<Symbol, std::any>> entries_;
};

}  // namespace fx
