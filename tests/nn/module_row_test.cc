// A user's type that fills its row as torch::nn's types do: generated code makes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include <fxgraph/module/code.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/nn_construction.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include "tests/support/file_text.h"
#include "tests/support/python_check.h"
#include "tests/support/scratch_folder.h"

namespace fx::module_row_test {

using ::testing::HasSubstr;
using ::testing::Not;

// Made with numbers by position.
struct BlendImpl : torch::nn::Module {
  explicit BlendImpl(std::int64_t width, double by = 0.5, std::vector<std::int64_t> order = {0, 1})
      : width(width), by(by), order(std::move(order)) {
    weight = register_parameter("weight", torch::full({width}, by));
  }
  std::tuple<torch::Tensor, std::tuple<torch::Tensor, torch::Tensor>> forward(const torch::Tensor& x) const {
    return {x * weight, {x.permute(order), x + weight}};
  }
  std::int64_t width;
  double by;
  std::vector<std::int64_t> order;
  torch::Tensor weight;
};

// Made with options, as torch::nn's are.
struct GateOptions {
  std::int64_t width = 0;
  bool hard = false;
};
struct GateImpl : torch::nn::Module {
  explicit GateImpl(GateOptions options) : options(options) {}
  torch::Tensor forward(const torch::Tensor& x) { return options.hard ? (x > 0).to(x.dtype()) : x.sigmoid(); }
  GateOptions options;
};

// Known by its name alone.
struct BareImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

void register_types() {
  register_module_type<BlendImpl>(
      "mine.layers.Blend",
      {.tensors = [](BlendImpl& module) -> std::vector<torch::Tensor*> { return {&module.weight}; },
       .follows_mode = [](const BlendImpl&) { return false; },
       .hyper_parameters = [](const BlendImpl& module) -> HyperParameters {
         std::vector<Argument> order(module.order.begin(), module.order.end());
         return {{.name = "width", .value = module.width, .by_position = true},
                 {.name = "by", .value = module.by, .is_default = module.by == 0.5},
                 {.name = "order",
                  .value = Argument::list(order),
                  .is_default = module.order == std::vector<std::int64_t>{0, 1}}};
       },
       .cpp_type = "mine::Blend",
       .cpp_header = "mine/blend.h"});
  register_module_type<GateImpl>(
      "mine.layers.Gate",
      {.body = [](const GateImpl& module) -> std::optional<Graph> {
         if (module.options.hard) return std::nullopt;
         return parse_graph(
             "graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::sigmoid](args = (%x,))\n"
             "return y");
       },
       .hyper_parameters = [](const GateImpl& module) -> std::optional<HyperParameters> {
         if (module.options.width < 0) return std::nullopt;
         return HyperParameters{{.name = "width", .value = module.options.width, .by_position = true},
                                {.name = "hard",
                                 .value = module.options.hard,
                                 .is_default = !module.options.hard,
                                 .cpp_setter = "is_hard"}};
       },
       .cpp_type = "mine::Gate",
       .cpp_options = "mine::GateOptions"});
  register_module_type<BareImpl>("mine.layers.Bare");
}

std::shared_ptr<GraphModule> calling(std::shared_ptr<torch::nn::Module> module, const char* result = "y") {
  register_types();
  return std::make_shared<GraphModule>(
      GraphModule::Attributes{{"part.m", std::move(module)}},
      parse_graph(
          std::string("graph():\n%x = placeholder[target=x]\n%y = call_module[target=part.m](args = (%x,))\n") +
          (result == std::string("first") ? "%first = call_function[target=operator.getitem](args = (%y, 0))\n" : "") +
          "return " + result));
}

std::string generated_python(const GraphModule& module) {
  const testing::ScratchFolder scratch;
  to_folder(module, scratch / "net", "Net");
  return testing::file_text(scratch / "net" / "module.py");
}

TEST(ModuleRow, IsFilledByUsers) {
  register_types();
  const BlendImpl blend(3, 0.25, {1, 0});
  const CodeModule made = *construction_of(blend);
  EXPECT_EQ(made.type, "mine::Blend");
  EXPECT_EQ(made.construction, "mine::Blend(3, 0.25, {1, 0})");
  EXPECT_EQ(made.python_construction, "mine.layers.Blend(3, by=0.25, order=[1, 0])");
  EXPECT_EQ(made.python_import, "mine.layers");
  ASSERT_EQ(made.result.parts.size(), 2U) << "as forward's type says";
  EXPECT_EQ(made.result.parts[1].parts.size(), 2U);
  const ModuleType& row = *find_module_type(blend);
  EXPECT_EQ(&row, find_module_type("mine.layers.Blend"));
  EXPECT_FALSE(row.follows_mode(blend));
  BlendImpl mutable_blend(2);
  EXPECT_EQ(row.tensors(mutable_blend).at(0), &mutable_blend.weight);
}

TEST(ModuleRow, LeavesOutDefaultsBehindTheLastThatIsNone) {
  register_types();
  EXPECT_EQ(construction_of(BlendImpl(3))->construction, "mine::Blend(3)");
  EXPECT_EQ(construction_of(BlendImpl(3, 0.25))->construction, "mine::Blend(3, 0.25)");
  const CodeModule turned = *construction_of(BlendImpl(3, 0.5, {1, 0}));
  EXPECT_EQ(turned.construction, "mine::Blend(3, 0.5, {1, 0})");
  EXPECT_EQ(turned.python_construction, "mine.layers.Blend(3, order=[1, 0])");
}

TEST(ModuleRow, MayHaveOptionsOrNothingToSay) {
  register_types();
  EXPECT_EQ(construction_of(GateImpl({3, true}))->construction, "mine::Gate(mine::GateOptions(3).is_hard(true))");
  EXPECT_EQ(construction_of(GateImpl({3, true}))->python_construction, "mine.layers.Gate(3, hard=True)");
  EXPECT_EQ(construction_of(GateImpl({-1, true})), std::nullopt);
  EXPECT_EQ(construction_of(BareImpl()), std::nullopt);
}

TEST(ModuleRow, GeneratedCppMakesUsersModules) {
  auto blend = std::make_shared<BlendImpl>(3, 0.25);
  blend->weight.requires_grad_(false);
  blend->eval();
  const std::string source = code(*calling(blend, "first"), Language::cpp);
  EXPECT_THAT(source, HasSubstr("#include \"mine/blend.h\"\n"));
  EXPECT_THAT(source, HasSubstr(" = add_module(\"part.m\", mine::Blend(3, 0.25), /*training=*/false);"));
  EXPECT_THAT(source, HasSubstr("named_parameters()[\"weight\"].requires_grad_(false);"));
  EXPECT_THAT(source, HasSubstr("  mine::Blend part_m_{nullptr};"));
  EXPECT_THAT(source, Not(HasSubstr("AnyModule")));
  EXPECT_THAT(code(*calling(std::make_shared<BareImpl>()), Language::cpp), HasSubstr("torch::nn::AnyModule"));
}

TEST(ModuleRow, GeneratedCppWritesBodiesOut) {
  const std::string source = code(*calling(std::make_shared<GateImpl>(GateOptions{3, false})), Language::cpp);
  EXPECT_THAT(source, HasSubstr("sigmoid"));
  EXPECT_THAT(source, Not(HasSubstr("mine::Gate")));
}

TEST(ModuleRow, GeneratedPythonMakesUsersModules) {
  auto blend = std::make_shared<BlendImpl>(3, 0.25);
  blend->weight.requires_grad_(false);
  const std::string source = generated_python(*calling(blend, "first"));
  EXPECT_THAT(source, ::testing::StartsWith("import mine.layers\nimport pathlib\n"));
  EXPECT_THAT(source, HasSubstr("self._add_module('part.m', mine.layers.Blend(3, by=0.25), weights, True, "
                                "['weight'])\n"));
  EXPECT_THAT(source, HasSubstr("self.part.m(x)"));
}

constexpr const char* kLayers = R"py(
import torch
class Blend(torch.nn.Module):
    def __init__(self, width, by=0.5, order=(0, 1)):
        super().__init__()
        self.order, self.weight = order, torch.nn.Parameter(torch.zeros(width))
    def forward(self, x):
        return x * self.weight, (x.permute(self.order), x + self.weight)
)py";

