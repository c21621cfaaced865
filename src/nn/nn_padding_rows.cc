// Padding, and other changes of shape.
#include <fxgraph/nn/nn_row.h>

namespace fx::internal {
namespace {

namespace nn = torch::nn;

void add_paddings(const TorchFile& file) {
  const auto padding = described(taking(FX_OPTION(padding)));
  const auto with_value = described(taking(FX_OPTION(padding), FX_OPTION(value)));
  file.add<nn::ReflectionPad1dImpl>("ReflectionPad1d", padding);
  file.add<nn::ReflectionPad2dImpl>("ReflectionPad2d", padding);
  file.add_name("ReflectionPad3d");
  file.add<nn::ReplicationPad1dImpl>("ReplicationPad1d", padding);
  file.add<nn::ReplicationPad2dImpl>("ReplicationPad2d", padding);
  file.add<nn::ReplicationPad3dImpl>("ReplicationPad3d", padding);
  file.add<nn::ZeroPad2dImpl>("ZeroPad2d", padding);
  file.add<nn::ConstantPad1dImpl>("ConstantPad1d", with_value);
  file.add<nn::ConstantPad2dImpl>("ConstantPad2d", with_value);
  file.add<nn::ConstantPad3dImpl>("ConstantPad3d", with_value);
}

}  // namespace

void add_padding_rows(TorchRows& rows) {
  add_paddings(TorchFile(rows, "padding"));
  TorchFile(rows, "upsampling")
      .add<nn::UpsampleImpl>("Upsample", described(taking(), FX_OPTION(size), FX_OPTION(scale_factor), FX_OPTION(mode),
                                                   FX_OPTION(align_corners)));
  const TorchFile shuffle(rows, "pixelshuffle");
  shuffle.add<nn::PixelShuffleImpl>("PixelShuffle", described(taking(FX_OPTION(upscale_factor))));
  shuffle.add<nn::PixelUnshuffleImpl>("PixelUnshuffle", described(taking(FX_OPTION(downscale_factor))));
  const TorchFile fold(rows, "fold");
  fold.add<nn::FoldImpl>("Fold", described(taking(FX_OPTION(output_size), FX_OPTION(kernel_size)), FX_OPTION(dilation),
                                           FX_OPTION(padding), FX_OPTION(stride)));
  fold.add<nn::UnfoldImpl>(
      "Unfold", described(taking(FX_OPTION(kernel_size)), FX_OPTION(dilation), FX_OPTION(padding), FX_OPTION(stride)));
  const TorchFile flatten(rows, "flatten");
  flatten.add<nn::FlattenImpl>("Flatten", described(taking(), FX_OPTION(start_dim), FX_OPTION(end_dim)),
                               {.body = flatten_body});
  flatten.add_name("Unflatten");
}

}  // namespace fx::internal
