// Gradients where a program keeps state in buffers: written in place, replaced, read as data. They are the program's,
// in this call and the next, in both modes.
#include <functional>
#include <memory>
#include <string>

#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::state_gradients_test {

using torch::Tensor;

struct Model : torch::nn::Module {
  using Step = std::function<Tensor(Model&, Tensor)>;
  explicit Model(Step given) : step(std::move(given)) {}
  Tensor forward(Tensor x) { return step(*this, std::move(x)); }

  Step step;
  torch::nn::Linear a = register_module("a", torch::nn::Linear(3, 3));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(3, 3));
  torch::nn::GRUCell cell = register_module("cell", torch::nn::GRUCell(3, 3));
  Tensor s = register_buffer("s", torch::full({3}, 0.5));
  Tensor h = register_buffer("h", torch::zeros({2, 3}));
};

struct Row {
  const char* name;
  Model::Step step;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"divides_by_what_is_replaced",
       [](Model& m, Tensor x) {
         const Tensor y = m.a(x) / m.s;
         m.s = m.s * 0.9 + x.detach().abs().mean(0) * 0.1;
         return y;
       }},
      {"cell_of_what_is_replaced",
       [](Model& m, Tensor x) {
         const Tensor next = m.cell(x, m.h);
         m.h = next.detach();
         return next;
       }},
      {"layer_of_what_is_replaced",
       [](Model& m, Tensor x) {
         const Tensor next = torch::tanh(m.a(x) + m.b(m.h));
         m.h = next.detach();
         return next;
       }},
      {"old_value_beside_the_new",
       [](Model& m, Tensor x) {
         const Tensor old = m.s;
         m.s = m.a(x).detach().mean(0);
         return m.a(x) * old + m.s;
       }},
      {"view_of_what_is_replaced",
       [](Model& m, Tensor x) {
         const Tensor y = m.a(x).t() * m.h.t();
         m.h = (m.h + x).detach();
         return y;
       }},
      {"statistics_that_nothing_reads",
       [](Model& m, Tensor x) {
         m.s = m.s * 0.9 + x.detach().mean(0) * 0.1;
         return m.a(x);
       }},
      {"data_of_what_was_written",
       [](Model& m, Tensor x) {
         m.s.mul_(0.9).add_(m.a(x).mean(0), 0.1);
         const Tensor y = m.a(x) - m.s.data();
         m.s.detach_();
         return y;
       }},
      {"detached_from_what_was_written",
       [](Model& m, Tensor x) {
         m.s.mul_(0.9).add_(m.a(x).mean(0), 0.1);
         const Tensor y = m.a(x) - m.s.detach();
         m.s.detach_();
         return y;
       }},
      {"data_of_results",
       [](Model& m, Tensor x) {
         const Tensor y = m.a(x);
         return y * (y * x).tensor_data() + y * (y * 2).variable_data() + y * y.data();
       }},
  };
  return kRows;
}

using Tensors = std::vector<Tensor>;

// The result, and what x and the parameters get of it.
Tensors answers(const std::function<Tensor(Tensor)>& run, const Tensors& parameters, const Tensor& x) {
  const Tensor input = x.clone().requires_grad_();
  for (Tensor each : parameters) each.mutable_grad() = Tensor();
  const Tensor value = run(input);
  value.pow(2).sum().backward();
  Tensors all = {value.detach(), input.grad().clone()};
  for (const Tensor& each : parameters) all.push_back(each.grad().defined() ? each.grad().clone() : Tensor());
  return all;
}

class StateGradients : public ::testing::TestWithParam<std::tuple<Row, bool>> {};

TEST_P(StateGradients, AreTheProgramsInEachCall) {
  const auto& [row, training] = GetParam();
  torch::manual_seed(3);
  const auto model = std::make_shared<Model>(row.step);
  model->train(training);
  const auto gm = symbolic_trace(model, {torch::rand({2, 3})});
  gm->graph().lint();
  const testing::ScratchFolder folder;
  const std::string path = (folder / "state.pt").string();
  gm->save(path);
  const auto copy = gm->clone_graph_module(), loaded = load(path);
  Tensors inputs;
  for (int call = 0; call < 3; ++call) inputs.push_back(torch::rand({2, 3}));
  const std::vector<std::string> names = {"a.weight", "a.bias", "b.weight", "cell.weight_ih", "cell.weight_hh"};
  std::vector<Tensors> expected;
  for (const Tensor& x : inputs) {
    Tensors parameters;
    for (const std::string& name : names) parameters.push_back(model->named_parameters()[name]);
    expected.push_back(answers([&](Tensor input) { return model->forward(std::move(input)); }, parameters, x));
  }
  for (const auto& each : {copy, loaded}) {
    for (std::size_t call = 0; call < inputs.size(); ++call) {
      Tensors parameters;
      for (const std::string& name : names) {
        const Tensor found = each->find_attribute(name);
        parameters.push_back(found.defined() ? found : torch::zeros({1}));
      }
      const Tensors found =
          answers([&](Tensor input) { return each->run({input}).toTensor(); }, parameters, inputs[call]);
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].defined(), expected[call][i].defined()) << call << ' ' << i << gm->graph();
        if (found[i].defined()) {
          EXPECT_TRUE(testing::same_value(found[i], expected[call][i], 1e-5)) << call << ' ' << i << gm->graph();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, StateGradients, ::testing::Combine(::testing::ValuesIn(rows()), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "_training" : "_evaluation");
                         });

}  // namespace fx::state_gradients_test
