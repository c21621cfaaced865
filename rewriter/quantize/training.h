// Layers that train while their weights are quantized, and batch normalisation that is folded while it still learns.
//
// As torch.ao.nn.intrinsic.qat does it: the weight is scaled by gamma / sqrt(running variance + eps) before it is
// quantized, as it will be after folding; the result is scaled back and normalised as ever. So what is quantized in
// training is what convert() will quantize.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/record.h>

namespace fx::quantize {

/// Batch normalisation over any number of dimensions, by its mode: training uses and notes the batch's statistics.
class BatchNorm : public torch::nn::Module {
 public:
  BatchNorm(double momentum, double eps) : torch::nn::Module("BatchNorm"), momentum_(momentum), eps_(eps) {}
  /// Registers the tensors that are defined.
  void set_tensors(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                   const at::Tensor& variance);

  torch::Tensor forward(torch::Tensor x);
  /// Evaluation statistics in training too, torch.ao's freeze_bn_stats.
  void freeze(bool on) { frozen_ = on; }
  double eps() const { return eps_; }
  at::Tensor weight() const { return tensors_[0]; }
  at::Tensor bias() const { return tensors_[1]; }
  at::Tensor mean() const { return tensors_[2]; }
  at::Tensor variance() const { return tensors_[3]; }
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;

 private:
  at::Tensor tensors_[4];
  double momentum_, eps_;
  bool frozen_ = false;
};

/// Puts fake quantization on the weights of `folded`'s quantized layers, and gives back the batch normalisation that
/// was folded into them, as `unfolded` has it.
void train_layers(GraphModule& folded, const GraphModule& unfolded, const Annotation& annotation, QuantRecord& record);

/// The inverse, on a copy of the trained program without observers: layers with folded weights and nothing else.
void fold_trained_layers(GraphModule& module, const QuantRecord& record);

}  // namespace fx::quantize
