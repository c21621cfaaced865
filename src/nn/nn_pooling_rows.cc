#include <fxgraph/nn/nn_row.h>

namespace fx::internal {

void add_pooling_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile file(rows, "pooling");
  const auto window = taking(FX_OPTION(kernel_size));
  const auto largest =
      described(window, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(dilation), FX_OPTION(ceil_mode));
  file.add<nn::MaxPool1dImpl>("MaxPool1d", largest, {.body = max_pool_body(1)});
  file.add<nn::MaxPool2dImpl>("MaxPool2d", largest, {.body = max_pool_body(2)});
  file.add<nn::MaxPool3dImpl>("MaxPool3d", largest, {.body = max_pool_body(3)});
  const auto average = described(window, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(ceil_mode),
                                 FX_OPTION(count_include_pad), FX_OPTION(divisor_override));
  file.add<nn::AvgPool1dImpl>("AvgPool1d", described(window, FX_OPTION(stride), FX_OPTION(padding),
                                                     FX_OPTION(ceil_mode), FX_OPTION(count_include_pad)));
  file.add<nn::AvgPool2dImpl>("AvgPool2d", average, {.body = avg_pool2d_body});
  file.add<nn::AvgPool3dImpl>("AvgPool3d", average);
  const auto adaptive = described(taking(FX_OPTION(output_size)));
  file.add<nn::AdaptiveAvgPool1dImpl>("AdaptiveAvgPool1d", adaptive);
  file.add<nn::AdaptiveAvgPool2dImpl>("AdaptiveAvgPool2d", adaptive, {.body = adaptive_avg_pool2d_body});
  file.add<nn::AdaptiveAvgPool3dImpl>("AdaptiveAvgPool3d", adaptive);
  file.add<nn::AdaptiveMaxPool1dImpl>("AdaptiveMaxPool1d", adaptive);
  file.add<nn::AdaptiveMaxPool2dImpl>("AdaptiveMaxPool2d", adaptive);
  file.add<nn::AdaptiveMaxPool3dImpl>("AdaptiveMaxPool3d", adaptive);
  const auto norm =
      described(taking(FX_OPTION(norm_type), FX_OPTION(kernel_size)), FX_OPTION(stride), FX_OPTION(ceil_mode));
  file.add<nn::LPPool1dImpl>("LPPool1d", norm);
  file.add<nn::LPPool2dImpl>("LPPool2d", norm);
  for (const char* name : {"MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"}) file.add_name(name);
  // Where samples are taken is drawn in evaluation too.
  const auto draws = [](const torch::nn::Module&) { return NodeEffects{.random = true}; };
  for (const char* name : {"FractionalMaxPool2d", "FractionalMaxPool3d"}) file.add_name(name, {.effects = draws});
}

}  // namespace fx::internal
