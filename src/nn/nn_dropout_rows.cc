#include <fxgraph/nn/nn_row.h>

namespace fx::internal {
namespace {

template <typename Impl>
void add_dropout(const TorchFile& file, const char* name, const char* packet) {
  const auto drops = [](const torch::nn::Module& module) { return dynamic_cast<const Impl&>(module).options.p() > 0; };
  const auto body = [target = std::string(packet)](const torch::nn::Module& module, bool training) {
    const auto& options = dynamic_cast<const Impl&>(module).options;
    Graph graph;
    Node& input = graph.placeholder("input");
    graph.output(graph.call_function(options.inplace() ? target + "_" : target, {input, options.p(), training}));
    return std::optional(std::move(graph));
  };
  file.add<Impl>(name, described(taking(), FX_OPTION(p), FX_OPTION(inplace)),
                 {.body = [body](const torch::nn::Module& module) { return body(module, module.is_training()); },
                  .evaluated = [body](const torch::nn::Module& module) { return body(module, false); },
                  .follows_mode = drops});
}

}  // namespace

void add_dropout_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile file(rows, "dropout");
  add_dropout<nn::DropoutImpl>(file, "Dropout", "aten::dropout");
  add_dropout<nn::Dropout2dImpl>(file, "Dropout2d", "aten::feature_dropout");
  add_dropout<nn::Dropout3dImpl>(file, "Dropout3d", "aten::feature_dropout");
  add_dropout<nn::AlphaDropoutImpl>(file, "AlphaDropout", "aten::alpha_dropout");
  add_dropout<nn::FeatureAlphaDropoutImpl>(file, "FeatureAlphaDropout", "aten::feature_alpha_dropout");
}

}  // namespace fx::internal
