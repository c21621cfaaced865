// One node as a C++ expression. Included by cpp*.cc only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/codegen/cpp_value.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

class CppCalls {
 public:
  /// What a node is called in C++, and its type. Filled in node order by the caller.
  struct Value {
    std::string text;
    CppType type;
  };
  explicit CppCalls(const Graph& graph) : values_(graph) {}

  Value& operator[](const Node& node) { return values_[node]; }

  /// The expression of a call_function or call_method with its type. Throws Error(unsupported), without the node's
  /// name.
  Value call(const Node& node);
  /// What `argument` is by itself: a returned value or a module's argument. Lists are vectors, tuples std::tuple, dicts
  /// std::map.
  Value value(const Argument& argument);

  bool used_dispatcher() const { return used_dispatcher_; }
  bool used_floor() const { return used_floor_; }
  bool used_element() const { return used_element_; }
  bool used_int_pow() const { return used_int_pow_; }

 private:
  Value call_operator(const Call& call);
  Value dispatch(const Call& call);
  std::vector<std::string> cpp_arguments(const Call& call, bool boxed);
  std::string argument(const Argument& value, const SchemaType& type, bool boxed, bool ambiguous);
  std::string list(const Argument& value, const SchemaType& type, bool boxed, bool ambiguous);
  std::string node_as(const Node& node, const SchemaType& type);
  std::string options(const Call& call, std::size_t first);

  bool python(const Node& node, Value& result);
  bool infix(const Node& node, Value& result);
  Value power(const Node& node, const Value& a, const Value& b);
  Value element(const Value& list, const std::string& index, CppKind kind);
  Value getitem(const Node& node);
  Value index(const std::string& tensor, const Argument& index);
  std::string index_element(const Argument& element);
  Value getattr(const Node& node);

  NodeMap<Value> values_;
  bool used_dispatcher_ = false;
  bool used_floor_ = false;
  bool used_element_ = false;
  bool used_int_pow_ = false;
};

}  // namespace fx::internal
