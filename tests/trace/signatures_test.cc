// The signatures that people write, and what operators may return.
#include <map>
#include <sstream>

#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/retrace/wrap.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::signatures_test {

using ::testing::HasSubstr;
using testing::same_value;
using torch::Tensor;

struct State {
  Tensor h;
  Tensor c;
};
struct Batch {
  Tensor tokens;
  State state;
  double scale = 1;
  std::vector<Tensor> more;
};
class Opaque {
 public:
  Opaque() = default;
  explicit Opaque(Tensor x) : x_(std::move(x)) {}
  const Tensor& x() const { return x_; }
  Tensor& writable() { return x_; }

 private:
  Tensor x_;
};

}  // namespace fx::signatures_test

template <>
struct fx::Fields<fx::signatures_test::Opaque> {
  static auto tie(signatures_test::Opaque& opaque) { return std::tie(opaque.writable()); }
};

namespace fx::signatures_test {

c10::IValue tuple(std::vector<c10::IValue> parts) { return c10::ivalue::Tuple::create(std::move(parts)); }

TEST(Signatures, Structs) {
  const auto step = [](const Batch& batch) -> State {
    return {batch.tokens * batch.scale + batch.state.h, batch.state.c - batch.more.at(1)};
  };
  const auto x = [] { return torch::rand({2, 3}); };
  const Batch batch{x(), {x(), x()}, 0.5, {x(), x()}};
  const auto gm = symbolic_trace(step, {example(batch)});
  gm->graph().lint();
  const Batch other{x(), {x(), x()}, 0.5, {x(), x()}};
  const State expected = step(other);
  EXPECT_TRUE(same_value(gm->run({example(other)}), tuple({expected.h, expected.c})));
  EXPECT_FX_ERROR(gm->run({example(Batch{x(), {x(), x()}, 0.25, {x(), x()}})}), execution, HasSubstr("specialized"));
  EXPECT_FX_ERROR(gm->run({example(Batch{x(), {x(), x()}, 0.5, {x(), x(), x()}})}), execution, HasSubstr("elements"));
  const auto opaque = symbolic_trace([](const Opaque& o) { return Opaque(o.x() + 1); }, {example(Opaque(x()))});
  const Tensor y = x();
  EXPECT_TRUE(same_value(opaque->run({example(Opaque(y))}), tuple({y + 1})));
}

TEST(Signatures, PackedSequences) {
  namespace rnn = torch::nn::utils::rnn;
  const auto packed = [](std::vector<std::int64_t> lengths) {
    return rnn::pack_padded_sequence(torch::rand({4, 2, 3}), torch::tensor(lengths), false, false);
  };
  const auto twice = [](const rnn::PackedSequence& p) { return p.data() * 2; };
  const auto gm = symbolic_trace(twice, {example(packed({4, 2}))});
  const auto other = packed({3, 1});
  EXPECT_TRUE(same_value(gm->run({example(other)}), other.data() * 2));
  EXPECT_FX_ERROR(symbolic_trace(twice, {c10::IValue()}), invalid_argument, HasSubstr("None"));
  const auto net = std::make_shared<torch::nn::LSTMImpl>(3, 4);
  EXPECT_FX_ERROR(
      symbolic_trace(
          net, [&net](const rnn::PackedSequence& p) { return std::get<0>(net->forward_with_packed_input(p)).data(); },
          {example(packed({4, 2}))}),
      trace, HasSubstr("item()"));
}

struct ConstForward : torch::nn::Module {
  Tensor w = register_parameter("w", torch::rand({3}));
  Tensor forward(const Tensor& x, double by = 3, bool negate = false) const { return negate ? -(x * w) : x * w * by; }
};
struct ByReference : torch::nn::Module {
  Tensor forward(Tensor& x, Tensor&& y) { return x.add_(1) + y; }
};
struct ToldDefaults : torch::nn::Module {
  Tensor forward(Tensor x, double by, int times) { return x * by * times; }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(0.5)}, {2, torch::nn::AnyValue(4)})
};
struct NoneDefault : torch::nn::Module {
  Tensor forward(Tensor x, Tensor mask = {}, c10::optional<Tensor> bias = {}) {
    if (mask.defined()) x = x * mask;
    return bias ? x + *bias : x * 2;
  }
};
template <typename Number, int kTimes>
struct Templated : torch::nn::Module {
  Tensor w = register_parameter("w", torch::rand({3}));
  Tensor forward(Tensor x) { return x * w * static_cast<Number>(kTimes); }
};

