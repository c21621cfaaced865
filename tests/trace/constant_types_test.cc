// Constants of a trace keep their types when the GraphModule is converted, as they do in C++.
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>

#include "tests/support/scratch_folder.h"
#include "tests/trace/round_trips.h"

namespace fx::constant_types_test {

using torch::Tensor;

struct Net : torch::nn::Module {
  torch::nn::Linear fc{3, 3};
  Tensor scale, loose = torch::tensor({0.5F, 0.25F, 3.0F});
  torch::nn::Linear unregistered{3, 3};
  Net() {
    register_module("fc", fc);
    scale = register_buffer("scale", torch::rand({3}));
  }
  std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> forward(Tensor x) {
    const Tensor picked = fc(x).index_select(1, torch::tensor({2, 0})) + scale.sum();
    const std::vector<float> lent = {0.1F, 0.2F};
    const Tensor blob = torch::from_blob(const_cast<float*>(lent.data()), {2});
    return {picked * torch::tensor({0.1, 0.2}), torch::tensor({0.1, 0.2}) * 3, blob + 1,
            x.to(torch::kFloat) * loose + torch::full({3}, 0.1), unregistered(x.to(torch::kFloat))};
  }
};

TEST(ConstantTypes, StayWhenTheModuleIsConverted) {
  for (const auto type : {torch::kDouble, torch::kBFloat16}) {
    torch::manual_seed(1);
    const auto net = std::make_shared<Net>();
    const Tensor x = torch::rand({4, 3}), same = torch::rand({2, 3});
    const auto gm = symbolic_trace(net, {same});
    const testing::ScratchFolder folder;
    const std::string file = folder / "net.pt2";
    save_exported(*gm, file, {.inputs = {same}});
    std::vector<std::shared_ptr<GraphModule>> forms = {
        gm->clone_graph_module(), from_torchscript(testing::saved_and_loaded(*gm)), load_exported(file), gm};
    for (const auto& form : forms) form->to(type);
    net->to(type);
    const auto [a, b, c, d, e] = net->forward(x.to(type));
    const c10::IValue expected = c10::ivalue::Tuple::create({a, b, c, d, e});
    for (const auto& form : forms) EXPECT_TRUE(testing::same_value(form->run({x.to(type)}), expected, 1e-9));
    EXPECT_EQ(net->loose.scalar_type(), torch::kFloat);  // it shares its memory with the graph's
    gm->to(torch::kCPU);
    gm->to(torch::kCPU, torch::kFloat);
    net->to(torch::kFloat);
    EXPECT_TRUE(testing::same_value(gm->run({x}), example(net->forward(x)), 1e-9));
  }
}

Tensor as_number(Tensor tensor) {
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// LibTorch's mark of a number that became a tensor: it does not widen the type of a result.
TEST(ConstantTypes, OfNumbersDoNotWidenOthers) {
  const Tensor outside = as_number(torch::tensor(0.5, torch::kDouble));
  const auto program = [outside](Tensor x, Tensor y) {
    const Tensor inside = as_number(torch::tensor(static_cast<double>(y.size(0))));
    return std::vector<Tensor>{
        x * outside, x * inside, outside - x, y + inside, torch::atan2(y, outside), y.clone().fill_(inside)};
  };
  const Tensor x = torch::tensor(1.5F);
  const auto gm = symbolic_trace(program, {x, torch::rand({3})});
  const testing::ScratchFolder folder;
  const std::string file = folder / "net.pt2";
  save_exported(*gm, file, {.inputs = {x, torch::rand({3})}});
  const std::vector<std::shared_ptr<GraphModule>> forms = {
      gm->clone_graph_module(), from_torchscript(testing::saved_and_loaded(*gm)), load_exported(file), gm};
  for (const auto& form : forms) {
    for (const std::int64_t size : {3, 5}) {
      const Tensor y = torch::rand({size});
      EXPECT_TRUE(testing::same_value(form->run({x, y}), example(program(x, y)), 0)) << form->graph();
    }
  }
}

TEST(ConstantTypes, OfTracedValuesCannotBeMarked) {
  EXPECT_THROW(symbolic_trace([](Tensor x) { return x * as_number(x.sum()); }, {torch::rand({3})}), Error);
}

}  // namespace fx::constant_types_test
