// Members that were computed of a parameter before the program runs: gradients reach the parameter through them, in the
// graph, its clones and what is saved of it; what cannot be saved with its history is refused.
#include <functional>
#include <memory>
#include <string>

#include <fxgraph/module/code.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::computed_members_test {

using torch::Tensor;
using torch::indexing::Slice;

struct Row {
  const char* name;
  std::function<Tensor(Tensor)> of_weight;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

struct Model : torch::nn::Module {
  explicit Model(const Row& row) : kept(row.of_weight(weight)) {}
  Tensor forward(Tensor x) { return (x.matmul(weight.t()).tanh().sum() + kept.sin().sum()) * x.sum(); }

  Tensor weight = register_parameter("weight", torch::rand({3, 4}));
  Tensor kept;
};

struct Answer {
  Tensor value, gradient;
};

Answer answer_of(const std::function<Tensor(Tensor)>& run, Tensor weight, const Tensor& x) {
  weight.mutable_grad() = Tensor();
  const Tensor value = run(x);
  value.backward({}, /*retain_graph=*/true);
  return {value.detach(), weight.grad().clone()};
}

void expect_same(const Answer& found, const Answer& expected) {
  EXPECT_TRUE(testing::same_value(found.value, expected.value, 1e-6));
  EXPECT_TRUE(testing::same_value(found.gradient, expected.gradient, 1e-6));
}

// Twice, the second time with other numbers in the parameter.
void expect_same(GraphModule& gm, Model& model) {
  const Tensor weight = gm.attribute("weight");
  const auto run = [&](Tensor x) { return gm.run({x}).toTensor(); };
  const auto eager = [&](Tensor x) { return model.forward(std::move(x)); };
  const Tensor before = model.weight.detach().clone();
  for (const double step : {0.0, 0.25}) {
    {
      const torch::NoGradGuard guard;
      model.weight.copy_(before + step);
      weight.copy_(before + step);
    }
    const Tensor x = torch::rand({2, 4});
    expect_same(answer_of(run, weight, x), answer_of(eager, model.weight, x));
  }
  const torch::NoGradGuard guard;
  model.weight.copy_(before);
}

const Row kViews[] = {
    {"transposed", [](Tensor w) { return w.t(); }},
    {"part",
     [](Tensor w) {
       return w.index({Slice(1), Slice(0, 4, 2)});
     }},
    {"row", [](Tensor w) { return w[2]; }},
    {"flat", [](Tensor w) { return w.view(-1); }},
    {"expanded",
     [](Tensor w) {
       return w.unsqueeze(1).expand({3, 2, 4});
     }},
    {"diagonal", [](Tensor w) { return w.diagonal(); }},
    {"view_of_a_view",
     [](Tensor w) {
       return w.t().slice(0, 1).permute({1, 0}).unfold(1, 2, 1);
     }},
    {"without_gradient", [](Tensor w) { return w.detach().t(); }},
};

class KeptViews : public ::testing::TestWithParam<Row> {};

TEST_P(KeptViews, PassGradientsOn) {
  torch::manual_seed(3);
  const auto model = std::make_shared<Model>(GetParam());
  const auto gm = symbolic_trace(model, {torch::rand({2, 4})});
  gm->graph().lint();
  expect_same(*gm, *model);
  expect_same(*gm->clone_graph_module(), *model);
  const testing::ScratchFolder folder;
  for (const char* file : {"kept.pt", "kept.pt2"}) {
    SCOPED_TRACE(file);
    const std::string path = (folder / file).string();
    gm->save(path);
    expect_same(*load(path), *model);
  }
}

INSTANTIATE_TEST_SUITE_P(Views, KeptViews, ::testing::ValuesIn(kViews),
                         [](const auto& info) { return std::string(info.param.name); });

const Row kComputed[] = {
    {"doubled", [](Tensor w) { return w * 2; }},
    {"joined",
     [](Tensor w) {
       return torch::cat({w, w}, 1).t();
     }},
    {"view_of_a_copy", [](Tensor w) { return w.clone().t(); }},
    {"of_another_type", [](Tensor w) { return w.to(torch::kDouble); }},
    {"normed", [](Tensor w) { return w / w.norm(); }},
};

class KeptResults : public ::testing::TestWithParam<Row> {};

TEST_P(KeptResults, AreNotSaved) {
  const auto model = std::make_shared<Model>(GetParam());
  const auto gm = symbolic_trace(model, {torch::rand({2, 4})});
  const Tensor x = torch::rand({2, 4});
  const auto run = [&](Tensor input) { return gm->run({input}).toTensor(); };
  const auto eager = [&](Tensor input) { return model->forward(std::move(input)); };
  expect_same(answer_of(run, model->weight, x), answer_of(eager, model->weight, x));
  const testing::ScratchFolder folder;
  const auto expect_refused = [](const std::function<void()>& save) {
    try {
      save();
      ADD_FAILURE() << "is saved";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::HasSubstr("was computed of one that is trained"));
    }
  };
  for (const char* file : {"kept.pt", "kept.pt2"}) expect_refused([&] { gm->save((folder / file).string()); });
  expect_refused([&] { to_folder(*gm, (folder / "code").string(), "Kept"); });
}

INSTANTIATE_TEST_SUITE_P(Results, KeptResults, ::testing::ValuesIn(kComputed),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::computed_members_test
