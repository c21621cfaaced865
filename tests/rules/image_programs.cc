#include "tests/rules/image_programs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace fx::testing {

namespace {

/// Image networks with everything that stands in a lowering's way: writes to inputs, weights, views and results, values
/// used twice, strides that are asked for, sizes that leave a choice of layout.
class RandomImageProgram {
 public:
  explicit RandomImageProgram(std::uint64_t seed) : random_(seed) {}

  std::shared_ptr<GraphModule> make(std::size_t operators) {
    values_ = {{&graph_.placeholder("x"), 4, 9, 7}};
    for (std::size_t i = 0; i < operators; ++i) step();
    std::vector<Argument> results = {*values_.back().node, *values_[below(values_.size())].node};
    graph_.output(Argument::tuple(results));
    return std::make_shared<GraphModule>(attributes_, std::move(graph_));
  }

 private:
  struct Value {
    Node* node;
    std::int64_t channels, height, width;
  };

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  std::int64_t one_of(std::initializer_list<std::int64_t> list) { return list.begin()[below(list.size())]; }
  Value pick() {
    const std::size_t back = below(4) ? 1 : std::min<std::size_t>(values_.size(), 4);
    return values_[values_.size() - 1 - below(back)];
  }
  static Argument pair(std::int64_t a, std::int64_t b) { return Argument::list(std::vector<Argument>{a, b}); }
  Node& call(std::string_view target, std::vector<Argument> args) { return graph_.call_function(target, args); }
  Node& attribute(at::Tensor tensor) {
    attributes_.emplace_back("a" + std::to_string(attributes_.size()), std::move(tensor));
    return graph_.get_attr(attributes_.back().first);
  }

  void step() {
    constexpr std::array kUnary = {"aten::relu",    "aten::relu_",      "aten::silu",      "aten::hardswish_",
                                   "aten::sigmoid", "aten::relu6",      "aten::hardswish", "aten::tanh_",
                                   "aten::clone",   "aten::contiguous", "aten::elu_",      "aten::gelu"};
    Value v = pick();
    switch (below(15)) {
      case 0:
      case 1:
      case 2:
      case 3: return convolution(v);
      case 4:
      case 5: v.node = &call(kUnary[below(kUnary.size())], {*v.node}); break;
      case 6: v.node = &call(below(2) ? "aten::hardtanh" : "aten::clamp_", {*v.node, -0.5, 2.0}); break;
      case 7: v.node = &norm(v); break;
      case 8: {  // the residual, sometimes written over
        const Value other = pick();
        if (other.channels != v.channels || other.height != v.height || other.width != v.width) return;
        v.node = &call(below(2) ? "aten::add.Tensor" : "aten::add_.Tensor", {*v.node, *other.node});
        break;
      }
      case 9: {
        const Value other = pick();
        if (other.height != v.height || other.width != v.width) return;
        v.node = &call("aten::cat", {Argument::list(std::vector<Argument>{*v.node, *other.node}), 1});
        v.channels += other.channels;
        break;
      }
      case 10: {
        if (v.height < 3 || v.width < 3) return;
        v.node = below(2) ? &call("aten::max_pool2d", {*v.node, pair(3, 3), pair(1, 1), pair(1, 1)})
                          : &call("aten::avg_pool2d", {*v.node, pair(3, 3), pair(1, 1), pair(1, 1)});
        break;
      }
      case 11: {  // squeeze and excite
        Node& mean = call("aten::adaptive_avg_pool2d", {*v.node, pair(1, 1)});
        v.node = &call(below(2) ? "aten::mul.Tensor" : "aten::mul_.Tensor", {*v.node, call("aten::sigmoid", {mean})});
        break;
      }
      case 12: {  // a view that is written: the value behind it changes
        if (v.channels < 2) return;
        Node& view = call("aten::slice.Tensor", {*v.node, 1, 1, INT64_MAX, 1});
        if (below(2)) {
          call("aten::mul_.Scalar", {view, 0.5});
        } else {
          v.node = &view;
          v.channels -= 1;
        }
        break;
      }
      case 13: {  // a view of something larger: in a batch of one its strides need not follow from its sizes
        Node& pixels = call("aten::permute", {*v.node, Argument::list({0, 2, 3, 1})});
        Node& two = call("aten::stack", {Argument::list({Argument(pixels), Argument(pixels)}), 1});
        v.node = &call("aten::permute", {call("aten::select.int", {two, 1, 1}), Argument::list({0, 3, 1, 2})});
        break;
      }
      default: {  // strides that are asked for
        Node& flat = call("aten::view", {call("aten::contiguous", {*v.node}),
                                         Argument::list(std::vector<Argument>{-1, v.channels, v.height * v.width})});
        Node& back = call("aten::transpose.int", {call("aten::transpose.int", {flat, 1, 2}), 1, 2});
        v.node =
            &call("aten::reshape", {back, Argument::list(std::vector<Argument>{-1, v.channels, v.height, v.width})});
      }
    }
    values_.push_back(v);
  }

