// ArgumentInputs: the inputs of a function that is called on values of an existing graph.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/inputs.h>

namespace fx::internal {

class ArgumentInputs final : public Inputs {
 public:
  /// `proxy` makes the tensor that stands for a node.
  ArgumentInputs(Session& session, std::vector<Argument> arguments, std::function<at::Tensor(Node&)> proxy)
      : Inputs(session), arguments_(std::move(arguments)), proxy_(std::move(proxy)) {}

  std::size_t count(std::size_t required) const override { return std::max(required, arguments_.size()); }

 protected:
  bool next(const Parameter& parameter, InputItem& item) override;
  at::Tensor tensor(const InputItem& item) override;
  c10::IValue literal(const InputItem& item, ParameterKind kind) override;
  bool is_none(const InputItem& item) override { return item.argument.is_none(); }
  std::vector<InputItem> elements(const InputItem& item, std::size_t wanted) override;
  std::vector<std::pair<std::string, InputItem>> entries(const InputItem& item) override;

 private:
  [[noreturn]] void wrong(const InputItem& item, std::string_view wanted) const;

  std::vector<Argument> arguments_;
  std::function<at::Tensor(Node&)> proxy_;
  std::size_t next_ = 0;
};

}  // namespace fx::internal
