// AbstractValue: as much of a value as can be known without running the program: a tensor's element type, sizes and
// strides, a number as an expression of sizes, a list element by element.
//
// Thread-safety: values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/types.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// One tensor.
struct TensorType {
  DType dtype = DType::float32;   ///< of the elements
  std::vector<SizeExpr> sizes{};  ///< none: a tensor of one number
  /// In elements; nothing when they are not known.
  std::optional<std::vector<SizeExpr>> strides{};

  /// The number of elements.
  SizeExpr numel() const;
  /// True when the elements are known to lie in order without gaps.
  bool is_contiguous() const;
  /// `float32[2*batch, 3]`.
  std::string str() const;
  /// Equal in everything.
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// Strides of a tensor that lies in order without gaps.
std::vector<SizeExpr> contiguous_strides(const std::vector<SizeExpr>& sizes);

/// See the top of this file.
class AbstractValue {
 public:
  /// A list or tuple.
  using List = std::vector<AbstractValue>;

  AbstractValue() = default;  ///< nothing is known
  /// A tensor, a number, a list.
  /// @{
  AbstractValue(TensorType tensor) : value_(std::move(tensor)) {}
  AbstractValue(SizeExpr number) : value_(std::move(number)) {}
  AbstractValue(List elements) : value_(std::move(elements)) {}
  /// @}
  /// A literal: a number or list of them, a string, a dtype, None. A node in it is what `value_of` gives.
  template <typename ValueOf>
  static AbstractValue of(const Argument& argument, const ValueOf& value_of) {
    if (argument.is_node()) return value_of(argument.node());
    if (argument.is_int()) return SizeExpr(argument.as_int());
    if (!argument.is_sequence()) return literal(argument);
    List elements;
    for (const Argument& each : argument.elements()) elements.push_back(of(each, value_of));
    return elements;
  }
  /// Of an argument without nodes.
  static AbstractValue literal(Argument argument) {
    AbstractValue made;
    made.value_ = std::make_shared<const Argument>(std::move(argument));
    return made;
  }

  /// Each null unless it is one.
  /// @{
  const TensorType* tensor() const { return std::get_if<TensorType>(&value_); }
  const SizeExpr* number() const { return std::get_if<SizeExpr>(&value_); }
  const List* list() const { return std::get_if<List>(&value_); }
  const Argument* literal() const {
    const auto* held = std::get_if<std::shared_ptr<const Argument>>(&value_);
    return held ? held->get() : nullptr;
  }
  /// @}
  /// Calls `visit(const TensorType&)` for the tensor that it is, or those in its lists.
  template <typename Visit>
  void for_each_tensor(Visit&& visit) const {
    if (tensor()) visit(*tensor());
    if (!list()) return;
    for (const AbstractValue& each : *list()) each.for_each_tensor(visit);
  }
  bool is_known() const { return value_.index() != 0; }               ///< false when nothing is known
  bool is_none() const { return literal() && literal()->is_none(); }  ///< None

 private:
  std::variant<std::monostate, TensorType, SizeExpr, List, std::shared_ptr<const Argument>> value_;
};

}  // namespace fx
