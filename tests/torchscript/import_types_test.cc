// Types and numbers of TorchScript programs: what the importer may decide by them, and what it must keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

namespace fx::import_types_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

torch::jit::Module module_of(const std::string& code) {
  torch::jit::Module module(c10::QualifiedName("__torch__.mine.M"), std::make_shared<torch::jit::CompilationUnit>(),
                            true);
  if (!code.empty()) module.define(code);
  return module;
}

/// `x <op> number`, as a trace has it: the number is a tensor without dimensions.
torch::jit::Module traced(const char* op, const torch::Tensor& number) {
  torch::jit::Module module = module_of("");
  auto body = std::make_shared<torch::jit::Graph>();
  body->addInput("self")->setType(module.type());
  torch::jit::Value* x = body->addInput("x");
  body->registerOutput(body->insert(c10::Symbol::fromQualString(op), {x, body->insertConstant(number)}));
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), body));
  return module;
}

// As tensors they would make float64 of a float32 without dimensions, and of integers.
TEST(ImportTypes, NumbersThatATraceStoredAsTensorsAreNumbers) {
  for (const char* op : {"aten::add", "aten::sub", "aten::mul", "aten::div"}) {
    torch::jit::Module module = traced(op, torch::tensor(2.5, torch::kDouble));
    const auto gm = from_torchscript(module);
    EXPECT_THAT(print_graph(gm->graph()), AllOf(HasSubstr(".Scalar](args = (%x, 2.5)"), Not(HasSubstr("get_attr"))));
    EXPECT_EQ(gm->buffers().size(), module.buffers().size());
    for (const torch::Tensor& x : {torch::tensor(1.5f), torch::tensor({1, 2}), sample(), sample().to(torch::kHalf)}) {
      const torch::Tensor expected = module.forward({x}).toTensor(), got = gm->forward(x);
      EXPECT_EQ(got.scalar_type(), expected.scalar_type()) << op;
      EXPECT_TRUE(got.equal(expected)) << op;
    }
  }
}

TEST(ImportTypes, OtherConstantTensorsStayTensors) {
  EXPECT_THAT(print_graph(from_torchscript(traced("aten::mul", torch::tensor({2.5}, torch::kDouble)))->graph()),
              HasSubstr("get_attr[target=_tensor_constant0]"));
  EXPECT_THAT(print_graph(from_torchscript(traced("aten::atan2", torch::tensor(2.5, torch::kDouble)))->graph()),
              HasSubstr("get_attr[target=_tensor_constant0]"));
}

TEST(ImportTypes, NamedTuplesAreTakenAsTuples) {
  const auto tensor = c10::TensorType::get();
  const auto pair =
      c10::TupleType::createNamed(c10::QualifiedName("__torch__.mine.Pair"), std::vector<std::string>{"a", "b"},
                                  std::vector<c10::TypePtr>{tensor, tensor});
  torch::jit::Module module = module_of("");
  auto body = std::make_shared<torch::jit::Graph>();
  body->addInput("self")->setType(module.type());
  torch::jit::Value* input = body->addInput("p")->setType(c10::ListType::create(pair));
  torch::jit::Value* first = body->insert(c10::aten::__getitem__, {input, 0});
  body->registerOutput(body->insertNode(body->createTupleUnpack(first))->outputs()[1]);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), body));
  const auto gm = from_torchscript(module);
  EXPECT_THAT(print_graph(gm->graph()), HasSubstr("%p : List[Tuple[Tensor, Tensor]]"));
}

TEST(ImportTypes, OfAttributesDecideAndStayInTheGraph) {
  torch::jit::Module module = module_of("");
  module.register_buffer("table", torch::ones({4}));
  module.define(
      "def forward(self, x):\n  if self.table.dtype == 4:\n    x = x.neg()\n"
      "  if self.table.dim() != 1 or self.table.dtype == 4:\n    x = x.neg()\n  return x.to(self.table.dtype)\n");
  const auto gm = from_torchscript(module);
  EXPECT_TRUE(gm->forward(sample()).equal(sample()));
  EXPECT_THAT(print_graph(gm->graph()), AllOf(HasSubstr("prim.dtype"), Not(HasSubstr("neg"))));
}

}  // namespace fx::import_types_test
