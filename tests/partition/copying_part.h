// A back end with memory of its own: it runs its part and gives back copies.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include <fxgraph/rewriter/partition/lower.h>

namespace fx::testing {

/// The value with copies of its tensors, each by itself. (IValue::deepcopy takes views of one storage for one tensor.)
inline c10::IValue copied(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(value.toTensor().clone()) : value;
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(copied(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isTensorList()) {
    c10::List<torch::Tensor> list;
    for (const torch::Tensor& tensor : value.toTensorVector()) list.push_back(tensor.clone());
    return list;
  }
  return value;
}

class CopyingPart : public CompiledPart {
 public:
  explicit CopyingPart(std::shared_ptr<GraphModule> part) : part_(std::move(part)) {}
  c10::IValue run(std::vector<c10::IValue> inputs) override {
    for (c10::IValue& input : inputs) input = copied(input);
    return copied(part_->run(std::move(inputs)));
  }

 private:
  std::shared_ptr<GraphModule> part_;
};

class CopyingBackend : public Backend {
 public:
  explicit CopyingBackend(OperatorSupport support) : support_(std::move(support)) {}
  std::string name() const override { return "copying"; }
  bool supports(const CallFacts& call) const override { return support_.is_node_supported(call); }
  std::optional<std::string> why_not(const CallFacts& call) const override { return support_.why_not(call); }
  std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule> part) const override {
    return std::make_shared<CopyingPart>(std::move(part));
  }

 private:
  OperatorSupport support_;
};

}  // namespace fx::testing
