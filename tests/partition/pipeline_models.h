// Programs for pipelines: a ResNet-50 with writes in place, a BERT with a mask that all layers read, a GPT with tied
// embeddings, all small, with a loss.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/partition/pipeline.h>

#include <string>
#include <vector>

namespace fx::testing {

struct PipelineCase {
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
  std::vector<torch::Tensor> targets;
  Pipeline::Loss loss;
};

/// `mlp`, `resnet50`, `bert` or `gpt`; the same in every process.
PipelineCase pipeline_case(const std::string& name);

}  // namespace fx::testing
