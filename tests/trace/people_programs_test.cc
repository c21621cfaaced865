// Modules as people write them for text, images, sound, games and losses, traced at one size: at others, in both modes,
// with gradients, each is right or refused.
#include "tests/trace/honesty.h"

namespace fx::people_programs_test {

using testing::Inputs;
using torch::Tensor;
using torch::indexing::Slice;
namespace F = torch::nn::functional;
namespace nn = torch::nn;

/// Modules by name, and what forward does with them.
struct People : nn::Module {
  using Forward = std::function<Tensor(People&, const std::vector<Tensor>&)>;
  using Make = std::function<void(People&)>;
  explicit People(const Make& make, Forward run) : forward_(std::move(run)) { make(*this); }
  Tensor forward(Tensor a) { return forward_(*this, {a}); }
  Tensor forward(Tensor a, Tensor b) { return forward_(*this, {a, b}); }
  template <typename M>
  void add(const std::string& name, M module) {
    register_module(name, nn::AnyModule(module).ptr());
    modules[name] = nn::AnyModule(module);
  }
  Tensor operator()(const std::string& name, const Tensor& x) { return modules.at(name).forward(x); }
  Tensor at(const std::string& name) {
    return named_parameters().contains(name) ? named_parameters()[name] : named_buffers()[name];
  }

