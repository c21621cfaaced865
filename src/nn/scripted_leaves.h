// What scripted leaves of torch.nn compute in evaluation, as operators over their own tensors, for calls of one form:
// for the types whose forward asks for the number of dimensions and for packed sequences.
#pragma once

#include <memory>

#include <fxgraph/nn/module_type.h>

namespace fx::internal {

/// For ModuleType::scripted_body; the leaf has a script.
/// @{
std::shared_ptr<const Graph> lstm_leaf(const LeafModule& leaf, CallForm form);
std::shared_ptr<const Graph> gru_leaf(const LeafModule& leaf, CallForm form);
std::shared_ptr<const Graph> lstm_cell_leaf(const LeafModule& leaf, CallForm form);
std::shared_ptr<const Graph> gru_cell_leaf(const LeafModule& leaf, CallForm form);
std::shared_ptr<const Graph> embedding_bag_leaf(const LeafModule& leaf, CallForm form);
std::shared_ptr<const Graph> instance_norm_leaf(const LeafModule& leaf, CallForm form, int dims);
/// @}

/// The same for inputs of a batch, channels and `dims` more.
template <int dims>
std::shared_ptr<const Graph> instance_norm_leaf(const LeafModule& leaf, CallForm form) {
  return instance_norm_leaf(leaf, form, dims);
}

}  // namespace fx::internal
