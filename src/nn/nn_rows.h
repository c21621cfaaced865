// The rows of torch::nn's types, by family: what nn_modules.cc begins with. Included by it and by the families.
#pragma once

#include <optional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <fxgraph/nn/module_type.h>

namespace fx::internal {

/// Rows, each with its type in C++ unless torch.nn has it in Python alone.
using TorchRows = std::vector<std::pair<std::optional<std::type_index>, ModuleType>>;

void add_convolution_rows(TorchRows& rows);
void add_norm_rows(TorchRows& rows);
void add_linear_rows(TorchRows& rows);
void add_activation_rows(TorchRows& rows);
void add_pooling_rows(TorchRows& rows);
void add_padding_rows(TorchRows& rows);
void add_dropout_rows(TorchRows& rows);
void add_recurrent_rows(TorchRows& rows);
void add_transformer_rows(TorchRows& rows);

inline TorchRows torch_rows() {
  TorchRows rows;
  for (const auto add : {add_convolution_rows, add_norm_rows, add_linear_rows, add_activation_rows, add_pooling_rows,
                         add_padding_rows, add_dropout_rows, add_recurrent_rows, add_transformer_rows})
    add(rows);
  return rows;
}

}  // namespace fx::internal