  std::map<std::string, nn::AnyModule> modules;
  Forward forward_;
};

struct Case {
  const char* name;
  const char* want;
  People::Make make;
  People::Forward run;
  std::vector<Inputs> inputs;
  bool training = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class PeopleProgram : public ::testing::TestWithParam<Case> {};

TEST_P(PeopleProgram, IsRightOrRefused) {
  const Case& c = GetParam();
  const bool two = c.inputs[0].size() == 2;
  struct One : People {
    using People::People;
    Tensor forward(Tensor a) { return People::forward(a); }
  };
  struct Two : People {
    using People::People;
    Tensor forward(Tensor a, Tensor b) { return People::forward(a, b); }
  };
  if (two) {
    const auto make = [&] {
      auto module = std::make_shared<Two>(c.make, c.run);
      module->train(c.training);
      return module;
    };
    testing::expect_honest(
        c.want, make, [](Two& m, Inputs& in) -> c10::IValue { return m.forward(in[0].toTensor(), in[1].toTensor()); },
        c.inputs);
  } else {
    const auto make = [&] {
      auto module = std::make_shared<One>(c.make, c.run);
      module->train(c.training);
      return module;
    };
    testing::expect_honest(
        c.want, make, [](One& m, Inputs& in) -> c10::IValue { return m.forward(in[0].toTensor()); }, c.inputs);
  }
}

Tensor words(std::int64_t n, std::int64_t t) { return torch::randint(11, {n, t}); }
Tensor image(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) { return torch::rand({n, c, h, w}); }
nn::Conv1d conv1d(std::int64_t in, std::int64_t out, std::int64_t k, std::int64_t dilation = 1) {
  return nn::Conv1d(nn::Conv1dOptions(in, out, k).dilation(dilation));
}

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      {"text_convolutions",
       "right",
       [](People& m) {
         m.add("embedding", nn::Embedding(11, 4));
         for (const int k : {2, 3}) m.add("conv" + std::to_string(k), conv1d(4, 5, k));
         m.add("fc", nn::Linear(10, 3));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor x = m("embedding", in[0]).transpose(1, 2);
         std::vector<Tensor> pooled;
         for (const char* name : {"conv2", "conv3"}) {
           const Tensor y = torch::relu(m(name, x));
           pooled.push_back(F::max_pool1d(y, F::MaxPool1dFuncOptions(y.size(2))).squeeze(2));
         }
         return m("fc", torch::cat(pooled, 1));
       },
       {{words(2, 6)}, {words(3, 9)}, {words(1, 4)}}},
      {"duelling_networks",
       "right",
       [](People& m) {
         m.add("body", nn::Linear(4, 8));
         m.add("value", nn::Linear(8, 1));
         m.add("advantage", nn::Linear(8, 3));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor h = torch::relu(m("body", in[0])), a = m("advantage", h);
         return m("value", h) + a - a.mean(1, /*keepdim=*/true);
       },
       {{torch::rand({5, 4})}, {torch::rand({1, 4})}, {torch::rand({70, 4})}}},
      {"policy_gradient",
       "right",
       [](People& m) {
         m.add("mean", nn::Linear(3, 2));
         m.register_parameter("log_std", torch::zeros({2}));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor mean = torch::tanh(m("mean", in[0])), std = m.at("log_std").exp().expand_as(mean);
         const Tensor log_prob = -(in[1] - mean).pow(2) / (2 * std.pow(2)) - std.log() - std::log(std::sqrt(2 * M_PI));
         return log_prob.sum(-1) / static_cast<double>(in[0].size(0));
       },
       {{torch::rand({4, 3}), torch::rand({4, 2})}, {torch::rand({9, 3}), torch::rand({9, 2})}}},
      {"channel_and_spatial_attention",
       "right",
       [](People& m) {
         m.add("fc1", nn::Conv2d(nn::Conv2dOptions(4, 2, 1)));
         m.add("fc2", nn::Conv2d(nn::Conv2dOptions(2, 4, 1)));
         m.add("spatial", nn::Conv2d(nn::Conv2dOptions(2, 1, 3).padding(1)));
       },
       [](People& m, const std::vector<Tensor>& in) {
         Tensor x = in[0];
         const auto mlp = [&](const Tensor& pooled) { return m("fc2", torch::relu(m("fc1", pooled))); };
         x = x * torch::sigmoid(mlp(torch::adaptive_avg_pool2d(x, {1, 1})) +
                                mlp(std::get<0>(torch::adaptive_max_pool2d(x, {1, 1}))));
         const Tensor s = torch::cat({x.mean(1, true), std::get<0>(x.max(1, true))}, 1);
         return x * torch::sigmoid(m("spatial", s));
       },
       {{image(2, 4, 6, 6)}, {image(3, 4, 9, 5)}}},
      {"dilated_causal",
       "right",
       [](People& m) {
         for (int i = 0; i < 3; ++i) m.add("conv" + std::to_string(i), conv1d(3, 3, 2, std::int64_t{1} << i));
       },
       [](People& m, const std::vector<Tensor>& in) {
         Tensor x = in[0];
         for (int i = 0; i < 3; ++i) {
           const Tensor y = m("conv" + std::to_string(i), x);
           x = x.slice(2, x.size(2) - y.size(2)) + torch::tanh(y) * torch::sigmoid(y);
         }
         return x;
       },
       {{torch::rand({2, 3, 16})}, {torch::rand({1, 3, 30})}}},
      {"super_resolution",
       "right",
       [](People& m) { m.add("conv", nn::Conv2d(nn::Conv2dOptions(3, 12, 3).padding(1))); },
       [](People& m, const std::vector<Tensor>& in) {
         const auto up = F::InterpolateFuncOptions()
                             .size(std::vector<std::int64_t>{in[0].size(2) * 2, in[0].size(3) * 2})
                             .mode(torch::kBilinear)
                             .align_corners(false);
         return torch::pixel_shuffle(m("conv", in[0]), 2) + F::interpolate(in[0], up);
       },
       {{image(1, 3, 5, 6)}, {image(2, 3, 8, 4)}}},
      {"rotary_table_in_a_buffer",
       "right",
       [](People& m) {
         const Tensor angles =
             torch::arange(64).unsqueeze(1) * torch::pow(10.0, -torch::arange(0, 4) / 4.0).unsqueeze(0);
         m.register_buffer("cos", angles.cos());
         m.register_buffer("sin", angles.sin());
         m.add("qk", nn::Linear(8, 16));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const std::int64_t t = in[0].size(1);
         const std::vector<Tensor> qk = m("qk", in[0]).chunk(2, -1);
         const auto rotate = [&](const Tensor& x) {
           const Tensor a = x.slice(-1, 0, 4), b = x.slice(-1, 4);
           const Tensor c = m.at("cos").slice(0, 0, t), s = m.at("sin").slice(0, 0, t);
           return torch::cat({a * c - b * s, a * s + b * c}, -1);
         };
         const Tensor scores = rotate(qk[0]).matmul(rotate(qk[1]).transpose(1, 2)) / std::sqrt(8.0);
         return torch::softmax(scores.masked_fill(torch::ones({t, t}, torch::kBool).triu(1), -1e9), -1);
       },
       {{torch::rand({2, 5, 8})}, {torch::rand({3, 9, 8})}, {torch::rand({1, 2, 8})}}},
      {"state_of_zeros",
       "right",
       [](People& m) { m.register_module("gru", nn::GRU(nn::GRUOptions(4, 5).batch_first(true))); },
       [](People& m, const std::vector<Tensor>& in) {
         auto gru = std::dynamic_pointer_cast<nn::GRUImpl>(m.named_children()["gru"]);
         return std::get<0>(gru->forward(in[0], torch::zeros({1, in[0].size(0), 5}))).select(1, in[0].size(1) - 1);
       },
       {{torch::rand({2, 3, 4})}, {torch::rand({5, 7, 4})}}},
      {"decoder_with_attention_step_by_step",
       "",
       [](People& m) {
         m.register_module("cell", nn::GRUCell(8, 4));
         m.add("score", nn::Linear(8, 1));
       },
       [](People& m, const std::vector<Tensor>& in) {
         auto cell = std::dynamic_pointer_cast<nn::GRUCellImpl>(m.named_children()["cell"]);
         Tensor h = torch::zeros({in[0].size(0), 4});
         std::vector<Tensor> all;
         for (std::int64_t t = 0; t < in[0].size(1); ++t) {
           const Tensor both = torch::cat({in[0], h.unsqueeze(1).expand({-1, in[0].size(1), -1})}, 2);
           const Tensor seen = (torch::softmax(m("score", both), 1) * in[0]).sum(1);
           h = cell->forward(torch::cat({in[0].select(1, t), seen}, 1), h);
           all.push_back(h);
         }
         return torch::stack(all, 1);
       },
       {{torch::rand({2, 3, 4})}, {torch::rand({5, 3, 4})}, {torch::rand({2, 4, 4})}}},
      {"last_by_lengths",
       "right",
       [](People& m) { m.add("fc", nn::Linear(4, 4)); },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor x = m("fc", in[0]);
         return x.gather(1, (in[1] - 1).view({-1, 1, 1}).expand({-1, 1, x.size(2)})).squeeze(1);
       },
       {{torch::rand({2, 5, 4}), torch::tensor({3, 5})}, {torch::rand({3, 7, 4}), torch::tensor({1, 7, 2})}}},
      {"contrastive_loss",
       "right",
       [](People& m) { m.add("fc", nn::Linear(4, 3)); },
       [](People& m, const std::vector<Tensor>& in) {
         const auto n = in[0].size(0);
         const Tensor z = F::normalize(torch::cat({m("fc", in[0]), m("fc", in[1])}), F::NormalizeFuncOptions().dim(1));
         const Tensor sim = (z.mm(z.t()) / 0.5).masked_fill(torch::eye(2 * n, torch::kBool), -1e9);
         const Tensor target = torch::cat({torch::arange(n, 2 * n), torch::arange(n)});
         return F::cross_entropy(sim, target);
       },
       {{torch::rand({3, 4}), torch::rand({3, 4})}, {torch::rand({8, 4}), torch::rand({8, 4})}}},
      {"mixture_of_experts",
       "right",
       [](People& m) {
         m.add("gate", nn::Linear(4, 3));
         for (int i = 0; i < 3; ++i) m.add("expert" + std::to_string(i), nn::Linear(4, 4));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const auto [values, indices] = m("gate", in[0]).topk(2, -1);
         const Tensor weights = torch::zeros({in[0].size(0), 3}).scatter(1, indices, torch::softmax(values, -1));
         std::vector<Tensor> outs;
         for (int i = 0; i < 3; ++i) outs.push_back(m("expert" + std::to_string(i), in[0]));
         return torch::einsum("ne,end->nd", {weights, torch::stack(outs)});
       },
       {{torch::rand({5, 4})}, {torch::rand({2, 4})}}},
      {"random_field",
       "",
       [](People& m) {
         m.register_parameter("transitions", torch::rand({3, 3}));
       },
       [](People& m, const std::vector<Tensor>& in) {
         Tensor score = in[0].select(1, 0);
         for (std::int64_t t = 1; t < in[0].size(1); ++t)
           score = torch::logsumexp(score.unsqueeze(2) + m.at("transitions").unsqueeze(0), 1) + in[0].select(1, t);
         return torch::logsumexp(score, 1);
       },
       {{torch::rand({2, 4, 3})}, {torch::rand({6, 4, 3})}, {torch::rand({2, 6, 3})}}},
      {"adaptive_instance_norm",
       "right",
       [](People& m) { m.add("style", nn::Linear(5, 8)); },
       [](People& m, const std::vector<Tensor>& in) {
         const std::vector<Tensor> style = m("style", in[1]).view({in[1].size(0), 2, -1}).unbind(1);
         const Tensor mean = in[0].mean(torch::IntArrayRef{2, 3}, true);
         const Tensor std =
             in[0].view({in[0].size(0), in[0].size(1), -1}).std(2).view({in[0].size(0), -1, 1, 1}) + 1e-5;
         return (in[0] - mean) / std * style[0].unsqueeze(2).unsqueeze(3) + style[1].unsqueeze(2).unsqueeze(3);
       },
       {{image(2, 4, 5, 6), torch::rand({2, 5})}, {image(3, 4, 8, 4), torch::rand({3, 5})}}},
      // Indexing by a slice of all there is runs no operator in C++: multiples of the window are another program.
      {"windows_with_shift_and_padding",
       "",
       [](People& m) { m.add("fc", nn::Linear(3, 3)); },
       [](People& m, const std::vector<Tensor>& in) {
         const std::int64_t w = 4, h0 = in[0].size(1), w0 = in[0].size(2);
         Tensor x = F::pad(in[0], F::PadFuncOptions({0, 0, 0, (w - w0 % w) % w, 0, (w - h0 % w) % w}));
         const std::int64_t n = x.size(0), h = x.size(1), ww = x.size(2);
         x = x.roll({-2, -2}, {1, 2})
                 .view({n, h / w, w, ww / w, w, 3})
                 .permute({0, 1, 3, 2, 4, 5})
                 .reshape({-1, w * w, 3});
         x = m("fc", x).view({n, h / w, ww / w, w, w, 3}).permute({0, 1, 3, 2, 4, 5}).reshape({n, h, ww, 3});
         return x.roll({2, 2}, {1, 2}).index({Slice(), Slice(0, h0), Slice(0, w0)});
       },
       {{torch::rand({2, 7, 9, 3})}, {torch::rand({1, 8, 5, 3})}, {torch::rand({3, 6, 6, 3})}}},
      {"spectral_norm_by_hand",
       "",
       [](People& m) {
         m.register_parameter("w", torch::rand({3, 4}));
         m.register_buffer("u", torch::ones({3}));
       },
       [](People& m, const std::vector<Tensor>& in) {
         Tensor u = m.at("u"), v;
         {
           const torch::NoGradGuard off;
           v = F::normalize(m.at("w").t().mv(u), F::NormalizeFuncOptions().dim(0));
           u.copy_(F::normalize(m.at("w").mv(v), F::NormalizeFuncOptions().dim(0)));
         }
         return in[0].matmul((m.at("w") / u.dot(m.at("w").mv(v))).t());
       },
       {{torch::rand({2, 4})}, {torch::rand({5, 4})}}},
      {"reparametrisation",
       "right",
       [](People& m) {
         m.add("encode", nn::Linear(6, 4));
         m.add("decode", nn::Linear(2, 6));
       },
       [](People& m, const std::vector<Tensor>& in) {
         const std::vector<Tensor> parts = m("encode", in[0].view({in[0].size(0), -1})).chunk(2, 1);
         const Tensor z = parts[0] + torch::randn_like(parts[1]) * torch::exp(0.5 * parts[1]);
         return torch::sigmoid(m("decode", z)).view_as(in[0]);
       },
       {{torch::rand({2, 2, 3})}, {torch::rand({5, 2, 3})}}},
      {"focal_loss",
       "right",
       [](People& m) { m.add("fc", nn::Linear(4, 3)); },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor p = torch::softmax(m("fc", in[0]), 1), hot = torch::one_hot(in[1], 3).to(p.dtype());
         const Tensor pt = (p * hot).sum(1);
         return (-0.25 * (1 - pt).pow(2) * pt.log()).sum() / in[0].size(0);
       },
       {{torch::rand({4, 4}), torch::tensor({0, 1, 2, 1})}, {torch::rand({2, 4}), torch::tensor({2, 2})}}},
      {"discriminator_in_training",
       "right",
       [](People& m) {
         m.add("conv1", nn::Conv2d(nn::Conv2dOptions(3, 4, 4).stride(2).padding(1).bias(false)));
         m.add("norm", nn::BatchNorm2d(4));
         m.add("conv2", nn::Conv2d(nn::Conv2dOptions(4, 1, 4).bias(false)));
       },
       [](People& m, const std::vector<Tensor>& in) {
         return torch::sigmoid(m("conv2", torch::leaky_relu(m("norm", m("conv1", in[0])), 0.2)))
             .view({-1, 1})
             .squeeze(1);
       },
       {{image(2, 3, 8, 8)}, {image(4, 3, 8, 8)}, {image(2, 3, 9, 9)}},
       true},
      {"patches_and_their_places",
       "right",
       [](People& m) { m.add("fc", nn::Linear(12, 4)); },
       [](People& m, const std::vector<Tensor>& in) {
         const Tensor x = in[0].unfold(2, 2, 2).unfold(3, 2, 2).permute({0, 2, 3, 1, 4, 5}).contiguous();
         const std::int64_t h = x.size(1), w = x.size(2);
         const Tensor rows = torch::linspace(0, 1, h).view({1, h, 1, 1}),
                      columns = torch::linspace(0, 1, w).view({1, 1, w, 1});
         return (m("fc", x.view({x.size(0), h, w, -1})) + rows + columns).flatten(1, 2);
       },
       {{image(2, 3, 6, 8)}, {image(1, 3, 4, 4)}, {image(1, 3, 7, 9)}}},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, PeopleProgram, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::people_programs_test
