// OperatorSupport: what a back end takes, FX's operator_support.
//
//   fx::OperatorSupport support = fx::chain({
//       fx::support_operators({"aten::conv2d", "aten::relu", "Linear"}),      // operators, overloads, types of modules
//       fx::support_dtypes({fx::DType::float32}),
//       fx::create_op_support([](const fx::CallFacts& call) { return call.rank(0) <= 4; }, "it has over 4 dimensions"),
//   });
//   support.why_not(call)      // "aten::mm is not among the operators supported"; nothing when it is
//
// Every answer has its reason. Questions about shapes and dtypes are answered where shapes are known; where they are
// not, `support_dtypes` and its kind say no, because a back end that is wrong about a type computes something else.
//
// Cost: of the tests asked; they stop at the first no. Thread-safety: reads only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>

namespace fx {

/// A call, as far as a back end may ask. Valid while module, shapes and graph are.
class CallFacts {
 public:
  /// `node` is a call of `module`'s graph; without `shapes` nothing is known of tensors.
  CallFacts(const GraphModule& module, const Node& node, const Shapes* shapes = nullptr);

  /// The call.
  const Node& node() const { return *node_; }
  /// The program that it is in.
  const GraphModule& module() const { return *module_; }
  /// Null when nothing is known.
  const Shapes* shapes() const { return shapes_; }
  /// `aten::conv2d` in any spelling that an operator does exactly; of a call_module the type of the module, `Conv2d`;
  /// else the target.
  const std::string& op() const { return op_; }
  /// The overload called, with its arguments; nothing for modules and for what is no operator.
  const Call& called() const { return call_; }
  /// The distinct values it is given, in order, with their tensors where shapes are known.
  const std::vector<Node*>& inputs() const { return inputs_; }
  /// The tensor that the i-th of them is; null when it is none or nothing is known.
  const TensorInfo* input(std::size_t i) const;
  /// The tensor that `value` is; null when it is none, several, or not known.
  const TensorInfo* info(const Node& value) const;
  /// All tensors in it; null when nothing is known.
  const std::vector<TensorInfo>* infos(const Node& value) const;
  /// The tensor that it returns; null when it is none, several, or not known.
  const TensorInfo* result() const { return info(*node_); }
  /// The number of dimensions of the i-th input; nothing when not known.
  std::optional<std::size_t> rank(std::size_t i) const;
  /// The tensor that a node reads, when it is a parameter or buffer; undefined when it is computed.
  torch::Tensor constant(const Node& value) const;

 private:
  const GraphModule* module_;
  const Node* node_;
  const Shapes* shapes_;
  Call call_;
  std::string op_;
  std::vector<Node*> inputs_;
};

/// What a back end takes, and why it does not take the rest.
class OperatorSupport {
 public:
  /// Returns why the call is not supported, or nothing when it is.
  using Test = std::function<std::optional<std::string>(const CallFacts&)>;
  /// Supports nothing.
  OperatorSupport();
  /// Supports what `test` finds no reason against.
  explicit OperatorSupport(Test test) : test_(std::move(test)) {}

  /// Returns the reason against the call, or nothing.
  std::optional<std::string> why_not(const CallFacts& call) const { return test_(call); }
  /// True when there is no reason against the call.
  bool is_node_supported(const CallFacts& call) const { return !why_not(call); }

 private:
  Test test_;
};

/// What an operator's tensors may be, FX's support_dict: by place among the arguments of what the row names (an empty
/// set: anything), and by name.
struct SupportedDTypes {
  std::vector<std::set<DType>> args;              ///< by place; what lies beyond may be anything
  std::map<std::string, std::set<DType>> kwargs;  ///< by name; what is not named may be anything
};

/// Supports these: `aten::add.Tensor` (that overload), `aten::add` (all), `torch.add`, `operator.add` (that spelling
/// and what it means), `Conv2d`, `torch.nn.modules.conv.Conv2d` (modules of that type), `split` (a method).
OperatorSupport support_operators(std::vector<std::string> operators);
/// The same with the types that their arguments may have.
OperatorSupport support_table(std::map<std::string, std::optional<SupportedDTypes>> operators);
/// Wraps a function; `why_not` is the reason given when it says no.
OperatorSupport create_op_support(std::function<bool(const CallFacts&)> supported, std::string why_not);
/// Supports what all support; the reason is the first no.
OperatorSupport chain(std::vector<OperatorSupport> all);
/// Supports what any supports; the reason is all of theirs.
OperatorSupport any_chain(std::vector<OperatorSupport> any);

/// Supports calls all of whose tensors, inputs and result, have one of these types.
OperatorSupport support_dtypes(std::set<DType> dtypes);
/// Supports calls all of whose tensors lie there.
OperatorSupport support_device(Device device);
/// Supports calls whose tensors all have from `least` to `most` dimensions.
OperatorSupport support_ranks(std::size_t least, std::size_t most);
/// Supports calls all of whose tensors hold at least one element and at most `most`.
OperatorSupport support_sizes(std::int64_t most);
/// FX's OpSupports.
OperatorSupport decline_if_input_dtype(DType dtype);
/// Supports all calls but those of these nodes.
OperatorSupport decline_if_node_in_names(std::set<std::string> names);

}  // namespace fx