TEST(Signatures, ConstForwardWithDefaults) {
  const auto net = std::make_shared<ConstForward>();
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_value(symbolic_trace(net, {torch::rand({2, 3})})->forward(x), net->forward(x), 1e-6));
  EXPECT_TRUE(same_value(symbolic_trace(net)->forward(x), net->forward(x), 1e-6));
  EXPECT_TRUE(same_value(symbolic_trace(net, {x, 2.0})->forward(x), net->forward(x, 2.0), 1e-6));
  EXPECT_TRUE(same_value(symbolic_trace(net, {x, 2.0, true})->forward(x), net->forward(x, 2.0, true), 1e-6));
  EXPECT_FX_ERROR(symbolic_trace(net, {x, 2.0})->forward(x, 3.0), execution, HasSubstr("specialized"));
  const std::shared_ptr<const ConstForward> constant = net;
  EXPECT_TRUE(same_value(symbolic_trace(constant, {x})->forward(x), net->forward(x), 1e-6));
}

TEST(Signatures, DefaultsOfEveryKind) {
  const Tensor x = torch::rand({2, 3}), y = torch::rand({2, 3});
  const auto told = std::make_shared<ToldDefaults>();
  EXPECT_TRUE(same_value(symbolic_trace(told, {x, 2.0, 4})->forward(x), told->forward(x, 2.0, 4)));
  // Only AnyModule knows of these: forward cannot be called without its values.
  EXPECT_FX_ERROR(symbolic_trace(told, {x}), invalid_argument, HasSubstr("give its value among the example inputs"));
  const auto none = std::make_shared<NoneDefault>();
  EXPECT_TRUE(same_value(symbolic_trace(none, {x})->forward(x), none->forward(x)));
  EXPECT_TRUE(same_value(symbolic_trace(none, {x, y})->forward(x, y), none->forward(x, y)));
  EXPECT_TRUE(
      same_value(symbolic_trace(none, {x, c10::IValue(), y})->run({x, c10::IValue(), y}), none->forward(x, {}, y)));
  EXPECT_FX_ERROR(symbolic_trace(none, {x, c10::IValue(), y})->run({x, x, y}), execution, HasSubstr("None"));
  EXPECT_FX_ERROR(symbolic_trace(none, {x})->forward(x, y), invalid_argument, HasSubstr("takes 1 inputs"));
}

TEST(Signatures, References) {
  const auto net = std::make_shared<ByReference>();
  const auto gm = symbolic_trace(net, {torch::rand({3}), torch::rand({3})});
  Tensor x = torch::rand({3});
  const Tensor y = torch::rand({3}), expected = x + 1 + y;
  EXPECT_TRUE(same_value(gm->forward(x, y), expected));
}

// A graph has no caller's variables; one that is assigned to is refused, unless it is a tensor that was taken by
// reference for the sake of its variable.
TEST(Signatures, AssignedReferences) {
  const Tensor x = torch::rand({3});
  const auto list = [](Tensor x, std::vector<Tensor>& past) {
    past[0] = torch::cat({past[0], x});
    return past[0].sum();
  };
  const auto longer = [](Tensor x, std::vector<Tensor>& past) {
    past.push_back(x * 2);
    return x.sum();
  };
  const auto dict = [](Tensor x, std::map<std::string, Tensor>& state) {
    state["h"] = torch::tanh(state["h"] + x);
    return state["h"];
  };
  const auto pair = [](Tensor x, std::tuple<Tensor, Tensor>& state) {
    std::get<1>(state) = x + std::get<0>(state);
    return x.sum();
  };
  const auto number = [](Tensor x, std::int64_t& step) { return x * static_cast<double>(++step); };
  const auto nothing = [](Tensor x, Tensor& h) { h = torch::tanh(h + x); };
  c10::Dict<std::string, Tensor> by_name;
  by_name.insert("h", x);
  const c10::IValue both = c10::IValue(std::make_tuple(x, x));
  const c10::IValue one = c10::IValue(std::vector<Tensor>{x});
  EXPECT_FX_ERROR(symbolic_trace(list, {x, one}), trace, HasSubstr("assigns to its argument 2"));
  EXPECT_FX_ERROR(symbolic_trace(longer, {x, one}), trace, HasSubstr("assigns to its argument 2"));
  EXPECT_FX_ERROR(symbolic_trace(dict, {x, by_name}), trace, HasSubstr("assigns to its argument 2"));
  EXPECT_FX_ERROR(symbolic_trace(pair, {x, both}), trace, HasSubstr("assigns to its argument 2"));
  EXPECT_FX_ERROR(symbolic_trace(number, {x, 3}), trace, HasSubstr("assigns to its argument 2"));
  EXPECT_FX_ERROR(symbolic_trace(nothing, {x, x}), trace, HasSubstr("assigns to its argument 2"));

  const auto variable = [](Tensor& x) {
    x = x.relu();
    return x * 2;
  };
  Tensor given = torch::rand({3}) - 0.5;
  const Tensor expected = given.relu() * 2;
  EXPECT_TRUE(same_value(symbolic_trace(variable, {x})->forward(given), expected));
  const auto written = [](Tensor x, std::vector<Tensor>& past) {
    past[0].add_(x);
    return past[0].sum();
  };
  const auto gm = symbolic_trace(written, {x, one});
  Tensor past = torch::rand({3});
  const Tensor sum = (past + x).sum();
  EXPECT_TRUE(same_value(gm->run({x, std::vector<Tensor>{past}}), sum, 1e-6));
}

