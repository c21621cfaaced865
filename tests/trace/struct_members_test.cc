// What structs in signatures may have for members: they are counted without anything being said of them.
#include "tests/trace/trace_testing.h"

namespace fx::struct_members_test {

using torch::Tensor;

struct Inner {
  c10::optional<Tensor> bias;
  Tensor weight;
};
struct Batch {
  Tensor x;
  c10::optional<Tensor> mask;
  std::optional<double> scale;
  Inner inner;
  std::vector<Tensor> more;
  std::string name;
};
struct Only {
  c10::optional<Tensor> value;
};

TEST(StructMembers, Optionals) {
  static_assert(internal::count_fields<Batch>() == 6 && internal::count_fields<Inner>() == 2 &&
                internal::count_fields<Only>() == 1);
  const auto step = [](const Batch& batch) -> Inner {
    Tensor y = batch.mask ? batch.x * *batch.mask : batch.x;
    if (batch.scale) y = y * *batch.scale;
    if (batch.inner.bias) y = y + *batch.inner.bias;
    return {c10::nullopt, y * batch.inner.weight + batch.more.at(0)};
  };
  const auto x = [] { return torch::rand({2, 3}); };
  for (const bool has : {true, false}) {
    const auto some = [&]() -> c10::optional<Tensor> { return has ? c10::optional<Tensor>(x()) : c10::nullopt; };
    const auto scale = has ? std::optional<double>(0.5) : std::nullopt;
    const auto batch = [&] { return Batch{x(), some(), scale, {some(), x()}, {x()}, "name"}; };
    const auto gm = symbolic_trace(step, {example(batch())});
    const Batch other = batch();
    EXPECT_TRUE(testing::same_value(gm->run({example(other)}), example(step(other))));
  }
  const auto one = [](const Only& only) { return *only.value + 1; };
  const Tensor y = x();
  EXPECT_TRUE(testing::same_value(symbolic_trace(one, {example(Only{y})})->run({example(Only{y})}), y + 1));
}

}  // namespace fx::struct_members_test
