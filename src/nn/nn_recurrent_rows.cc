#include <fxgraph/nn/nn_row.h>
#include <fxgraph/nn/scripted_leaves.h>

namespace fx::internal {
namespace {

// Dropout stands between layers.
template <typename Impl>
bool drops_between_layers(const torch::nn::Module& module) {
  const auto& options = dynamic_cast<const Impl&>(module).options;
  return options.dropout() > 0 && options.num_layers() > 1;
}

}  // namespace

// A step of a cell costs what a step of the layer does: each weight once for each row of the input.
void add_recurrent_rows(TorchRows& rows) {
  namespace nn = torch::nn;
  const TorchFile file(rows, "rnn");
  const auto size = taking(FX_OPTION(input_size), FX_OPTION(hidden_size));
  file.add<nn::LSTMImpl>("LSTM",
                         described(size, FX_OPTION(bias), FX_OPTION(num_layers), FX_OPTION(batch_first),
                                   FX_OPTION(dropout), FX_OPTION(bidirectional), FX_OPTION(proj_size)),
                         {.follows_mode = &drops_between_layers<nn::LSTMImpl>,
                          .cost_operator = "aten::lstm",
                          .scripted_body = &lstm_leaf});
  file.add<nn::GRUImpl>(
      "GRU",
      described(size, FX_OPTION(bias), FX_OPTION(num_layers), FX_OPTION(batch_first), FX_OPTION(dropout),
                FX_OPTION(bidirectional)),
      {.follows_mode = &drops_between_layers<nn::GRUImpl>, .cost_operator = "aten::gru", .scripted_body = &gru_leaf});
  file.add<nn::RNNImpl>("RNN",
                        described(size, FX_OPTION(bias), FX_OPTION(num_layers), FX_OPTION(nonlinearity),
                                  FX_OPTION(batch_first), FX_OPTION(dropout), FX_OPTION(bidirectional)),
                        {.follows_mode = &drops_between_layers<nn::RNNImpl>, .cost_operator = "aten::rnn_tanh"});
  const auto cell = described(size, FX_OPTION(bias));
  file.add<nn::LSTMCellImpl>("LSTMCell", cell, {.cost_operator = "aten::lstm", .scripted_body = &lstm_cell_leaf});
  file.add<nn::GRUCellImpl>("GRUCell", cell, {.cost_operator = "aten::gru", .scripted_body = &gru_cell_leaf});
  file.add<nn::RNNCellImpl>("RNNCell", described(size, FX_OPTION(bias), FX_OPTION(nonlinearity)),
                            {.cost_operator = "aten::rnn_tanh"});
}

}  // namespace fx::internal