TEST(Signatures, ModulesOnTheStack) {
  ConstForward net;
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_value(symbolic_trace(net, {x})->forward(x), net.forward(x), 1e-6));
  const ConstForward constant;
  EXPECT_TRUE(same_value(symbolic_trace(constant, {x})->forward(x), constant.forward(x), 1e-6));
}

TEST(Signatures, FunctionsWithARootKeepItsNames) {
  const auto net = std::make_shared<ConstForward>();
  const auto gm = symbolic_trace(net, [&net](Tensor x) { return net->forward(x) + net->w; }, {torch::rand({2, 3})});
  EXPECT_TRUE(gm->is_parameter("w"));
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_value(gm->forward(x), net->forward(x) + net->w, 1e-6));
}

TEST(Signatures, TemplatesHaveNamesThatCanBeRead) {
  const auto net = std::make_shared<Templated<double, 2>>();
  const auto gm = symbolic_trace(net, {torch::rand({3})});
  EXPECT_EQ(gm->class_name(), "Templated_double_2");
  const testing::ScratchFolder scratch;
  const std::string file = scratch / "templated.pt";
  fx::save(*gm, file);
  const Tensor x = torch::rand({3});
  EXPECT_TRUE(same_value(fx::load(file)->forward(x), net->forward(x), 1e-6));
}

TEST(Signatures, ListsAndDictsOfOtherLengthsAreRefused) {
  const auto x = [] { return torch::rand({2}); };
  const auto sum = [](std::vector<Tensor> list) { return torch::stack(list).sum(0); };
  const auto gm = symbolic_trace(sum, {std::vector<Tensor>{x(), x()}});
  EXPECT_EQ(gm->run({std::vector<Tensor>{x(), x()}}).toTensor().dim(), 1);
  EXPECT_FX_ERROR(gm->run({std::vector<Tensor>{x(), x(), x()}}), execution, HasSubstr("2 elements"));
  c10::Dict<std::string, Tensor> two, three;
  for (const char* key : {"a", "b"}) two.insert(key, x());
  for (const char* key : {"a", "b", "c"}) three.insert(key, x());
  const auto of_dict = symbolic_trace(
      [](std::map<std::string, Tensor> by_name) {
        Tensor all = torch::zeros({2});
        for (const auto& [key, value] : by_name) all = all + value;
        return all;
      },
      {two});
  EXPECT_TRUE(same_value(of_dict->run({two}), two.at("a") + two.at("b"), 1e-6));
  EXPECT_FX_ERROR(of_dict->run({three}), execution, HasSubstr("2 elements"));
}

// ── What operators return
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(OperatorResults, NumbersAreComputedOrRefused) {
  static const auto count = fx::wrap("fxgraph_honest::count", [](const Tensor& x) { return x.size(0) * 10; });
  static const auto peak = fx::wrap("fxgraph_honest::peak", [](const Tensor& x) { return x.max().item<double>(); });
  static const auto both = fx::wrap("fxgraph_honest::both", [](const Tensor& x) -> std::tuple<Tensor, std::int64_t> {
    return {x * 2, x.sum().item<std::int64_t>()};
  });
  const Tensor x = torch::rand({3});
  const auto gm = symbolic_trace([](Tensor x) { return x * count(x); }, {x});
  EXPECT_TRUE(same_value(gm->forward(x), x * 30, 1e-6));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * peak(x); }, {x}), trace, HasSubstr("peak()"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * std::get<1>(both(x)); }), trace, HasSubstr("both()"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * std::get<1>(both(x)); }, {x}), trace, HasSubstr("both()"));
}

