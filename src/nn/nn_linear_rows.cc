#include <fxgraph/nn/nn_row.h>
#include <fxgraph/nn/scripted_leaves.h>

namespace fx::internal {

void add_linear_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile linear(rows, "linear");
  linear.add<nn::LinearImpl>("Linear",
                             described(taking(FX_OPTION(in_features), FX_OPTION(out_features)), FX_OPTION(bias)),
                             {.body = linear_body});
  linear.add<nn::BilinearImpl>(
      "Bilinear",
      described(taking(FX_OPTION(in1_features), FX_OPTION(in2_features), FX_OPTION(out_features)), FX_OPTION(bias)));
  linear.add_plain<nn::IdentityImpl>("Identity", {.body = identity_body});
  const TorchFile embedding(rows, "sparse");
  const auto size = taking(FX_OPTION(num_embeddings), FX_OPTION(embedding_dim));
  embedding.add<nn::EmbeddingImpl>("Embedding",
                                   described(size, FX_OPTION(padding_idx), FX_OPTION(max_norm), FX_OPTION(norm_type),
                                             FX_OPTION(scale_grad_by_freq), FX_OPTION(sparse)),
                                   {.body = embedding_body});
  embedding.add<nn::EmbeddingBagImpl>(
      "EmbeddingBag",
      described(size, FX_OPTION(max_norm), FX_OPTION(norm_type), FX_OPTION(scale_grad_by_freq), FX_OPTION(mode),
                FX_OPTION(sparse), FX_OPTION(include_last_offset), FX_OPTION(padding_idx)),
      {.scripted_body = &embedding_bag_leaf});
  const TorchFile distance(rows, "distance");
  distance.add<nn::CosineSimilarityImpl>("CosineSimilarity", described(taking(), FX_OPTION(dim), FX_OPTION(eps)));
  distance.add<nn::PairwiseDistanceImpl>("PairwiseDistance",
                                         described(taking(), FX_OPTION(p), FX_OPTION(eps), FX_OPTION(keepdim)));
}

}  // namespace fx::internal
