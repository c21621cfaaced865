// Generated Python runs in Python's torch and can be traced there again; generated TorchScript compiles. Without
// Python's torch the first part is skipped.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <filesystem>

#include <fxgraph/module/code.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/trace/symbolic_trace.h>

#include "tests/support/python_check.h"
#include "tests/support/scratch_folder.h"

namespace fx::generated_python_test {

namespace fs = std::filesystem;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    block = register_module(
        "block", torch::nn::Sequential(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4), torch::nn::ReLU()));
    fc = register_module("fc", torch::nn::Linear(4, 5));
    scale = register_buffer("scale", torch::full({5}, 2.0));
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    using torch::indexing::Slice;
    x = torch::adaptive_avg_pool2d(block->forward(x), {1, 1}).flatten(1);
    x = fc(x) * scale + torch::full({5}, 0.5, torch::kFloat);
    return torch::topk(x.index({torch::indexing::Ellipsis, Slice(1, torch::indexing::None)}), 2);
  }
  torch::nn::Sequential block{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Net);

std::shared_ptr<GraphModule> traced_net(const torch::Tensor& x) {
  torch::manual_seed(0);
  Net net;
  net->forward(torch::randn({4, 3, 9, 9}));
  net->eval();
  return symbolic_trace(net, {x});
}

constexpr const char* kCheck = R"py(
import sys
sys.path.insert(0, sys.argv[1])
import torch, torch.fx
from module import Net
data = dict(torch.load(sys.argv[1] + '/data.pt'))
net = Net().eval()
again = torch.fx.symbolic_trace(net)
with torch.no_grad():
    for each in (net, again, torch.jit.script(net), torch.jit.script(again)):
        for found, expected in zip(each(data['x']), (data['values'], data['indices'])):
            assert torch.equal(found, expected), (found, expected)
assert set(net.state_dict()) == set(data['names'].split()), net.state_dict().keys()
assert not net.block._modules['1'].running_mean.requires_grad and net.fc.weight.requires_grad
)py";

TEST(GeneratedPythonNight, AFolderIsRunAndTracedAgainByPython) {
  const auto python = testing::python_with_torch();
  if (!python) GTEST_SKIP() << "Python's torch is not installed";
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::randn({2, 3, 9, 9});
  const auto gm = traced_net(x);
  const testing::ScratchFolder scratch;
  const fs::path folder = scratch / "python_net";
  to_folder(*gm, folder, "Net");

  const auto result = gm->run({x}).toTupleRef().elements();
  std::string names;
  for (const auto& item : gm->named_parameters()) names += item.key() + " ";
  for (const auto& item : gm->named_buffers()) {
    if (!item.key().ends_with("num_batches_tracked")) names += item.key() + " ";
  }
  const auto pair = [](const char* name, const c10::IValue& value) { return c10::ivalue::Tuple::create(name, value); };
  const std::vector<char> data = torch::pickle_save(c10::ivalue::Tuple::create(
      pair("x", x), pair("values", result[0]), pair("indices", result[1]), pair("names", names)));
  EXPECT_TRUE(testing::passes_in_python(*python, folder, kCheck, data));
}

TEST(GeneratedPython, RefusesModulesThatItDoesNotKnow) {
  GraphModule::Attributes attributes = {{"own", std::shared_ptr<torch::nn::Module>(std::make_shared<NetImpl>())}};
  GraphModule gm(attributes, parse_graph("graph():\n%x = placeholder[target=x]\n"
                                         "%y = call_module[target=own](args = (%x,))\nreturn y"));
  const testing::ScratchFolder scratch;
  EXPECT_THROW(to_folder(gm, scratch / "never", "Net"), Error);
  EXPECT_FALSE(fs::exists(scratch / "never"));
}

TEST(GeneratedTorchScript, CompilesAndComputesTheSame) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::randn({2, 3, 9, 9});
  const auto gm = traced_net(x);
  torch::jit::Module net("Net");
  torch::jit::Module fc("Fc"), block("Block"), conv("Conv"), norm("Norm");
  const auto give = [&](torch::jit::Module& module, const std::string& path, std::initializer_list<const char*> names) {
    for (const char* name : names) module.register_buffer(name, gm->attribute(join_path(path, name)));
  };
  give(fc, "fc", {"weight", "bias"});
  give(conv, "block.0", {"weight", "bias"});
  give(norm, "block.1", {"weight", "bias", "running_mean", "running_var"});
  give(net, "", {"scale"});
  block.register_module("0", conv);
  block.register_module("1", norm);
  net.register_module("block", block);
  net.register_module("fc", fc);
  net.define(code(*gm, Language::torchscript));
  const auto found = net.forward({x}).toTupleRef().elements();
  const auto expected = gm->run({x}).toTupleRef().elements();
  EXPECT_TRUE(torch::equal(found[0].toTensor(), expected[0].toTensor()));
  EXPECT_TRUE(torch::equal(found[1].toTensor(), expected[1].toTensor()));
}

TEST(InlineModules, ComputesTheSameWithoutModules) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::randn({2, 3, 9, 9});
  const auto gm = traced_net(x);
  ASSERT_FALSE(gm->graph().find_nodes(Op::call_module).empty());
  GraphModule flat(*gm, inline_modules(*gm));
  EXPECT_TRUE(flat.graph().find_nodes(Op::call_module).empty());
  flat.graph().lint();
  EXPECT_NE(flat.graph().find("fc"), nullptr);
  EXPECT_TRUE(torch::equal(flat.run({x}).toTupleRef().elements()[0].toTensor(),
                           gm->run({x}).toTupleRef().elements()[0].toTensor()));
}

}  // namespace fx::generated_python_test
