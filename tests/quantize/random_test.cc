// Random networks of images: whatever stands between two layers, the kernels compute what the reference form does, and
// that is near the float program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <random>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/text/print.h>
#include "tests/quantize/programs.h"

namespace fx::random_test {

using testing::Samples;

/// Statements of a program, its weights, and the sizes of its values.
class Network {
 public:
  explicit Network(unsigned seed) : random_(seed) {
    torch::manual_seed(seed);
    values_.push_back({"x", {2, 4, 8, 8}});
    const int length = 3 + pick(6);
    for (int i = 0; i < length; ++i) (this->*kSteps[static_cast<std::size_t>(pick(std::size(kSteps)))])();
    text_ += "return (%" + values_.back().name;
    if (pick(2)) text_ += ", %" + values_[static_cast<std::size_t>(pick(values_.size()))].name;
    text_ += ",)";
  }

  std::shared_ptr<GraphModule> program() const { return testing::program_of(text_, "x", weights_); }
  const std::string& text() const { return text_; }

 private:
  struct Image {
    std::string name;
    std::vector<std::int64_t> sizes;
  };
  using Step = void (Network::*)();
  static const Step kSteps[16];

  template <typename Number>
  int pick(Number below) {
    return static_cast<int>(random_() % static_cast<unsigned long>(below));
  }
  std::string one_of(const std::vector<std::string>& all) { return all[static_cast<std::size_t>(pick(all.size()))]; }

  Image some() {
    return values_[static_cast<std::size_t>(pick(std::min<std::size_t>(values_.size(), 3))) +
                   (values_.size() > 3 ? values_.size() - 3 : 0)];
  }

  std::string weight(std::vector<std::int64_t> sizes) {
    const std::string name = "w" + std::to_string(weights_.size());
    double fan_in = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i) fan_in *= static_cast<double>(sizes[i]);
    weights_.emplace_back(name, torch::randn(sizes) / std::sqrt(fan_in));
    return "%" + name;
  }

  std::string fresh() { return "v" + std::to_string(count_++); }

  std::string emit(const std::string& call) {
    const std::string name = fresh();
    text_ += name + " = " + call + "\n";
    return name;
  }
  void made(const std::string& name, std::vector<std::int64_t> sizes) { values_.push_back({name, std::move(sizes)}); }

  std::string convolution(const Image& in, std::int64_t out, int kernel, const std::string& rest) {
    const std::string w = weight({out, in.sizes[1], kernel, kernel});
    return emit("aten::conv2d(%" + in.name + ", " + w + ", " + (pick(2) ? weight({out}) : "None") + rest + ")");
  }

  void layer() {
    const Image in = some();
    const std::int64_t out = 4 + 4 * pick(2);
    switch (pick(4)) {
      case 0: return made(convolution(in, out, 1, ""), {in.sizes[0], out, in.sizes[2], in.sizes[3]});
      case 1: return made(convolution(in, out, 3, ", padding=1"), {in.sizes[0], out, in.sizes[2], in.sizes[3]});
      case 2:
        return made(convolution(in, out, 3, ", [1, 1], [2, 2], [2, 2]"), {in.sizes[0], out, in.sizes[2], in.sizes[3]});
      default: {  // depthwise
        const std::string w = weight({in.sizes[1], 1, 3, 3});
        return made(
            emit("aten::conv2d(%" + in.name + ", " + w + ", None, 1, 1, 1, " + std::to_string(in.sizes[1]) + ")"),
            in.sizes);
      }
    }
  }

  void layer_and_activation() {
    layer();
    const Image in = values_.back();
    made(emit("aten::" + one_of({"relu", "relu_", "relu6", "hardswish", "hardswish_"}) + "(%" + in.name + ")"),
         in.sizes);
    // An operand that was written is not read again by others here; aliases are for `writes`.
    values_.erase(values_.end() - 2);
  }

  void activation() {
    const Image in = some();
    made(emit("aten::" +
              one_of({"relu", "sigmoid", "tanh", "gelu", "silu", "hardsigmoid", "neg", "elu", "celu", "leaky_relu",
                      "hardtanh", "detach", "clone", "contiguous"}) +
              "(%" + in.name + ")"),
         in.sizes);
  }

  void number() {
    const Image in = some();
    const std::string target = one_of({"aten::mul.Tensor", "aten::div.Tensor", "aten::add.Tensor", "aten::sub.Tensor",
                                       "operator.mul", "operator.truediv", "operator.add", "operator.sub"});
    std::string number = one_of({"0.5", "3", "0.3", "-0.25", "-2", "0"});
    if (number == "0" && target.find("div") != std::string::npos) number = "-7";
    made(emit(target + "(%" + in.name + ", " + number + ")"), in.sizes);
  }

  void residual() {
    const Image a = some();
    layer_like(a);
    const Image b = values_.back();
    made(emit("aten::" + one_of({"add.Tensor", "add_.Tensor", "mul.Tensor"}) + "(%" + b.name + ", %" + a.name + ")"),
         a.sizes);
    values_.erase(values_.end() - 2);
  }