constexpr const char* kCheck = R"py(
import sys
sys.path.insert(0, sys.argv[1])
import torch
from module import Net
data = dict(torch.load(sys.argv[1] + '/data.pt'))
net = Net()
assert torch.allclose(net(data['x']), data['y']), (net(data['x']), data['y'])
assert not net.blend.weight.requires_grad and net.lstm.weight_ih_l0.requires_grad and not net.lstm.training
)py";

TEST(ModuleRowNight, PythonMakesAndRunsModules) {
  const auto python = testing::python_with_torch();
  if (!python) GTEST_SKIP() << "Python's torch is not installed";
  register_types();
  auto blend = std::make_shared<BlendImpl>(3, 0.25, std::vector<std::int64_t>{2, 1, 0});
  blend->weight.requires_grad_(false);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).num_layers(2).bidirectional(true));
  lstm->to(torch::kDouble);
  lstm->eval();
  GraphModule gm(
      {{"blend", std::shared_ptr<torch::nn::Module>(blend)}, {"lstm", std::shared_ptr<torch::nn::Module>(lstm.ptr())}},
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=blend](args = (%x,))\n"
                  "%first = call_function[target=operator.getitem](args = (%y, 0))\n"
                  "%all = call_module[target=lstm](args = (%first,))\n"
                  "%z = call_function[target=operator.getitem](args = (%all, 0))\nreturn z"));
  const testing::ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "net";
  to_folder(gm, folder, "Net");
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = torch::rand({5, 2, 3}, torch::kDouble);
  const auto pair = [](const char* name, const c10::IValue& value) { return c10::ivalue::Tuple::create(name, value); };
  const std::vector<char> data = torch::pickle_save(c10::ivalue::Tuple::create(pair("x", x), pair("y", gm.run({x}))));
  std::filesystem::create_directory(folder / "mine");
  std::ofstream(folder / "mine" / "layers.py") << kLayers;
  EXPECT_TRUE(testing::passes_in_python(*python, folder, kCheck, data));
}

TEST(ModuleRow, GeneratedPythonRefusesTypesThatAreKnownByNameAlone) {
  EXPECT_THAT([] { generated_python(*calling(std::make_shared<BareImpl>())); },
              ::testing::ThrowsMessage<Error>(HasSubstr("register its type with its hyper-parameters")));
}

TEST(ModuleRow, OfTypesThatPythonAloneHasIsFoundByName) {
  EXPECT_EQ(find_module_type("Hardswish"), find_module_type("torch.nn.modules.activation.Hardswish"));
  EXPECT_EQ(find_module_type("Hardswish")->call, nullptr);
  EXPECT_EQ(find_module_type("torch.nn.modules.rnn.LSTM"), find_module_type(*torch::nn::LSTM(2, 2)));
  EXPECT_EQ(find_module_type("LSTM")->cost_operator, "aten::lstm");
  EXPECT_EQ(find_module_type("Unheard"), nullptr);
}

}  // namespace fx::module_row_test
