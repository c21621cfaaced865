#include <fxgraph/nn/nn_row.h>
#include <fxgraph/nn/scripted_leaves.h>

namespace fx::internal {
namespace {

// Without running statistics there are those of the batch alone, in both modes.
template <typename Impl>
bool keeps_statistics(const torch::nn::Module& module) {
  return dynamic_cast<const Impl&>(module).options.track_running_stats();
}

template <typename Impl, typename Describe>
void add_batch_norm(const TorchFile& file, const char* name, Describe describe, int dims, std::size_t input_rank) {
  file.add<Impl>(name, describe,
                 {.body = batch_norm_body(dims),
                  .evaluated = batch_norm_body(dims, /*evaluated=*/true),
                  .follows_mode = &keeps_statistics<Impl>,
                  .input_rank = input_rank});
}

// InstanceNorm writes its running statistics also in evaluation, each the mean of copies of itself, and rounds.
NodeEffects writes_statistics(const torch::nn::Module& module) {
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const torch::Tensor* mean = buffers.find("running_mean");
  return {.unknown = mean && mean->defined()};
}

template <typename Impl, int dims, typename Describe>
void add_instance_norm(const TorchFile& file, const char* name, Describe describe) {
  file.add<Impl>(name, describe,
                 {.effects = &writes_statistics,
                  .follows_mode = &keeps_statistics<Impl>,
                  .scripted_body = &instance_norm_leaf<dims>});
}

}  // namespace

void add_norm_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const auto norm = described(taking(FX_OPTION(num_features)), FX_OPTION(eps), FX_OPTION(momentum), FX_OPTION(affine),
                              FX_OPTION(track_running_stats));
  const TorchFile batch(rows, "batchnorm");
  add_batch_norm<nn::BatchNorm1dImpl>(batch, "BatchNorm1d", norm, 1, 0);  // with a length or without
  add_batch_norm<nn::BatchNorm2dImpl>(batch, "BatchNorm2d", norm, 2, 4);
  add_batch_norm<nn::BatchNorm3dImpl>(batch, "BatchNorm3d", norm, 3, 5);
  batch.add_name("SyncBatchNorm");
  const TorchFile instance(rows, "instancenorm");
  add_instance_norm<nn::InstanceNorm1dImpl, 1>(instance, "InstanceNorm1d", norm);
  add_instance_norm<nn::InstanceNorm2dImpl, 2>(instance, "InstanceNorm2d", norm);
  add_instance_norm<nn::InstanceNorm3dImpl, 3>(instance, "InstanceNorm3d", norm);
  const TorchFile others(rows, "normalization");
  others.add<nn::LayerNormImpl>(
      "LayerNorm", described(taking(FX_OPTION(normalized_shape)), FX_OPTION(eps), FX_OPTION(elementwise_affine)),
      {.body = layer_norm_body});
  others.add<nn::GroupNormImpl>(
      "GroupNorm", described(taking(FX_OPTION(num_groups), FX_OPTION(num_channels)), FX_OPTION(eps), FX_OPTION(affine)),
      {.body = group_norm_body});
  others.add<nn::LocalResponseNormImpl>(
      "LocalResponseNorm", described(taking(FX_OPTION(size)), FX_OPTION(alpha), FX_OPTION(beta), FX_OPTION(k)));
  others.add_name("CrossMapLRN2d");
}

}  // namespace fx::internal
