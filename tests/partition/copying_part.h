// A back end with memory of its own: it runs its part and gives back copies.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/rewriter/program/verify.h>

namespace fx::testing {

class CopyingPart : public CompiledPart {
 public:
  explicit CopyingPart(std::shared_ptr<GraphModule> part) : part_(std::move(part)) {}
  c10::IValue run(std::vector<c10::IValue> inputs) override { return copy_of(part_->run(copies_of(inputs))); }

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
