// Modules that graphs can only call (recurrent ones, attention, transformers) are written as the operators that they
// are, their parameters under their names, whatever of their results the program takes.
#include <functional>
#include <map>

#include "tests/trace/saved_archive.h"

namespace fx::saved_leaves_test {

namespace nn = torch::nn;
using testing::Inputs;
using torch::Tensor;

/// A model of one leaf, called as `call` says.
template <typename Leaf>
struct AroundImpl : nn::Module {
  using Call = std::function<Tensor(Leaf&, const Tensor&)>;
  AroundImpl(Leaf of, Call call) : call(std::move(call)) {
    leaf = register_module("leaf", of);
    head = register_module("head", nn::Linear(8, 2));
  }
  Tensor forward(const Tensor& x) { return head(call(leaf, x)); }
  Leaf leaf{nullptr};
  nn::Linear head{nullptr};
  Call call;
};

class SavedArchiveOfLeaf : public testing::SavedArchiveTest {
 protected:
  template <typename Leaf, typename Call>
  void check_leaf(const std::string& name, Leaf leaf, Call call, const std::vector<Inputs>& all) {
    SCOPED_TRACE(name);
    const auto run = [](auto& model, const Inputs& inputs) -> c10::IValue {
      return model->forward(inputs[0].toTensor());
    };
    check("leaf_" + name, std::make_shared<AroundImpl<Leaf>>(leaf, call), run, all);
  }
};

std::vector<Inputs> sequences() {
  return {{torch::rand({3, 5, 8})}, {torch::rand({3, 2, 8})}, {torch::rand({7, 5, 8})}, {torch::rand({4, 6, 8})}};
}
std::vector<Inputs> rows() { return {{torch::rand({3, 8})}, {torch::rand({5, 8})}}; }

const auto kFirst = [](auto& leaf, const Tensor& x) { return std::get<0>(leaf(x)); };
const auto kOnly = [](auto& leaf, const Tensor& x) { return Tensor(leaf(x)); };
const auto kItself = [](auto& leaf, const Tensor& x) { return std::get<0>(leaf(x, x, x)); };

TEST_F(SavedArchiveOfLeaf, Lstm) {
  check_leaf("lstm", nn::LSTM(8, 8), kFirst, sequences());
  check_leaf("lstm_both_ways",
             nn::LSTM(nn::LSTMOptions(8, 4).batch_first(true).bidirectional(true).num_layers(2).dropout(0.5)), kFirst,
             sequences());
  check_leaf("lstm_projected", nn::LSTM(nn::LSTMOptions(8, 12).proj_size(8)), kFirst, sequences());
  check_leaf(
      "lstm_last_state", nn::LSTM(8, 8),
      [](nn::LSTM& leaf, const Tensor& x) { return std::get<0>(std::get<1>(leaf(x)))[-1]; }, sequences());
  check_leaf(
      "lstm_all_results", nn::LSTM(8, 8),
      [](nn::LSTM& leaf, const Tensor& x) {
        const auto [out, state] = leaf(x);
        return out + std::get<0>(state) * std::get<1>(state);
      },
      sequences());
  check_leaf(
      "lstm_twice", nn::LSTM(8, 8),
      [](nn::LSTM& leaf, const Tensor& x) {
        const auto [out, state] = leaf(x);
        return std::get<0>(leaf(out, state));
      },
      sequences());
}

TEST_F(SavedArchiveOfLeaf, GruAndRnn) {
  check_leaf("gru", nn::GRU(8, 8), kFirst, sequences());
  check_leaf(
      "gru_last_state", nn::GRU(nn::GRUOptions(8, 8).num_layers(2)),
      [](nn::GRU& leaf, const Tensor& x) { return std::get<1>(leaf(x)); }, sequences());
  check_leaf(
      "gru_of_state", nn::GRU(nn::GRUOptions(8, 8).batch_first(true)),
      [](nn::GRU& leaf, const Tensor& x) {
        return std::get<0>(leaf(x, torch::ones({1, x.size(0), 8})));
      },
      sequences());
  check_leaf("rnn", nn::RNN(8, 8), kFirst, sequences());
  check_leaf("rnn_relu", nn::RNN(nn::RNNOptions(8, 8).nonlinearity(torch::kReLU).bias(false)), kFirst, sequences());
}

TEST_F(SavedArchiveOfLeaf, Cells) {
  check_leaf(
      "lstm_cell", nn::LSTMCell(8, 8),
      [](nn::LSTMCell& leaf, const Tensor& x) {
        const auto state = leaf(x);
        const auto [hidden, cell] = leaf(x, state);
        return hidden * cell;
      },
      rows());
  check_leaf(
      "gru_cell", nn::GRUCell(8, 8), [](nn::GRUCell& leaf, const Tensor& x) { return leaf(x, leaf(x)); }, rows());
  check_leaf("rnn_cell", nn::RNNCell(8, 8), kOnly, rows());
}

TEST_F(SavedArchiveOfLeaf, Attention) {
  using Options = nn::MultiheadAttentionOptions;
  check_leaf("attention", nn::MultiheadAttention(Options(8, 2)), kItself, sequences());
  check_leaf(
      "attention_and_weights", nn::MultiheadAttention(Options(8, 2)),
      [](nn::MultiheadAttention& leaf, const Tensor& x) {
        const auto [out, weights] = leaf(x, x, x);
        return out + weights.sum();
      },
      sequences());
  check_leaf(
      "attention_across", nn::MultiheadAttention(Options(8, 2)),
      [](nn::MultiheadAttention& leaf, const Tensor& x) {
        const Tensor y = x.flip(0) * 2;
        return std::get<0>(leaf(x, y, y));
      },
      sequences());
  check_leaf("attention_more_keys", nn::MultiheadAttention(Options(8, 2).add_bias_kv(true).add_zero_attn(true)),
             kItself, sequences());
}

TEST_F(SavedArchiveOfLeaf, Transformers) {
  const auto layer = nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16);
  const auto back = nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16);
  const auto doubled = [](auto& leaf, const Tensor& x) { return Tensor(leaf(x, x * 2)); };
  check_leaf("encoder_layer", nn::TransformerEncoderLayer(layer), kOnly, sequences());
  check_leaf("encoder", nn::TransformerEncoder(nn::TransformerEncoderLayer(layer), 2), kOnly, sequences());
  check_leaf("decoder", nn::TransformerDecoder(nn::TransformerDecoderLayer(back), 2), doubled, sequences());
  check_leaf("transformer", nn::Transformer(nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16)), doubled,
             sequences());
}

}  // namespace fx::saved_leaves_test
