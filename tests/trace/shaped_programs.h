// Tables of programs with the shapes of their examples, what their traces say of them, and other shapes: at which the
// graph does what the program does, and at which it refuses.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trace/sizes_testing.h"

namespace fx::testing {

using Shapes = std::vector<std::vector<std::int64_t>>;
using Inputs = std::vector<c10::IValue>;

struct ShapedProgram {
  const char* name;
  std::function<std::shared_ptr<GraphModule>(const Inputs&)> trace;
  std::function<torch::Tensor(const Inputs&)> eager;
  Shapes example;
  std::vector<std::string> says;
  std::vector<Shapes> equal, refused;
};
inline std::ostream& operator<<(std::ostream& out, const ShapedProgram& c) { return out << c.name; }

template <typename... Tensors>
ShapedProgram program(const char* name, torch::Tensor (*function)(Tensors...), Shapes example,
                      std::vector<std::string> says, std::vector<Shapes> equal, std::vector<Shapes> refused = {},
                      std::vector<std::string> ties = {}) {
  const auto eager = [function](const Inputs& inputs) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return function(inputs[i].toTensor()...); }
    (std::index_sequence_for<Tensors...>());
  };
  // What is no equality of two dimensions is declared; equalities that the trace does not find are given as `ties`.
  for (const std::string& each : says) {
    if (each.find(" = ") != each.npos && each.find_first_of("+-*/") != each.npos) ties.push_back(each);
  }
  const auto trace = [function, ties](const Inputs& inputs) {
    return symbolic_trace(function, inputs, {.sizes = Sizes::tied(ties)});
  };
  return {name, trace, eager, std::move(example), std::move(says), std::move(equal), std::move(refused)};
}

inline Inputs inputs_of(const Shapes& shapes) {
  Inputs inputs;
  for (const auto& shape : shapes) inputs.emplace_back(torch::rand(shape));
  return inputs;
}

class ShapedProgramTest : public ::testing::TestWithParam<ShapedProgram> {
 protected:
  void SetUp() override { torch::manual_seed(3); }

  void expect_at(GraphModule& gm, const Shapes& shapes, AtSizes wanted) const {
    const Inputs inputs = inputs_of(shapes);
    const auto eager = [&]() -> c10::IValue { return GetParam().eager(inputs); };
    EXPECT_EQ(at_sizes(gm, eager, inputs), wanted) << ::testing::PrintToString(shapes) << gm.graph();
  }
  void expect_everywhere(GraphModule& gm) const {
    expect_at(gm, GetParam().example, AtSizes::equal);
    for (const Shapes& shapes : GetParam().equal) expect_at(gm, shapes, AtSizes::equal);
    for (const Shapes& shapes : GetParam().refused) expect_at(gm, shapes, AtSizes::refused);
  }
  void expect_says(const GraphModule& gm) const {
    for (const std::string& each : GetParam().says)
      EXPECT_THAT(SizeReport(gm.graph()).str(), ::testing::HasSubstr(each));
  }
  std::shared_ptr<GraphModule> trace() const { return GetParam().trace(inputs_of(GetParam().example)); }
};

}  // namespace fx::testing
