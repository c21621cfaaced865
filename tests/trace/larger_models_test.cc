// Recurrent modules, attention and containers inside larger models: traced with and without shapes, with leaf modules
// and without, run, and written and read again.
#include "tests/trace/larger_models.h"

#include "tests/trace/round_trips.h"

namespace fx::larger_models_test {

using ::testing::Contains;
using ::testing::Not;
using testing::same_value;
using ::testing::StartsWith;
using testing::targets;
using torch::Tensor;

struct Wanted {
  bool without_shapes = true;       ///< false: the program asks for sizes
  std::vector<std::string> leaves;  ///< calls of these are in the graph when leaf modules are raised
};

template <typename Model, typename... Inputs>
void expect_traced(Model model, const Wanted& wanted, const Inputs&... inputs) {
  const torch::NoGradGuard no_grad;
  model->eval();
  const std::vector<c10::IValue> values = {inputs...};
  const c10::IValue expected = model->forward(inputs...);
  for (const bool raised : {false, true}) {
    for (const bool shapes : {false, true}) {
      if (!shapes && !wanted.without_shapes) continue;
      SCOPED_TRACE(std::string(raised ? "leaf modules" : "operators") + (shapes ? ", shapes" : ""));
      TraceOptions options;
      options.raise_leaf_modules = raised;
      Tracer tracer(options);
      Trace trace = tracer.trace(model, shapes ? values : std::vector<c10::IValue>{});
      EXPECT_NO_THROW(trace.graph.lint());
      for (const std::string& leaf : wanted.leaves) {
        EXPECT_EQ(trace.graph.count(Op::call_module, Symbol(leaf)) > 0, raised) << leaf << "\n" << trace.graph;
      }
      if (shapes) {
        testing::expect_round_trips(std::move(trace), values);
      } else {
        EXPECT_TRUE(same_value(to_graph_module(std::move(trace))->run(values), expected, 1e-5));
      }
      EXPECT_TRUE(same_value(symbolic_trace(model, values, options)->run(values), expected, 1e-5));
    }
  }
}

Tensor words(std::int64_t count, std::int64_t vocabulary) { return torch::randint(vocabulary, {count, 2}); }

TEST(LargerModelsNight, Translator) {
  torch::manual_seed(1);
  expect_traced(testing::Translator(), {false, {"source", "target", "encoder", "decoder", "head"}}, words(5, 11),
                words(4, 13));
}
TEST(LargerModelsNight, Crnn) {
  torch::manual_seed(2);
  expect_traced(testing::Crnn(), {false, {"convolutions.0", "convolutions.1", "convolutions.2", "lstm", "head"}},
                torch::rand({2, 1, 8, 12}));
}
TEST(LargerModelsNight, Seq2SeqWithAttention) {
  torch::manual_seed(3);
  expect_traced(testing::Seq2Seq(), {false, {"embedding", "encoder", "attention", "cell", "head"}}, words(5, 9));
}
TEST(LargerModelsNight, VisionTransformer) {
  torch::manual_seed(4);
  expect_traced(testing::Vit(),
                {false, {"patches", "blocks.0.norm1", "blocks.1.attention", "blocks.0.mlp.1", "norm", "head"}},
                torch::rand({2, 3, 16, 16}));
}
TEST(LargerModelsNight, MobileNetOfContainers) {
  torch::manual_seed(5);
  expect_traced(testing::MobileNet(), {true, {"blocks.0.0", "blocks.1.1", "blocks.1.2", "heads.small", "heads.large"}},
                torch::rand({2, 3, 8, 8}));
}

}  // namespace fx::larger_models_test
