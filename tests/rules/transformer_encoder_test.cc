// A Transformer encoder in C++, the whole way: traced, optimised rule by rule, verified, timed, saved, and run by
// Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>

#include "tests/support/python_check.h"
#include "tests/support/scratch_folder.h"

namespace fx::transformer_encoder_test {

namespace fs = std::filesystem;

struct Encoder : torch::nn::Module {
  torch::nn::TransformerEncoder encoder{nullptr};
  Encoder() {
    const auto layer = torch::nn::TransformerEncoderLayerOptions(64, 4).dim_feedforward(128).activation(torch::kGELU);
    encoder = register_module("encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 2)));
  }
  torch::Tensor forward(torch::Tensor x) { return encoder(x); }
};

const std::vector<std::int64_t> kSizes = {12, 3, 64};

class TransformerEncoderNight : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(11);
    const auto net = std::make_shared<Encoder>();
    net->eval();
    x_ = torch::randn(kSizes);
    expected_ = net->forward(x_);
    TraceOptions options;
    options.raise_leaf_modules = false;
    options.sizes = Sizes::fixed;
    before_ = symbolic_trace(net, {x_}, options);
    before_->eval();
    after_ = before_->clone_graph_module();
    after_->eval();
  }

  /// Nodes before and after each rule that did something.
  std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> optimize_rule_by_rule() {
    std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> steps;
    for (bool changed = true; changed;) {
      changed = false;
      for (const rules::OptimizeRule* rule : rules::select({"inference", "fusion"})) {
        const std::size_t nodes = after_->graph().size();
        const OptimizeReport report =
            optimize(*after_, {.rules = {std::string(rule->name)}, .inputs = {TensorInfo{.sizes = kSizes}}});
        if (report.applied() == 0) continue;
        steps.push_back({std::string(rule->name), {nodes, after_->graph().size()}});
        changed = true;
        const Verification check = verify_equivalent(*before_, *after_, {{x_}}, 1e-4);
        EXPECT_TRUE(check.equal) << rule->name << ": " << check;
      }
    }
    return steps;
  }

  const torch::NoGradGuard no_grad_;
  torch::Tensor x_, expected_;
  std::shared_ptr<GraphModule> before_, after_;
};

std::size_t count(const GraphModule& module, const char* target) {
  return module.graph().count(Op::call_function, Symbol(target));
}

TEST_F(TransformerEncoderNight, RuleByRule) {
  EXPECT_TRUE(torch::allclose(before_->forward(x_), expected_, 1e-4, 1e-5));
  ASSERT_EQ(count(*before_, "aten::softmax.int"), 2u) << print_graph(before_->graph());
  std::vector<std::string> fired;
  for (const auto& [rule, nodes] : optimize_rule_by_rule()) {
    RecordProperty(rule, std::to_string(nodes.first) + " -> " + std::to_string(nodes.second));
    fired.push_back(rule);
  }
  EXPECT_THAT(fired, ::testing::Contains("recognise-attention"));
  EXPECT_EQ(count(*after_, "aten::dropout"), 0u);
  EXPECT_EQ(count(*after_, "aten::softmax.int"), 0u);
  EXPECT_EQ(count(*after_, "aten::linear"), 8u) << "four of each layer, with their biases";
  EXPECT_EQ(count(*after_, "aten::add_.Tensor"), 0u) << print_graph(after_->graph());
  EXPECT_LE(after_->graph().size() + 20, before_->graph().size());
  EXPECT_TRUE(torch::allclose(after_->forward(x_), expected_, 1e-4, 1e-5));
}

TEST_F(TransformerEncoderNight, SavedItRunsInLibTorchAndInPython) {
  optimize(*after_, {.rules = {"inference", "fusion"}, .inputs = {TensorInfo{.sizes = kSizes}}});
  const testing::ScratchFolder folder;
  const std::string saved = (folder / "encoder.pt").string();
  save(*after_, saved);
  EXPECT_TRUE(torch::allclose(load(saved)->forward(x_), expected_, 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(torch::jit::load(saved).forward({x_}).toTensor(), expected_, 1e-4, 1e-5));

  const auto python = testing::python_with_torch();
  if (!python) GTEST_SKIP() << "Python's torch is not installed";
  const char* const script = R"py(import sys
import torch
x, expected = torch.load(sys.argv[1] + '/data.pt')
with torch.no_grad():
    found = torch.jit.load(sys.argv[1] + '/encoder.pt')(x)
assert torch.allclose(found, expected, 1e-4, 1e-5), (found - expected).abs().max()
)py";
  const std::vector<char> data = torch::pickle_save(c10::ivalue::Tuple::create({x_, expected_}));
  EXPECT_TRUE(testing::passes_in_python(*python, folder.path(), script, data));
}

}  // namespace fx::transformer_encoder_test