  void layer_like(const Image& in) { made(convolution(in, in.sizes[1], 1, ""), in.sizes); }

  void concat() {
    const Image a = some();
    if (a.sizes[1] > 16) return;
    layer_like(a);
    const Image b = values_.back();
    const std::string target = one_of({"aten::cat", "torch.cat", "aten::concat"});
    std::vector<std::int64_t> sizes = a.sizes;
    sizes[1] *= 2;
    made(emit(target + "([%" + a.name + ", %" + b.name + "], " + one_of({"1", "-3"}) + ")"), sizes);
  }

  void stack() {
    const Image a = some();
    if (a.sizes[1] > 16) return;
    layer_like(a);
    const std::string both = emit("aten::stack([%" + a.name + ", %" + values_.back().name + "], 2)");
    std::vector<std::int64_t> sizes = a.sizes;
    sizes[1] *= 2;
    // What permute made is laid out otherwise, and a view of it would be refused.
    if (pick(2))
      return made(emit("aten::view(%" + emit("aten::contiguous(%" + both + ")") + ", " + text_of(sizes) + ")"), sizes);
    made(emit("aten::" +
              one_of({"flatten.using_ints(%" + both + ", 1, 2)", "reshape(%" + both + ", " + text_of(sizes) + ")"})),
         sizes);
  }

  void shuffle() {
    const Image in = some();
    const auto& s = in.sizes;
    const std::string halves = emit("aten::view(%" + in.name + ", " + text_of({s[0], 2, s[1] / 2, s[2], s[3]}) + ")");
    const std::string turned = emit("aten::transpose.int(%" + halves + ", 1, 2)");
    if (pick(2)) return made(emit("aten::reshape(%" + turned + ", " + text_of(s) + ")"), s);
    made(emit("aten::view(%" + emit("aten::contiguous(%" + turned + ")") + ", " + text_of(s) + ")"), s);
  }

  void parts() {
    const Image in = some();
    const std::string call =
        one_of({"aten::chunk(%" + in.name + ", 2, 1)",
                "aten::split.Tensor(%" + in.name + ", " + std::to_string(in.sizes[1] / 2) + ", 1)"});
    const std::string list = emit(call);
    const std::string a = emit("operator.getitem(%" + list + ", 0)"), b = emit("operator.getitem(%" + list + ", 1)");
    std::vector<std::int64_t> sizes = in.sizes;
    sizes[1] /= 2;
    if (sizes[1] < 2) return;
    made(b, sizes);
    if (pick(2)) made(emit("aten::cat([%" + b + ", %" + a + "], 1)"), in.sizes);
  }

  void pooling() {
    const Image in = some();
    if (in.sizes[2] < 4 || in.sizes[2] % 2 || in.sizes[3] % 2) return;
    std::vector<std::int64_t> sizes = in.sizes;
    sizes[2] /= 2, sizes[3] /= 2;
    made(emit("aten::" + one_of({"max_pool2d(%" + in.name + ", [2, 2])",
                                 "max_pool2d(%" + in.name + ", [3, 3], [2, 2], [1, 1], [1, 1], False)",
                                 "avg_pool2d(%" + in.name + ", [2, 2])",
                                 "avg_pool2d(%" + in.name + ", [3, 3], [2, 2], [1, 1], False, False)",
                                 "adaptive_avg_pool2d(%" + in.name + ", " + text_of({sizes[2], sizes[3]}) + ")"})),
         sizes);
  }

  void resize() {
    const Image in = some();
    if (in.sizes[2] > 8) return;
    std::vector<std::int64_t> sizes = in.sizes;
    sizes[2] *= 2, sizes[3] *= 2;
    const std::string to = text_of({sizes[2], sizes[3]});
    made(emit("aten::" + one_of({"upsample_nearest2d(%" + in.name + ", " + to + ")",
                                 "upsample_bilinear2d(%" + in.name + ", " + to + ", False)",
                                 "upsample_bicubic2d(%" + in.name + ", " + to + ", False)",
                                 "repeat(%" + in.name + ", [1, 1, 2, 2])"})),
         sizes);
  }

  void padding() {
    const Image in = some();
    std::vector<std::int64_t> sizes = in.sizes;
    sizes[2] += 2, sizes[3] += 2;
    made(emit("aten::" + one_of({"constant_pad_nd(%" + in.name + ", [1, 1, 1, 1], 0)",
                                 "constant_pad_nd(%" + in.name + ", [1, 1, 1, 1], -0.7)",
                                 "reflection_pad2d(%" + in.name + ", [1, 1, 1, 1])",
                                 "pad(%" + in.name + ", [1, 1, 1, 1], 'reflect')",
                                 "pad(%" + in.name + ", [1, 1, 1, 1], 'circular')",
                                 "replication_pad2d(%" + in.name + ", [1, 1, 1, 1])"})),
         sizes);
  }

