// fx::Call: the operator that a node calls, whatever its spelling, with its arguments as the operator takes them.
//
//   torch.relu(x), torch.nn.functional.relu(x, inplace=False), x.relu()   aten::relu(x)
//   torch.nn.functional.embedding(indices, weight)                        aten::embedding(weight, indices)
//   operator.sub(2, x)                                                    aten::rsub.Scalar(x, 2)
//
// Which overload is meant may hang on what the arguments are; a placeholder without annotation is taken to be a tensor.
// Names that LibTorch takes for one operator (`absolute` and `abs`, `concat` and `cat`) have one operator_name.
// Thread-safety: reads the graph only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <fxgraph/ir/graph_hooks.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/chunked_vector.h>

namespace fx {

/// One call of one overload, or nothing. It refers to the node's own arguments where they are the operator's, and is
/// good until these change; else it has arguments of its own, which copies share.
class Call {
 public:
  /// Nothing: no single operator does what the node does, or none that is known.
  Call() = default;
  /// A call with arguments that live elsewhere; `translated` from other words.
  Call(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs, bool translated = false)
      : schema_(&schema), args_(args), kwargs_(kwargs), translated_(translated) {}
  /// A translated call with arguments of its own.
  Call(const OperatorSchema& schema, std::vector<Argument> args, std::vector<NamedArgument> kwargs);

  /// False for nothing.
  explicit operator bool() const { return schema_ != nullptr; }
  /// The overload.
  const OperatorSchema& schema() const { return *schema_; }
  /// The arguments that are given, in the order and by the names of schema().
  /// @{
  ArgumentSpan args() const { return args_; }
  KwargSpan kwargs() const { return kwargs_; }
  /// @}
  /// True when the node is spelt in other words, whose arguments need not be those of the operator.
  bool is_translated() const { return translated_; }
  /// What argument `i` of schema() is: given by position or name, or its default; null when it is missing and has none.
  /// The pointer is good as long as the call.
  const Argument* argument(std::size_t i) const {
    if (i < args_.size() && i < schema_->num_positional()) return &args_[i];
    const SchemaArgument& wanted = schema_->arguments[i];
    if (const Argument* value = kwargs_.find(wanted.name)) return value;
    return wanted.default_value ? &*wanted.default_value : nullptr;
  }
  /// The same by name; null also for nothing, and where the operator has no such argument.
  const Argument* argument(std::string_view name) const;

 private:
  struct Arguments {
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
  };

  const OperatorSchema* schema_ = nullptr;
  ArgumentSpan args_;
  KwargSpan kwargs_;
  bool translated_ = false;
  std::shared_ptr<const Arguments> own_;
};

/// The call of one overload that does exactly what `node` does: a call_function of an operator or Python function, or a
/// call_method. Nothing for any other node and where no single overload does it. O(arguments), or O(1) for an overload
/// that is spelt out or the only one; allocates nothing for a call that is spelt as an operator.
Call call_of(const Node& node);

/// Makes the node's own target and arguments those of call_of(node); returns whether they changed. For who goes on to
/// edit the call's arguments in the operator's order. Nothing happens where no single overload does what the node does.
bool spell_as_operator(Node& node);

/// The operator as LibTorch's aliases agree on: `aten::mul.Tensor` for `aten::multiply.Tensor`. O(1).
Symbol operator_name(const OperatorSchema& schema);

/// The calls of a graph that are spelt in other words than the operator's, found in one pass and kept up with edits.
/// Others are read off their nodes. What a node calls may hang on what its inputs are: with a node its users are looked
/// at again, as far as they call something else then.
///
/// Cost: a pass of O(nodes); an edit O(arguments), and what it changes. Memory follows the calls that are translated.
/// Thread-safety: reading is safe on several threads while nobody edits the graph; making one is an edit. An annotation
/// that changes is not noticed.
class Calls {
 public:
  /// `graph` must outlive it.
  explicit Calls(const Graph& graph);
  /// Follows its graph, and stays where it is.
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// What `node` calls. O(1); allocates nothing.
  Call operator[](const Node& node) const;
  /// The same where the node is spelt in other words; null for every other node.
  const Call* translated(const Node& node) const {
    const std::uint32_t at = position_[node];
    return at == 0 ? nullptr : &calls_[at - 1];
  }

 private:
  void forget(const Node& node);
  bool look_at(Node& node);
  void look_again(Node& node);

  NodeMap<std::uint32_t> position_;  // 1 + position in calls_; 0: not translated
  ChunkedVector<Call> calls_;
  std::vector<std::uint32_t> free_;
  GraphHooks hooks_;
};

namespace internal {

/// True for a call of one overload, whatever its arguments, and for what is no call of a function or method.
bool is_spelt_as_operator(const Node& node);

/// True for methods and for functions of Python that stand for operators.
bool is_spelt_in_python(Op op, Symbol target);

/// The call that a Python function or a method does, in the operator's words.
Call python_call(const Node& node);

/// What a call of a pattern says in the operator's words, where its operands are of unknown kinds: all overloads of
/// `target`. Of an `open` one that is what is mentioned; a parameter that picks the operator counts as its default.
struct PatternCall {
  Symbol target;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
};
/// The same for a call in Python's words; nothing where the tables cannot say it.
std::optional<PatternCall> python_call_in_pattern(const Node& node, bool open);

/// True when a row of the table says that this call of a Python function has no effects.
bool is_pure_python_call(const Node& node);

/// The overloads that a call of this function or method may be of, whatever the arguments; empty when it is spelt as
/// one overload, and for an unknown name. O(1) after the first question.
const std::vector<const OperatorSchema*>& candidate_overloads(Op op, Symbol target);

/// The name under which the tables know a target: methods start with a dot, `torch.functional.` is `torch.`.
std::string python_name(Op op, Symbol target);

}  // namespace internal
}  // namespace fx
