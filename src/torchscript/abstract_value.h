// What the importer knows of a TorchScript value: a constant, a node of the graph being built, or a container of such.
#pragma once

#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::torchscript {

struct AbstractValue;

/// The elements of a list or dict. Shared by everyone who holds the list, as in Python, so that append is seen by all.
struct Elements {
  std::vector<AbstractValue> values;  ///< of a dict: key, value, key, value, …
  bool belongs_to_module = false;     ///< an attribute's: writing to it would outlive the call
};

/// A module, or an object of a class, of the program being imported.
struct ObjectRef {
  c10::intrusive_ptr<c10::ivalue::Object> object;
  std::string path;  ///< where it is in the module tree
};

/// An object that the program makes while running, such as the guard of `with torch.no_grad()`.
struct LocalObject {
  c10::ClassTypePtr type;
  std::map<std::string, AbstractValue> attributes;
};

struct AbstractValue {
  enum class Kind : std::uint8_t { constant, node, list, tuple, dict, object, local_object, function, uninitialized };
  Kind kind = Kind::uninitialized;
  c10::TypePtr type;     ///< the static type, as the program has it
  c10::IValue constant;  ///< None, a number, a string, a device
  Node* node = nullptr;
  std::shared_ptr<Elements> elements;  ///< list, tuple, dict
  std::shared_ptr<ObjectRef> object;
  std::shared_ptr<LocalObject> local;
  torch::jit::Function* function = nullptr;

  static AbstractValue of_constant(c10::IValue value, c10::TypePtr type = nullptr) {
    AbstractValue made;
    made.kind = Kind::constant;
    made.type = type ? std::move(type) : value.type();
    made.constant = std::move(value);
    return made;
  }
  static AbstractValue of_node(Node& node, c10::TypePtr type) {
    AbstractValue made;
    made.kind = Kind::node;
    made.type = std::move(type);
    made.node = &node;
    return made;
  }
  static AbstractValue of_elements(Kind kind, std::vector<AbstractValue> values, c10::TypePtr type) {
    AbstractValue made;
    made.kind = kind;
    made.type = std::move(type);
    made.elements = std::make_shared<Elements>();
    made.elements->values = std::move(values);
    return made;
  }

  bool is_constant() const { return kind == Kind::constant; }
  bool is_node() const { return kind == Kind::node; }
  bool is_list() const { return kind == Kind::list; }
  bool is_tuple() const { return kind == Kind::tuple; }
  bool is_dict() const { return kind == Kind::dict; }
  bool is_container() const { return is_list() || is_tuple() || is_dict(); }
  bool is_none() const { return is_constant() && constant.isNone(); }
};

/// Marks a container and those in it as an attribute's or a constant's: the next call sees them as this one leaves
/// them.
void keep_for_module(const AbstractValue& value);

/// True when nothing in `value` depends on a node.
bool is_known(const AbstractValue& value);

/// The IValue of a known value.
c10::IValue to_constant(const AbstractValue& value);

/// Are two values surely the same: the same node, equal constants, the same list?
bool is_same(const AbstractValue& a, const AbstractValue& b);

}  // namespace fx::torchscript
