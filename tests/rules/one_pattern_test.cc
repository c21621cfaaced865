// One pattern, one answer: a model traced, traced at any size, saved as TorchScript and as an exported program, and
// written out as text.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <memory>

#include <fxgraph/fx.h>
#include "tests/support/scratch_folder.h"

namespace fx::one_pattern_test {

namespace nn = torch::nn;

struct Mlp : nn::Module {
  nn::Linear a{8, 16}, b{16, 16}, c{16, 4};
  nn::ReLU act;
  Mlp() {
    register_module("a", a);
    register_module("b", b);
    register_module("c", c);
    register_module("act", act);
  }
  torch::Tensor forward(torch::Tensor x) { return c(act(b(torch::relu(a(x))))); }
};

struct Attention : nn::Module {
  nn::Linear q{16, 16}, k{16, 16}, v{16, 16}, o{16, 16}, f1{16, 32}, f2{32, 16};
  nn::LayerNorm n1{nn::LayerNormOptions({16})}, n2{nn::LayerNormOptions({16})};
  nn::Dropout drop{0.1};
  Attention() {
    for (const auto& [name, linear] : {std::pair{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"f1", f1}, {"f2", f2}})
      register_module(name, linear);
    register_module("n1", n1);
    register_module("n2", n2);
    register_module("drop", drop);
  }
  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor h = n1(x);
    const torch::Tensor scores = torch::matmul(q(h), k(h).transpose(-2, -1)) / 4.0;
    x = x + o(torch::matmul(torch::softmax(scores, -1), v(h)));
    h = n2(x);
    return x + drop(f2(torch::gelu(f1(h))));
  }
};

struct Mobile : nn::Module {
  nn::Conv2d e{nn::Conv2dOptions(4, 16, 1)}, d{nn::Conv2dOptions(16, 16, 3).padding(1).groups(16)},
      p{nn::Conv2dOptions(16, 4, 1)};
  nn::BatchNorm2d bn{16};
  nn::ReLU6 r6{nn::ReLU6Options().inplace(true)};
  Mobile() {
    register_module("e", e);
    register_module("d", d);
    register_module("p", p);
    register_module("bn", bn);
    register_module("r6", r6);
  }
  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor h = e(x);
    torch::Tensor y = r6(bn(d(torch::relu_(h))));
    const torch::Tensor gate = torch::sigmoid(y.mean({2, 3}, true));
    y = p(y * gate);
    return y * torch::clamp(y + 3, 0, 6) / 6 + x;
  }
};

struct Swish : nn::Module {
  nn::Linear up{8, 16}, gate{8, 16}, down{16, 8};
  torch::Tensor weight = register_parameter("weight", torch::ones({8}));
  Swish() {
    register_module("up", up);
    register_module("gate", gate);
    register_module("down", down);
  }
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor h = x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-6) * weight;
    return x + down(torch::silu(gate(h)) * up(h));
  }
};

struct Model {
  const char* name;
  std::shared_ptr<nn::Module> module;
  std::function<std::shared_ptr<GraphModule>(const TraceOptions&)> trace;
  std::map<std::string, std::size_t> counts;  ///< of patterns that are there at all
};

template <typename Net>
Model model(const char* name, const torch::Tensor& x, std::map<std::string, std::size_t> counts) {
  auto net = std::make_shared<Net>();
  net->eval();
  return {name, net, [net, x](const TraceOptions& options) { return symbolic_trace(net, {x}, options); },
          std::move(counts)};
}

