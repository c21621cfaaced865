#include <fxgraph/nn/nn_row.h>

namespace fx::internal {
namespace {

template <typename Impl>
void add_dropout(const TorchFile& file, const char* name, NnBody body) {
  const auto drops = [](const torch::nn::Module& module) { return dynamic_cast<const Impl&>(module).options.p() > 0; };
  file.add<Impl>(name, described(taking(), FX_OPTION(p), FX_OPTION(inplace)), {.body = body, .follows_mode = drops});
}

}  // namespace

void add_dropout_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile file(rows, "dropout");
  add_dropout<nn::DropoutImpl>(file, "Dropout", dropout_body);
  add_dropout<nn::Dropout2dImpl>(file, "Dropout2d", feature_dropout_body);
  add_dropout<nn::Dropout3dImpl>(file, "Dropout3d", feature_dropout_body);
  add_dropout<nn::AlphaDropoutImpl>(file, "AlphaDropout", alpha_dropout_body);
  add_dropout<nn::FeatureAlphaDropoutImpl>(file, "FeatureAlphaDropout", feature_alpha_dropout_body);
}

}  // namespace fx::internal