TEST(OperatorResults, OtherLayoutsAreRecorded) {
  const Tensor x = torch::rand({2, 3});
  const auto sparse = [](Tensor x) { return x.to_sparse().to_dense() + 1; };
  EXPECT_TRUE(same_value(symbolic_trace(sparse, {x})->forward(x), sparse(x)));
  const auto product = [](Tensor x) { return torch::mm(x.relu().to_sparse(), torch::ones({3, 2})); };
  EXPECT_TRUE(same_value(symbolic_trace(product, {x})->forward(x), product(x), 1e-6));
  const auto quantized = [](Tensor x) { return torch::quantize_per_tensor(x, 0.1, 5, torch::kQUInt8).dequantize(); };
  EXPECT_TRUE(same_value(symbolic_trace(quantized, {x})->forward(x), quantized(x)));
  const auto fourier = [](Tensor x) {
    return torch::abs(torch::fft::fft(x)) + torch::view_as_real(torch::fft::rfft(x)).sum();
  };
  EXPECT_TRUE(same_value(symbolic_trace(fourier, {x})->forward(x), fourier(x), 1e-6));
  const auto complex = [](Tensor x) { return torch::complex(x, x * 2).conj() * c10::complex<double>(0, 1); };
  EXPECT_TRUE(same_value(symbolic_trace(complex, {x})->forward(x), complex(x), 1e-6));
}

TEST(OperatorResults, ShapesThatDependOnData) {
  const Tensor x = torch::tensor({0, 2, 1, 0, 3}), y = torch::tensor({4, 0, 4, 4, 0});
  const std::vector<std::pair<const char*, std::function<Tensor(Tensor)>>> programs = {
      {"nonzero", [](Tensor t) { return torch::nonzero(t).sum(); }},
      {"argwhere", [](Tensor t) { return torch::argwhere(t) * 2; }},
      {"masked_select", [](Tensor t) { return torch::masked_select(t, t > 0) * 2; }},
      {"mask", [](Tensor t) { return t.index({t > 0}) * 2; }},
      {"one_hot", [](Tensor t) { return torch::one_hot(t) * 2; }},
      {"bincount", [](Tensor t) { return torch::bincount(t) * 2; }},
      {"unique", [](Tensor t) { return std::get<0>(torch::_unique2(t)) * 2; }},
      {"repeat", [](Tensor t) { return torch::repeat_interleave(t, t) * 2; }},
      {"where", [](Tensor t) { return torch::where(t > 1)[0] * 2; }},
      {"consecutive", [](Tensor t) { return std::get<0>(torch::unique_consecutive(t)) + 1; }},
  };
  for (const auto& [name, program] : programs) {
    const auto gm = symbolic_trace(program, {x});
    EXPECT_TRUE(same_value(gm->forward(x), program(x))) << name;
    EXPECT_TRUE(same_value(gm->forward(y), program(y))) << name;
  }
  EXPECT_FX_ERROR(symbolic_trace([](Tensor t) { return t * torch::one_hot(t).size(1); }, {x}), trace,
                  HasSubstr("one_hot"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor t) { return t * torch::nonzero(t).size(0); }, {x}), trace,
                  HasSubstr("nonzero"));
}

TEST(Signatures, WhatIsNoProgramIsRefused) {
  Tensor (*const no_function)(Tensor) = nullptr;
  EXPECT_FX_ERROR(symbolic_trace(std::shared_ptr<ConstForward>()), trace, HasSubstr("no program to trace"));
  EXPECT_FX_ERROR(symbolic_trace(no_function), trace, HasSubstr("no program to trace"));
  EXPECT_FX_ERROR(symbolic_trace(std::function<Tensor(Tensor)>()), trace, HasSubstr("no program to trace"));
  EXPECT_FX_ERROR(symbolic_trace(torch::nn::Linear(nullptr)), trace, HasSubstr("no program to trace"));
}

TEST(RegisteredModules, TakeConstForwardsAndTrueDefaults) {
  register_module_type<ConstForward>("honest.ConstForward");
  const auto net = std::make_shared<ConstForward>();
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_module("net", {x}));
  GraphModule gm({{"net", net}}, std::move(graph));
  const Tensor value = torch::rand({2, 3});
  EXPECT_TRUE(same_value(gm.forward(value), net->forward(value)));
}

}  // namespace fx::signatures_test