const std::map<std::string, const char*>& patterns() {
  static const std::map<std::string, const char*> kPatterns = {
      {"linear-relu", "aten::relu(aten::linear(x, w, b))"},
      {"linear", "aten::linear(x, w, ...)"},
      {"conv2d", "aten::conv2d(x, w, ...)"},
      {"conv-bn", "aten::batch_norm(aten::conv2d(x, w, ...), ...)"},
      {"attention",
       "aten::matmul(aten::softmax(aten::div(aten::matmul(q, aten::transpose(k, -2, -1)), s: literal), "
       "-1), v)"},
      {"layer-norm", "aten::layer_norm(x, n, w, b)"},
      {"gelu", "aten::gelu(x)"},
      {"relu6", "aten::relu6(x)"},
      {"relu", "aten::relu(x)"},
      {"hardswish", "aten::hardswish(x)"},
      {"squeeze-excite", "aten::mul(y, aten::sigmoid(aten::mean(y, ...)))"},
      {"silu", "aten::silu(x)"},
      {"gated-unit", "aten::mul(aten::silu(a), b)"},
      {"rms-norm", "aten::mul(x, aten::rsqrt(aten::add(aten::mean(aten::pow(x, 2), ...), e: literal)))"},
      {"embedding", "aten::embedding(w, i)"},
      {"residual", "aten::add.Tensor(x: node, aten::linear(...))"}};
  return kPatterns;
}

std::vector<Model> models() {
  return {model<Mlp>("mlp", torch::rand({2, 8}), {{"linear-relu", 2}, {"linear", 3}, {"relu", 2}}),
          model<Attention>("attention", torch::rand({2, 5, 16}),
                           {{"linear", 6}, {"attention", 1}, {"layer-norm", 2}, {"gelu", 1}, {"residual", 1}}),
          model<Mobile>(
              "mobile", torch::rand({2, 4, 8, 8}),
              {{"conv2d", 3}, {"conv-bn", 1}, {"relu6", 1}, {"relu", 1}, {"hardswish", 1}, {"squeeze-excite", 1}}),
          model<Swish>("swish", torch::rand({2, 8}),
                       {{"linear", 3}, {"silu", 1}, {"gated-unit", 1}, {"rms-norm", 1}, {"residual", 1}})};
}

/// The program in every form that we write.
std::map<std::string, std::shared_ptr<GraphModule>> forms_of(const Model& model, const std::string& folder) {
  std::map<std::string, std::shared_ptr<GraphModule>> forms;
  forms["traced"] = model.trace({});
  TraceOptions fixed;
  fixed.sizes = Sizes::fixed;
  forms["traced at fixed sizes"] = model.trace(fixed);
  for (const char* ending : {".pt", ".pt2"}) {
    const std::string file = folder + "/" + model.name + ending;
    forms["traced"]->save(file);
    forms[ending] = load(file);
  }
  auto flat = std::make_shared<GraphModule>(*forms["traced"], inline_modules(*forms["traced"]));
  forms["written out"] = flat;
  forms["text"] = std::make_shared<GraphModule>(*forms["traced"], parse_graph(print_graph(flat->graph())));
  return forms;
}

TEST(OnePattern, IsFoundAsOftenInEveryForm) {
  const testing::ScratchFolder folder;
  std::size_t cells = 0;
  for (const Model& model : models()) {
    for (const auto& [form, program] : forms_of(model, folder.path().string())) {
      for (const auto& [name, text] : patterns()) {
        const auto count = model.counts.find(name);
        const std::size_t wanted = count == model.counts.end() ? 0 : count->second;
        FindOptions options;
        options.definitions = true;
        EXPECT_EQ(find(*program, text, options).size(), wanted)
            << name << " in " << model.name << ", " << form << "\n"
            << print_graph(program->graph()) << near_misses(program->graph(), text, options);
        ++cells;
      }
    }
  }
  EXPECT_GT(cells, 350u);
}

TEST(OnePattern, AsThePlainSearchFindsWhatTheModelSays) {
  const testing::ScratchFolder folder;
  const std::vector<Model> all = models();
  for (const auto& [form, program] : forms_of(all[0], folder.path().string())) {
    EXPECT_EQ(find(*program, "aten::relu(aten::linear(x, w, b))").size(), 2u) << form;
    EXPECT_EQ(find(*program, "aten::clamp_min(x, 0)").size(), 0u) << form;
  }
}

}  // namespace fx::one_pattern_test
