// Every module of torch::nn, traced unchanged: the graph computes what the module computes.
#include <map>

#include "tests/support/night.h"
#include "tests/trace/nn_cases.h"
#include "tests/trace/trace_testing.h"

namespace fx::nn_modules_test {

using testing::all_nn_cases;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::NnCase;
using testing::same_value;

class NnModules : public ::testing::TestWithParam<NnCase> {
 protected:
  static c10::IValue seeded(const std::function<c10::IValue()>& program) {
    torch::manual_seed(3);
    return program();
  }

  // Compares a trace with eager; buffers that forward writes are copied, so that each side writes its own.
  static void expect_eager(Trace trace) {
    ASSERT_NO_THROW(trace.graph.lint());
    const auto gm = to_graph_module(std::move(trace))->clone_graph_module();
    const c10::IValue traced = seeded([&] { return gm->run(GetParam().inputs); });
    const c10::IValue eager = seeded(GetParam().eager);
    EXPECT_TRUE(same_value(traced, eager, 1e-5)) << gm->graph();
  }

  static bool skips(bool training) { return training && GetParam().draws_in_training; }

  torch::NoGradGuard no_grad_;
};

TEST_P(NnModules, AsOperators) {
  for (const bool training : {false, true}) {
    if (skips(training)) continue;
    SCOPED_TRACE(training ? "training" : "evaluating");
    GetParam().module->train(training);
    Tracer tracer;
    expect_eager(GetParam().trace(tracer, GetParam().inputs));
  }
}

TEST_P(NnModules, AsLeaves) {
  for (const bool training : {false, true}) {
    if (skips(training)) continue;
    SCOPED_TRACE(training ? "training" : "evaluating");
    GetParam().module->train(training);
    Tracer tracer;
    Trace trace = GetParam().trace_child(tracer, GetParam().inputs);
    const bool has_tensors = !trace.root->parameters().empty() || !trace.root->buffers().empty();
    if (has_tensors && GetParam().name != "Sequential") {
      EXPECT_EQ(trace.graph.count(Op::call_module, "leaf"), 1U) << trace.graph;
      EXPECT_EQ(trace.attributes.size(), 0U) << trace.graph;
    }
    expect_eager(std::move(trace));
  }
}

// Their forward asks for sizes, and C++ has no hook that would keep a trace from entering it.
const std::map<std::string, const char*> kAskForShapes = {{"Softmax2d", "dim()"},
                                                          {"GLU", "dim()"},
                                                          {"Unfold", "dim()"},
                                                          {"Fold", "dim()"},
                                                          {"EmbeddingBag", "(sizes|dim)()"},
                                                          {"EmbeddingBagOffsets", "(sizes|dim)()"},
                                                          {"Dropout2d", "dim()"},
                                                          {"Dropout3d", "dim()"},
                                                          {"Upsample", "dim()"},
                                                          {"UpsampleBilinear", "dim()"},
                                                          {"InstanceNorm1d", "dim()"},
                                                          {"InstanceNorm2d", "dim()"},
                                                          {"InstanceNorm3d", "dim()"},
                                                          {"LocalResponseNorm", "dim()"},
                                                          {"FractionalMaxPool2d", "dim()"},
                                                          {"FractionalMaxPool3d", "dim()"},
                                                          {"MultiLabelSoftMarginLoss", "dim()"},
                                                          {"MarginRankingLoss", "dim()"},
                                                          {"NLLLoss", "dim()"},
                                                          {"Transformer", "dim()"},
                                                          {"BatchNormPlain", "sizes()"},
                                                          {"AdaptiveAvgPool2d", "sizes()"},
                                                          {"AdaptiveAvgPool3d", "sizes()"},
                                                          {"AdaptiveMaxPool2d", "sizes()"},
                                                          {"AdaptiveMaxPool3d", "sizes()"},
                                                          {"MaxUnpool1d", "sizes()"},
                                                          {"MaxUnpool2d", "sizes()"},
                                                          {"MaxUnpool3d", "sizes()"},
                                                          {"MSELoss", "sizes()"},
                                                          {"SmoothL1Loss", "sizes()"},
                                                          {"HuberLoss", "sizes()"},
                                                          {"BCELoss", "sizes()"},
                                                          {"BCEWithLogitsLoss", "sizes()"},
                                                          {"MultiheadAttention", "sizes()"},
                                                          {"MultiheadAttentionSelf", "sizes()"},
                                                          {"TransformerEncoderLayer", "sizes()"},
                                                          {"TransformerDecoderLayer", "sizes()"},
                                                          {"TransformerEncoder", "sizes()"},
                                                          {"TransformerDecoder", "sizes()"},
                                                          {"RNN", "size()"},
                                                          {"RNNHidden", "size()"},
                                                          {"LSTM", "size()"},
                                                          {"LSTMHidden", "size()"},
                                                          {"LSTMDeep", "size()"},
                                                          {"LSTMProjected", "size()"},
                                                          {"GRU", "size()"},
                                                          {"GRUHidden", "size()"},
                                                          {"RNNCell", "(size|dim)()"},
                                                          {"RNNCellHidden", "(size|dim)()"},
                                                          {"LSTMCell", "(size|dim)()"},
                                                          {"LSTMCellHidden", "(size|dim)()"},
                                                          {"GRUCell", "(size|dim)()"},
                                                          {"GRUCellHidden", "(size|dim)()"},
                                                          {"CrossMapLRN2d", "device()"}};

TEST_P(NnModules, WithoutShapes) {
  GetParam().module->eval();
  Tracer tracer;
  if (const auto question = kAskForShapes.find(GetParam().name); question != kAskForShapes.end()) {
    EXPECT_FX_ERROR(GetParam().trace(tracer, {}), trace, ContainsRegex(question->second),
                    HasSubstr("symbolic_trace(f, {"));
  } else {
    expect_eager(GetParam().trace(tracer, {}));
  }
}

TEST(NnModulesWithoutTrace, ChooseByTheirData) {
  torch::nn::AdaptiveLogSoftmaxWithLoss module(torch::nn::AdaptiveLogSoftmaxWithLossOptions(4, 9, {3, 6}).div_value(2));
  EXPECT_FX_ERROR(symbolic_trace(module, {torch::rand({5, 4}), torch::zeros({5}, torch::kInt64)}), trace,
                  HasSubstr("numel()"), HasSubstr("%squeeze"));
}

INSTANTIATE_TEST_SUITE_P(All, NnModules, ::testing::ValuesIn(testing::some_by_day(all_nn_cases())),
                         [](const ::testing::TestParamInfo<NnCase>& info) { return info.param.name; });

}  // namespace fx::nn_modules_test
