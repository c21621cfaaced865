#include <fxgraph/nn/nn_row.h>

namespace fx::internal {

void add_convolution_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile conv(rows, "conv");
  const auto size = taking(FX_OPTION(in_channels), FX_OPTION(out_channels), FX_OPTION(kernel_size));
  const auto forth = described(size, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(dilation), FX_OPTION(groups),
                               FX_OPTION(bias), FX_OPTION(padding_mode));
  const auto back = described(size, FX_OPTION(stride), FX_OPTION(padding), FX_OPTION(output_padding), FX_OPTION(groups),
                              FX_OPTION(bias), FX_OPTION(dilation), FX_OPTION(padding_mode));
  conv.add<nn::Conv1dImpl>("Conv1d", forth, {.body = conv_body(1)});
  conv.add<nn::Conv2dImpl>("Conv2d", forth, {.body = conv_body(2)});
  conv.add<nn::Conv3dImpl>("Conv3d", forth, {.body = conv_body(3)});
  conv.add<nn::ConvTranspose1dImpl>("ConvTranspose1d", back, {.body = conv_transpose_body(1)});
  conv.add<nn::ConvTranspose2dImpl>("ConvTranspose2d", back, {.body = conv_transpose_body(2)});
  conv.add<nn::ConvTranspose3dImpl>("ConvTranspose3d", back, {.body = conv_transpose_body(3)});
}

}  // namespace fx::internal
