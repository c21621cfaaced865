// Bytes of an object that no member has hold what was there before it, pointers among others: they say nothing of it.
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <fxgraph/support/error.h>
#include <fxgraph/trace/symbolic_trace.h>

namespace fx::left_over_bytes_test {

// A block that each forward changes. Its address ends in a byte of zeros, as a pointer does of which a `false` has
// taken the first byte.
std::int64_t* block() {
  static auto* const made = static_cast<std::int64_t*>(std::aligned_alloc(256, 256));
  return made;
}

// `Beside` stands before the count: how large it is decides whether there are bytes behind the last member.
template <typename Beside>
struct Counter : torch::nn::Module {
  Counter() { eval(); }
  torch::Tensor forward(torch::Tensor x) {
    ++block()[0];
    return x * static_cast<double>(++count);
  }
  torch::Tensor w = register_parameter("w", torch::rand({3}));
  Beside beside{};
  std::int64_t count = 0;
};

// Where every word was `left` before.
template <typename Module>
std::shared_ptr<Module> made_over(std::int64_t left) {
  auto* const words =
      static_cast<std::int64_t*>(std::malloc(sizeof(Module) + 2 * sizeof(void*)));  // the shared pointer's
  for (std::size_t i = 0; i < malloc_usable_size(words) / sizeof(void*); ++i)
    *static_cast<volatile std::int64_t*>(words + i) = left;
  std::free(words);
  return std::make_shared<Module>();
}

template <typename Module>
void expect_put_back() {
  for (const std::int64_t left : {reinterpret_cast<std::int64_t>(block()), std::int64_t{-1}, std::int64_t{1} << 40}) {
    block()[0] = 1;
    const auto module = made_over<Module>(left);
    EXPECT_THROW(symbolic_trace(module, {torch::rand({2, 3})}), Error);
    EXPECT_EQ(module->count, 0) << left;
  }
}

TEST(LeftOverBytes, BehindABaseOrAnObject) {
  expect_put_back<Counter<std::array<std::int64_t, 1>>>();
  expect_put_back<Counter<std::array<std::int64_t, 2>>>();
}
TEST(LeftOverBytes, InAShortString) { expect_put_back<Counter<std::string>>(); }

}  // namespace fx::left_over_bytes_test
