#include <fxgraph/nn/nn_construction.h>
#include <fxgraph/nn/nn_row.h>
#include <fxgraph/ops/python_symbols.h>

namespace fx::internal {
namespace {

namespace nn = torch::nn;

// Some of their parts may drop: each has an option of its own.
bool may_drop(const nn::Module&) { return true; }

// A stack of equal layers, with a norm that is a module of torch::nn or none.
std::optional<HyperParameters> stack_of(const nn::Module& layer, const char* layer_name, std::int64_t count,
                                        const nn::AnyModule& norm) {
  const auto made = construction_of(layer);
  const auto last = norm.is_empty() ? std::optional(CodeModule()) : construction_of(*norm.ptr());
  if (!made || !last) return std::nullopt;
  HyperParameters all = {{.name = layer_name,
                          .value = Argument::opaque(made->python_construction),
                          .by_position = true,
                          .cpp_value = made->construction},
                         {.name = "num_layers", .value = count, .by_position = true}};
  if (!norm.is_empty()) {
    all.push_back({.name = "norm",
                   .value = Argument::opaque(last->python_construction),
                   .cpp_value = "torch::nn::AnyModule(" + last->construction + ")"});
  }
  return all;
}

}  // namespace

void add_transformer_rows(TorchRows& rows) {
  TorchFile(rows, "activation")
      .add<nn::MultiheadAttentionImpl>(
          "MultiheadAttention",
          described(taking(FX_OPTION(embed_dim), FX_OPTION(num_heads)), FX_OPTION(dropout), FX_OPTION(bias),
                    FX_OPTION(add_bias_kv), FX_OPTION(add_zero_attn), FX_OPTION(kdim), FX_OPTION(vdim)),
          {.follows_mode =
               [](const nn::Module& module) {
                 return dynamic_cast<const nn::MultiheadAttentionImpl&>(module).options.dropout() > 0;
               },
           .cost_operator = std::string(python::kMultiHeadAttention)});
  const TorchFile file(rows, "transformer");
  const auto width = taking(FX_OPTION(d_model), FX_OPTION(nhead));
  const auto layer = described(width, FX_OPTION(dim_feedforward), FX_OPTION(dropout), FX_OPTION(activation));
  const auto whole = described(width, FX_OPTION(num_encoder_layers), FX_OPTION(num_decoder_layers),
                               FX_OPTION(dim_feedforward), FX_OPTION(dropout), FX_OPTION(activation));
  const ModuleType drops{.follows_mode = &may_drop};
  file.add<nn::TransformerEncoderLayerImpl>("TransformerEncoderLayer", layer, drops);
  file.add<nn::TransformerDecoderLayerImpl>("TransformerDecoderLayer", layer, drops);
  file.add<nn::TransformerImpl>(
      "Transformer",
      [whole](const nn::TransformerOptions& options) {
        const bool is_plain = options.custom_encoder().is_empty() && options.custom_decoder().is_empty();
        return is_plain ? whole(options) : std::nullopt;
      },
      drops);
  file.add<nn::TransformerEncoderImpl>(
      "TransformerEncoder",
      [](const nn::TransformerEncoderOptions& o) {
        return stack_of(*o.encoder_layer(), "encoder_layer", o.num_layers(), o.norm());
      },
      drops);
  file.add<nn::TransformerDecoderImpl>(
      "TransformerDecoder",
      [](const nn::TransformerDecoderOptions& o) {
        return stack_of(*o.decoder_layer(), "decoder_layer", o.num_layers(), o.norm());
      },
      drops);
}

}  // namespace fx::internal
