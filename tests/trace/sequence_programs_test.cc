// Models of sequences and tables as public LibTorch projects write them, each at other batches and lengths than its
// example's.
#include <cmath>

#include "tests/trace/program_checks.h"

namespace fx::sequence_programs_test {

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using testing::Model;
using testing::Model2;
using testing::ProgramCase;
using testing::Tensors;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

using MakeInputs = std::function<Tensors()>;

MakeInputs reals(std::vector<std::int64_t> size) {
  return [size] {
    torch::manual_seed(size[0] + 7 * size.back());
    return Tensors{torch::rand(size) - 0.4};
  };
}
MakeInputs words(std::int64_t n, std::int64_t t) {
  return [=] {
    torch::manual_seed(n + t);
    return Tensors{torch::randint(0, 11, {n, t}, torch::kLong)};
  };
}

/// Embeddings of width 8, one projection, one head.
struct Text : Model {
  nn::Embedding embed = register_module("embed", nn::Embedding(11, 8));
  nn::Linear q = register_module("q", nn::Linear(8, 8)), k = register_module("k", nn::Linear(8, 8)),
             v = register_module("v", nn::Linear(8, 8));
  Tensor table = register_buffer("table", torch::rand({64, 8}));
  Tensor heads(const Tensor& x, std::int64_t count) {
    return x.view({x.size(0), x.size(1), count, x.size(2) / count}).transpose(1, 2);
  }
  static Tensor merged(const Tensor& x) {
    return x.transpose(1, 2).contiguous().view({x.size(0), -1, x.size(1) * x.size(3)});
  }
};

struct Masked : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x) + table.slice(0, 0, x.size(1));
    Tensor s = torch::matmul(heads(q(e), 2), heads(k(e), 2).transpose(-2, -1)) / std::sqrt(8 / 2);
    s = s.masked_fill(torch::triu(torch::ones({x.size(1), x.size(1)}), 1).to(torch::kBool), -1e9);
    return merged(torch::matmul(torch::softmax(s, -1), heads(v(e), 2)));
  }
};
struct PaddingMask : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x), mask = (x != 0).unsqueeze(1).unsqueeze(2);
    const auto b = x.size(0), t = x.size(1);
    const Tensor qh = q(e).view({b, -1, 2, 4}).transpose(1, 2), kh = k(e).view({b, -1, 2, 4}).transpose(1, 2);
    const Tensor s = torch::where(mask, torch::matmul(qh, kh.transpose(2, 3)), torch::full({1}, -1e4));
    return torch::matmul(torch::softmax(s.to(e.dtype()), 3), v(e).view({b, t, 2, 4}).transpose(1, 2))
        .transpose(1, 2)
        .reshape({b, t, 8});
  }
};
struct SinusoidTable : Text {
  Tensor forward(Tensor x) override {
    const auto t = x.size(1);
    const Tensor position = torch::arange(t, torch::kFloat).unsqueeze(1);
    const Tensor rate = torch::exp(torch::arange(0, 8, 2, torch::kFloat) * (-std::log(10000.0) / 8));
    Tensor table = torch::zeros({t, 8});
    table.index_put_({Slice(), Slice(0, None, 2)}, torch::sin(position * rate));
    table.index_put_({Slice(), Slice(1, None, 2)}, torch::cos(position * rate));
    const Tensor e = embed(x);
    return e * std::sqrt(8.0) + table.unsqueeze(0).to(e.dtype());
  }
};
struct Alibi : Text {
  Tensor forward(Tensor x) override {
    const auto t = x.size(1);
    const Tensor distance = torch::arange(t).view({1, t}) - torch::arange(t).view({t, 1});
    const Tensor slopes = torch::tensor({0.5F, 0.25F}).view({2, 1, 1});
    const Tensor e = embed(x);
    const Tensor s =
        torch::matmul(heads(e, 2), heads(e, 2).transpose(2, 3)) + (distance.abs().neg() * slopes).to(e.dtype());
    return merged(torch::matmul(s.softmax(-1), heads(e, 2)));
  }
};
struct RelativeBuckets : Text {
  Tensor bias = register_parameter("bias", torch::rand({2, 33}));
  Tensor forward(Tensor x) override {
    const auto t = x.size(1);
    const Tensor i = torch::arange(t);
    const Tensor relative = torch::clamp(i.unsqueeze(0) - i.unsqueeze(1), -16, 16) + 16;
    const Tensor e = embed(x), b = bias.index({Slice(), relative});
    return merged(
        torch::matmul((torch::matmul(heads(e, 2), heads(e, 2).transpose(2, 3)) + b).softmax(-1), heads(e, 2)));
  }
};
struct Bag : Text {
  Tensor forward(Tensor x) override {
    const Tensor mask = (x > 0).to(table.dtype()).unsqueeze(-1);
    return (embed(x) * mask).sum(1) / (mask.sum(1) + x.size(1) * 0.5);
  }
};
struct ClassToken : Text {
  Tensor cls = register_parameter("cls", torch::rand({1, 1, 8}));
  Tensor forward(Tensor x) override {
    Tensor e = torch::cat({cls.repeat({x.size(0), 1, 1}), embed(x)}, 1);
    e = e + table.index({Slice(None, e.size(1))});
    return e.select(1, 0) + e.select(1, e.size(1) - 1) + e.index({Slice(), -1});
  }
};
struct LastToken : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = v(embed(x)).view({-1, x.size(1), 8});
    return e.index({torch::arange(x.size(0)), (x != 0).sum(1).clamp(1) - 1});
  }
};
struct OneHot : Text {
  Tensor forward(Tensor x) override {
    return torch::one_hot(x, 11).to(table.dtype()).matmul(embed->weight).sum(1) / x.size(1);
  }
};
struct Recurrent : Text {
  nn::GRU gru = register_module("gru", nn::GRU(nn::GRUOptions(8, 6).batch_first(true).num_layers(2)));
  Tensor forward(Tensor x) override {
    const Tensor h = torch::zeros({2, x.size(0), 6}, table.options());
    const auto [out, last] = gru(embed(x), h);
    return out.index({Slice(), -1, Slice()}) + last[-1];
  }
};
struct BothWays : Text {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 5).bidirectional(true)));
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x).transpose(0, 1);
    const auto h = torch::zeros({2, x.size(0), 5}, e.options()), c = torch::zeros({2, x.size(0), 5}, e.options());
    const auto [out, state] = lstm(e, std::make_tuple(h, c));
    return out.view({e.size(0), e.size(1), 2, 5}).sum(2).transpose(0, 1) + std::get<0>(state).sum();
  }
};
struct ByHand : Text {
  nn::LSTMCell cell = register_module("cell", nn::LSTMCell(8, 8));
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x);
    Tensor h = torch::zeros({x.size(0), 8}, e.options()), c = torch::zeros_like(h);
    std::vector<Tensor> all;
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      std::tie(h, c) = cell(e.select(1, t), std::make_tuple(h, c));
      all.push_back(h);
    }
    return torch::stack(all, 1);
  }
};
struct Encoder : Text {
  nn::TransformerEncoder encoder = register_module(
      "encoder",
      nn::TransformerEncoder(nn::TransformerEncoderOptions(
          nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(12).dropout(0)), 2)));
  Tensor forward(Tensor x) override {
    const auto t = x.size(1);
    Tensor mask = torch::triu(torch::ones({t, t})).transpose(0, 1);
    mask = mask.masked_fill(mask == 0, -1e9).masked_fill(mask == 1, 0.0).to(table.dtype());
    return encoder(embed(x).transpose(0, 1), mask).mean(0);
  }
};
struct Convolved : Text {
  nn::Conv1d three = register_module("three", nn::Conv1d(nn::Conv1dOptions(8, 4, 3))),
             five = register_module("five", nn::Conv1d(nn::Conv1dOptions(8, 4, 5)));
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x).permute({0, 2, 1});
    const auto pooled = [&](nn::Conv1d& conv) {
      const Tensor y = torch::relu(conv(e));
      return F::max_pool1d(y, F::MaxPool1dFuncOptions(y.size(2))).squeeze(2);
    };
    return torch::cat({pooled(three), pooled(five)}, 1);
  }
};
struct Causal : Text {
  nn::Conv1d conv = register_module("conv", nn::Conv1d(nn::Conv1dOptions(8, 8, 3).padding(4).dilation(2)));
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x).transpose(1, 2), y = conv(e);
    return y.slice(2, 0, y.size(2) - 4) + e;
  }
};
struct Beams : Text {
  Tensor forward(Tensor x) override {
    const auto b = x.size(0);
    const Tensor logits = embed(x).mean(1);
    const auto [best, which] = torch::topk(logits, 3, -1);
    const Tensor offsets = (torch::arange(b) * 8).unsqueeze(1);
    return best + logits.view({-1}).index_select(0, (which + offsets).view({-1})).view({b, 3});
  }
};
struct Pooled : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x);
    const auto half = static_cast<std::int64_t>(x.size(1) * 0.5);
    return e.slice(1, 0, half).sum(1) / std::max<std::int64_t>(half, 1) + e.narrow(1, half, x.size(1) - half).mean(1);
  }
};
struct Chunked : Text {
  Tensor forward(Tensor x) override {
    const std::int64_t size = 4, t = x.size(1), padded = (t + size - 1) / size * size;
    Tensor e = F::pad(embed(x), F::PadFuncOptions({0, 0, 0, padded - t}));
    e = e.view({x.size(0), padded / size, size, 8});
    return (e + e.mean(2, true)).view({x.size(0), padded, 8}).slice(1, 0, t);
  }
};
struct Scores : Text {
  Tensor forward(Tensor x) override {
    const Tensor logits = torch::matmul(embed(x), embed->weight.t());
    return F::cross_entropy(logits.slice(1, 0, x.size(1) - 1).reshape({-1, logits.size(-1)}), x.slice(1, 1).reshape(-1),
                            F::CrossEntropyFuncOptions().ignore_index(0));
  }
};
struct Interleaved : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x);
    const Tensor pairs = torch::stack({e, e.flip(1)}, 2).view({x.size(0), 2 * x.size(1), 8});
    return pairs.repeat_interleave(2, 1).index({Slice(), Slice(None, None, 2)}) * (1.0 / (2 * x.size(1)));
  }
};
struct Scaled : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x);
    return e / std::sqrt(static_cast<double>(e.size(1))) + e * std::pow(static_cast<double>(e.size(-1)), -0.5) +
           static_cast<double>(e.numel()) * 0.001;
  }
};
struct Logs : Text {
  Tensor forward(Tensor x) override { return embed(x) * std::log(static_cast<double>(x.size(1))); }
};
struct Shifted : Text {
  Tensor forward(Tensor x) override {
    const Tensor e = embed(x);
    return torch::cat({torch::zeros({e.size(0), 1, e.size(2)}, e.options()), e.slice(1, 0, -1)}, 1) +
           torch::cat({e.index({Slice(), Slice(1)}), e.new_zeros({e.size(0), 1, 8})}, 1);
  }
};
struct Rows : Text {
  Tensor forward(Tensor x) override {
    std::vector<Tensor> rows;
    for (const Tensor& row : embed(x).unbind(0)) rows.push_back(row.sum(0));
    return torch::stack(rows);
  }
};
struct Cross : Model2 {
  nn::MultiheadAttention attention = register_module("attention", nn::MultiheadAttention(8, 2));
  Tensor forward(Tensor x, Tensor y) override {
    return std::get<0>(attention(x, y, y)) +
           torch::einsum("tbc,sbc->tc", {x, y}).unsqueeze(1) / (x.size(0) * y.size(0));
  }
};
struct Cached : Model2 {
  Tensor forward(Tensor x, Tensor y) override {
    const Tensor all = torch::cat({y, x}, 1);
    const auto t = x.size(1), total = all.size(1);
    const Tensor mask = torch::ones({t, total}).tril(total - t).to(torch::kBool);
    return torch::matmul(torch::matmul(x, all.transpose(1, 2)).masked_fill(mask.logical_not(), -1e9).softmax(-1), all);
  }
};
struct Pairs : Model2 {
  Tensor forward(Tensor x, Tensor y) override {
    return (x.unsqueeze(1) - y.unsqueeze(0)).pow(2).sum(-1).sqrt() + torch::cdist(x, y) +
           x.sum(1).view({-1, 1}).expand({x.size(0), y.size(0)}) * y.size(0);
  }
};
struct Flat : Model {
  Tensor forward(Tensor x) override {
    const auto n = x.size(0);
    return torch::eye(n, x.options()).matmul(x) + torch::diag(torch::ones({n}, x.options())).matmul(x) +
           torch::full_like(x, static_cast<double>(n)) + torch::linspace(0, 1, x.size(1)).to(x.dtype());
  }
};