  void gate() {
    const Image in = some();
    const std::string pooled = emit(one_of(
        {"aten::adaptive_avg_pool2d(%" + in.name + ", [1, 1])", "aten::mean.dim(%" + in.name + ", [2, 3], True)"}));
    const std::string squeezed = convolution({pooled, {in.sizes[0], in.sizes[1], 1, 1}}, in.sizes[1], 1, "");
    const std::string gate = emit("aten::" + one_of({"sigmoid", "hardsigmoid"}) + "(%" + squeezed + ")");
    made(emit("aten::mul.Tensor(%" + in.name + ", %" + gate + ")"), in.sizes);
  }

  void tokens() {
    const Image in = some();
    const std::int64_t c = in.sizes[1];
    const std::string last = emit("aten::permute(%" + in.name + ", [0, 2, 3, 1])");
    std::string value = last;
    switch (pick(4)) {
      case 0: value = emit("aten::linear(%" + last + ", " + weight({c, c}) + ", " + weight({c}) + ")"); break;
      case 1:
        value = emit("aten::layer_norm(%" + last + ", [" + std::to_string(c) + "], " + weight({c}) + ", " +
                     weight({c}) + ")");
        break;
      case 2: value = emit("aten::softmax.int(%" + last + ", -1)"); break;
      default: value = emit("aten::flip(%" + last + ", [1])");
    }
    made(emit("aten::permute(%" + value + ", [0, 3, 1, 2])"), in.sizes);
  }

  void writes() {
    const Image in = some();
    const std::string own = emit("aten::clone(%" + in.name + ", memory_format=torch.contiguous_format)");
    const std::string part =
        emit(one_of({"aten::slice.Tensor(%" + own + ", 1, 0, 1)", "aten::select.int(%" + own + ", 1, 0)",
                     "aten::view(%" + own + ", [-1])", "aten::detach(%" + own + ")"}));
    if (pick(2)) layer_like({own, in.sizes});
    emit(one_of({"aten::mul_.Scalar(%" + part + ", 0.5)", "aten::relu_(%" + part + ")", "aten::zero_(%" + part + ")"}));
    made(own, in.sizes);
  }

  static std::string text_of(const std::vector<std::int64_t>& sizes) {
    std::string text = "[";
    for (const std::int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + "]";
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<std::pair<std::string, torch::Tensor>> weights_;
  std::vector<Image> values_;
  int count_ = 0;
};

const Network::Step Network::kSteps[16] = {&Network::layer,      &Network::layer_and_activation,
                                           &Network::activation, &Network::number,
                                           &Network::residual,   &Network::concat,
                                           &Network::stack,      &Network::shuffle,
                                           &Network::parts,      &Network::pooling,
                                           &Network::resize,     &Network::padding,
                                           &Network::gate,       &Network::tokens,
                                           &Network::writes,     &Network::layer};

void check(unsigned seed) {
  const Network network(seed);
  const auto gm = network.program();
  Samples samples;
  for (int i = 0; i < 3; ++i) samples.push_back({torch::randn({2, 4, 8, 8})});
  const auto prepared = testing::calibrated(*gm, samples);
  const auto reference = convert(*prepared, {.backend = QuantBackend::reference});
  const double quantum = testing::largest_quantum(*reference);
  for (const auto& inputs : samples) {
    const c10::IValue expected = reference->run(inputs);
    EXPECT_LT(testing::largest_difference(expected, testing::run_rounded(*prepared, inputs)), 2.1 * quantum + 1e-4)
        << print_graph(reference->graph());
  }
  const double near = compare_outputs(*gm, *reference, samples).output.sqnr_db;
  EXPECT_GT(near, 12) << print_graph(reference->graph());
  for (const QuantBackend backend : available_quant_backends()) {
    const auto lowered = convert(*prepared, {.backend = backend});
    EXPECT_GE(compare_outputs(*gm, *lowered, samples).output.sqnr_db, near - 6) << to_string(backend) << "\n"
                                                                                << print_graph(lowered->graph());
    EXPECT_GT(compare_outputs(*reference, *lowered, samples).output.sqnr_db, 15) << to_string(backend) << "\n"
                                                                                 << print_graph(lowered->graph());
  }
}

TEST(RandomNetworks, AreTheSameInAllForms) {
  const torch::NoGradGuard no_grad;
  const char* count = std::getenv("FXGRAPH_RANDOM_NETWORKS");
  const char* start = std::getenv("FXGRAPH_RANDOM_SEED");
  const unsigned first = start ? static_cast<unsigned>(std::atoi(start)) : 1;
  const unsigned programs = count ? static_cast<unsigned>(std::atoi(count)) : 12;
  for (unsigned seed = first; seed < first + programs; ++seed) {
    SCOPED_TRACE("FXGRAPH_RANDOM_SEED=" + std::to_string(seed) + " FXGRAPH_RANDOM_NETWORKS=1\n" + Network(seed).text());
    try {
      check(seed);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure() && !start) return;
  }
}

}  // namespace fx::random_test
