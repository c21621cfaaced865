// What a call of a module needs inside, beside LibTorch's allocator.
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/trace/symbolic_trace.h>

namespace fx::module_memory_test {

namespace nn = torch::nn;
using torch::Tensor;

/// LibTorch's allocator, counting.
class Counting : public c10::Allocator {
 public:
  explicit Counting(c10::Allocator* own) : own_(own) {}
  c10::DataPtr allocate(std::size_t bytes) const override {
    const auto rounded = static_cast<std::int64_t>((bytes + 63) / 64 * 64);
    now += rounded;
    most = std::max(most, now);
    void* data = own_->raw_allocate(bytes);
    return {data, new Held{data, rounded, own_}, &drop, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  inline static std::int64_t now = 0, most = 0;

 private:
  struct Held {
    void* data;
    std::int64_t bytes;
    c10::Allocator* own;
  };
  static void drop(void* held) {
    const std::unique_ptr<Held> it(static_cast<Held*>(held));
    now -= it->bytes;
    it->own->raw_deallocate(it->data);
  }
  c10::Allocator* own_;
};

/// The most bytes at once while `forward` runs on `x`.
std::int64_t most_bytes(const std::function<void()>& forward) {
  const at::NoGradGuard no_grad;
  forward();  // what is made once
  c10::Allocator* own = c10::GetAllocator(c10::DeviceType::CPU);
  Counting counting(own);
  c10::SetAllocator(c10::DeviceType::CPU, &counting, 255);
  Counting::now = Counting::most = 0;
  forward();
  c10::SetAllocator(c10::DeviceType::CPU, own, 255);
  return Counting::most;
}

template <typename Layer>
struct Of : nn::Module {
  explicit Of(Layer made) : layer(register_module("layer", std::move(made))) { eval(); }
  Tensor forward(const Tensor& x) {
    if constexpr (std::is_same_v<Layer, nn::MultiheadAttention>) {
      return std::get<0>(layer->forward(x, x, x));
    } else if constexpr (std::is_same_v<Layer, nn::LSTM>) {
      return std::get<0>(layer->forward(x));
    } else {
      return layer->forward(x);
    }
  }
  Layer layer{nullptr};
};

struct Said {
  double bytes, real;
  std::vector<std::string> unknown;
  double macs;
};
template <typename Layer>
Said said(Layer layer, const Tensor& x) {
  const auto net = std::make_shared<Of<Layer>>(std::move(layer));
  const auto traced = symbolic_trace(net, {x});
  const Shapes shapes = propagate_shapes(*traced, std::vector<c10::IValue>{x});
  const Liveness live(*traced, shapes);
  const Cost cost(*traced, shapes);
  EXPECT_THAT(cost.unknown(), ::testing::IsEmpty());
  const double real = static_cast<double>(most_bytes([&] { net->forward(x); }));
  return {static_cast<double>(live.peak().bytes), real, live.unknown(), cost.total().macs};
}

TEST(ModuleMemory, OfAttentionIsAsTheAllocatorSays) {
  const Tensor x = torch::rand({256, 2, 64});
  const Said attention = said(nn::MultiheadAttention(64, 4), x);
  EXPECT_NEAR(attention.bytes, attention.real, 0.01 * attention.real);
  EXPECT_THAT(attention.unknown, ::testing::IsEmpty());
  // Four projections; scores and what they weigh, of all heads.
  EXPECT_EQ(attention.macs, 4.0 * 512 * 64 * 64 + 2.0 * 2 * 256 * 256 * 64);
}

TEST(ModuleMemory, OfTransformersIsAsTheAllocatorSays) {
  const Said encoder = said(nn::TransformerEncoder(nn::TransformerEncoderOptions(
                                nn::TransformerEncoderLayerOptions(64, 4).dim_feedforward(256), 2)),
                            torch::rand({256, 2, 64}));
  EXPECT_NEAR(encoder.bytes, encoder.real, 0.01 * encoder.real);
  EXPECT_THAT(encoder.unknown, ::testing::IsEmpty());
}

TEST(ModuleMemory, OfRecurrentLayersIsALowerBoundThatNamesThem) {
  const Said lstm = said(nn::LSTM(nn::LSTMOptions(64, 128)), torch::rand({64, 2, 64}));
  EXPECT_LE(lstm.bytes, lstm.real);
  EXPECT_THAT(lstm.unknown, ::testing::ElementsAre("layer/lstm"));
}

}  // namespace fx::module_memory_test