template <typename M>
std::shared_ptr<nn::Module> make() {
  return std::make_shared<M>();
}

const std::vector<ProgramCase>& programs() {
  const std::vector<MakeInputs> texts = {words(2, 6), words(1, 6), words(3, 13), words(5, 9), words(2, 7)};
  const std::vector<MakeInputs> batches = {words(2, 6), words(1, 6), words(7, 6), words(2, 9)};
  const auto two = [](std::vector<std::int64_t> a, std::vector<std::int64_t> b) -> MakeInputs {
    return [a, b] {
      torch::manual_seed(a[0] * 3 + b[0]);
      return Tensors{torch::rand(a), torch::rand(b)};
    };
  };
  static const auto& table = *new std::vector<ProgramCase>{
      {"Masked", make<Masked>, texts, 5},
      {"PaddingMask", make<PaddingMask>, texts, 5},
      {"SinusoidTable", make<SinusoidTable>, texts, 5},
      {"Alibi", make<Alibi>, texts, 5},
      {"RelativeBuckets", make<RelativeBuckets>, texts, 5},
      {"Bag", make<Bag>, texts, 5},
      {"ClassToken", make<ClassToken>, texts, 5},
      {"LastToken", make<LastToken>, texts, 5},
      {"OneHot", make<OneHot>, texts, 5},
      {"Recurrent", make<Recurrent>, texts, 5},
      {"BothWays", make<BothWays>, texts, 5},
      {"ByHand", make<ByHand>, batches, 3},
      {"Encoder", make<Encoder>, texts, 5},
      {"Convolved", make<Convolved>, texts, 5},
      {"Causal", make<Causal>, texts, 5},
      {"Beams", make<Beams>, texts, 5},
      {"Pooled", make<Pooled>, texts, 5},
      {"Chunked", make<Chunked>, texts, 5},
      {"Scores", make<Scores>, texts, 5},
      {"Interleaved", make<Interleaved>, texts, 5},
      {"Scaled", make<Scaled>, texts, 5},
      {"Logs", make<Logs>, batches, 3},
      {"Shifted", make<Shifted>, texts, 5},
      {"Rows", make<Rows>, {words(2, 6), words(2, 9), words(3, 6)}, 2},
      {"Cross", make<Cross>, {two({5, 2, 8}, {7, 2, 8}), two({4, 3, 8}, {4, 3, 8}), two({1, 1, 8}, {9, 1, 8})}, 3},
      {"Cached", make<Cached>, {two({2, 3, 8}, {2, 5, 8}), two({1, 1, 8}, {1, 9, 8}), two({4, 4, 8}, {4, 4, 8})}, 3},
      {"Pairs", make<Pairs>, {two({4, 3}, {6, 3}), two({5, 3}, {5, 3}), two({1, 2}, {8, 2})}, 3},
      {"Flat", make<Flat>, {reals({4, 3}), reals({6, 3}), reals({2, 9}), reals({5, 5})}, 4},
  };
  return table;
}

class SequencePrograms : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(SequencePrograms, HoldAtOtherSizes) { testing::expect_holds_at_other_sizes(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Night, SequencePrograms, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::sequence_programs_test

const std::vector<fx::testing::ProgramCase>& fx::testing::sequence_programs() {
  return sequence_programs_test::programs();
}
