// RecordedCall: one operator call on its way into the graph. Private to recording.cc and recorded_node.cc.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {

template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) for_each_tensor(element, visit);
  }
}

inline std::string call_name(Symbol target) {
  std::string_view name = packet_of(target.view());
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  return std::string(name) + "()";
}

/// One operator call on its way into the graph.
class Session::Call {
 public:
  Call(Session& session, const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : session_(session),
        op_(op),
        record_(session.engine_->operators().find(op)),
        stack_(stack),
        arguments_(stack.data() + (stack.size() - record_.arguments.size())) {}

  void record();
  /// Gives results without recording anything.
  void fake_input();

 private:
  bool on_constants();
  void run_on_constants();
  bool compute();
  c10::IValue shape_of(const c10::IValue& value, bool& known);
  bool record_without_outs();
  std::optional<bool> equality() const;
  void answer_without_node();
  std::optional<c10::IValue> known_number();
  void find_device();
  const Node* first_node() const;
  bool gives_an_argument() const;
  bool needs_detaching() const;
  Node& make_node();
  static std::optional<Argument> number(const at::Tensor& tensor);
  Argument tensor(const at::Tensor& tensor);
  Argument argument(std::size_t i);
  Argument tensor_list(const c10::IValue& list);
  c10::IValue result(std::size_t i, Node& node);
  c10::IValue tensor_result(Node& node, const c10::IValue* value);
  std::optional<std::size_t> length_is_rank();
  void assert_length(Node& node, std::size_t length);
  c10::IValue list_result(Node& node, const c10::IValue* value);
  void finish(std::vector<c10::IValue> results);

  Session& session_;
  const c10::OperatorHandle& op_;
  OpRecord& record_;
  torch::jit::Stack& stack_;
  c10::IValue* arguments_;
  torch::jit::Stack values_;  // results on the meta device
  bool known_ = false;
  bool asks_for_data_ = false;
  bool without_grad_ = false;  // gradients are switched off
  bool detaches_ = false;      // and the inputs are to be given detached
  std::vector<const c10::TensorImpl*> detached_;
  std::optional<c10::Device> device_;
};

}  // namespace fx::internal