  Node& norm(const Value& v) {
    const auto vector = [&](double from, double to) { return at::empty({v.channels}).uniform_(from, to); };
    Node& weight = attribute(vector(0.5, 1.5));
    Node& bias = attribute(vector(-1, 1));
    Node& mean = attribute(vector(-1, 1));
    Node& variance = attribute(vector(0.5, 1.5));
    return call("aten::batch_norm", {*v.node, weight, bias, mean, variance, false, 0.1, 1e-5, true});
  }

  void transposed_convolution(const Value& v) {
    const std::int64_t groups = below(3) || v.channels % 2 ? 1 : 2, per_group = one_of({1, 2, 3});
    const std::int64_t kernel = one_of({1, 2, 3}), stride = one_of({1, 2}), dilation = one_of({1, 1, 2});
    const std::int64_t padding = one_of({0, 0, dilation * (kernel - 1) / 2}),
                       more = one_of({0, stride - 1, dilation - 1});
    const auto out = [&](std::int64_t size) {
      return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1;
    };
    if (out(v.height) < 1 || out(v.width) < 1 || v.height * v.width > 200) return;
    Node& weight = attribute(at::randn({v.channels, per_group, kernel, kernel}) / std::sqrt(double(v.channels)));
    const Argument bias = below(4) ? Argument(attribute(at::randn({per_group * groups}))) : Argument();
    Node& conv =
        call("aten::conv_transpose2d.input", {*v.node, weight, bias, pair(stride, stride), pair(padding, padding),
                                              pair(more, more), groups, pair(dilation, dilation)});
    values_.push_back({&conv, per_group * groups, out(v.height), out(v.width)});
  }

  void convolution(Value v) {
    if (below(6) == 0) return transposed_convolution(v);
    const std::int64_t groups = below(3) ? 1 : v.channels;
    const std::int64_t per_group = one_of({1, 2, 3});
    const std::int64_t kernel = one_of({1, 1, 3, 5}), stride = one_of({1, 1, 2}), dilation = one_of({1, 1, 2});
    const std::int64_t padding = one_of({0, kernel / 2 * dilation});
    const auto out = [&](std::int64_t size) { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; };
    if (v.height + 2 * padding < dilation * (kernel - 1) + 1 || v.width + 2 * padding < dilation * (kernel - 1) + 1)
      return;
    const std::int64_t channels = groups == 1 ? one_of({1, 3, 4, 8}) : groups * per_group;
    Node& weight = attribute(at::randn({channels, v.channels / groups, kernel, kernel}) /
                             std::sqrt(double(v.channels / groups * kernel * kernel)));
    const Argument bias = below(4) ? Argument(attribute(at::randn({channels}))) : Argument();
    if (below(12) == 0) call("aten::mul_.Scalar", {weight, 0.5});
    Node& conv = call("aten::conv2d", {*v.node, weight, bias, pair(stride, stride), pair(padding, padding),
                                       pair(dilation, dilation), groups});
    values_.push_back({&conv, channels, out(v.height), out(v.width)});
  }

  std::mt19937_64 random_;
  Graph graph_;
  GraphModule::Attributes attributes_;
  std::vector<Value> values_;
};

}  // namespace

std::shared_ptr<GraphModule> random_image_program(std::uint64_t seed, std::size_t operators) {
  return RandomImageProgram(seed).make(operators);
}

at::Tensor image(std::int64_t batch, bool last, bool part) {
  if (!part) {
    const at::Tensor made = at::randn({batch, 4, 9, 7});
    return last ? made.contiguous(at::MemoryFormat::ChannelsLast) : made;
  }
  if (!last) return at::randn({batch, 3, 4, 9, 7}).select(1, 1);
  return at::randn({batch, 3, 9, 7, 4}).select(1, 1).permute({0, 3, 1, 2});
}

const std::vector<TensorInfo> kImage = {TensorInfo{.sizes = {2, 4, 9, 7}}};

}  // namespace fx::testing
