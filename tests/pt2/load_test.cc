// Archives that PyTorch wrote: loaded, run, differentiated, printed.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/pt2/archives.h"

namespace fx::load_test {

using namespace fx::testing;

std::shared_ptr<GraphModule> loaded(const std::string& name) { return load_exported(corpus() + "/" + name + ".pt2"); }

class Archive : public ::testing::TestWithParam<std::string> {};

TEST_P(Archive, GivesTheOutputsOfPython) {
  const auto gm = loaded(GetParam());
  gm->graph().lint();
  at::manual_seed(0);
  expect_all_equal(gm->run(pack_inputs(*gm, recorded_inputs(GetParam()))), recorded(GetParam()).outputs);
}

TEST_P(Archive, RunsAtOtherSizesAsPythonDoes) {
  for (int at = 1; has_recording(stem_of(GetParam()), at); ++at) {
    SCOPED_TRACE("call " + std::to_string(at));
    const auto gm = loaded(GetParam());  // each call was recorded with the buffers as they were
    const Record record = recorded(stem_of(GetParam()), at);
    at::manual_seed(0);
    expect_all_equal(gm->run(pack_inputs(*gm, record.inputs)), record.outputs);
  }
}

// The sum of all outputs, of the same random numbers as Python's.
at::Tensor loss_of(GraphModule& gm, const std::vector<c10::IValue>& inputs) {
  at::manual_seed(0);
  at::Tensor loss;
  for (const c10::IValue& value : leaves_of(gm.run(pack_inputs(gm, inputs)))) {
    if (!value.isTensor() || !value.toTensor().requires_grad()) continue;
    const at::Tensor real = value.toTensor().is_complex() ? at::real(value.toTensor()) : value.toTensor();
    loss = loss.defined() ? loss + real.to(at::kDouble).sum() : real.to(at::kDouble).sum();
  }
  return loss;
}

TEST_P(Archive, GivesTheGradientsAndStateOfPython) {
  const Record record = recorded(GetParam());
  const auto gm = loaded(GetParam());
  const std::vector<c10::IValue> inputs = recorded_inputs(GetParam());
  const at::Tensor loss = loss_of(*gm, inputs);
  for (std::size_t i = 0; i < record.after.size(); ++i)
    expect_equal(inputs[i], record.after[i], "input " + std::to_string(i));
  for (const auto& [name, value] : record.state) {
    if (gm->find_attribute(name).defined()) expect_equal(gm->attribute(name), value, name);
  }
  if (record.gradients.empty()) return;  // nor does Python differentiate it
  if (loss.defined()) loss.backward();
  for (const auto& [name, value] : record.gradients) {
    const at::Tensor grad = gm->attribute(name).grad();
    // A branch that is not taken has no gradient here, zeros in Python.
    expect_equal(grad.defined() ? grad : at::zeros_like(value.toTensor()), value, "gradient of " + name);
  }
}

TEST_P(Archive, TrainsAStepAsPythonDoes) {
  const Record record = recorded(GetParam());
  const auto gm = loaded(GetParam());
  const at::Tensor loss = loss_of(*gm, recorded_inputs(GetParam()));
  if (!loss.defined() || record.gradients.empty()) return;
  loss.backward();
  {
    const at::NoGradGuard no_grad;
    std::set<const void*> stepped;  // what is tied is one parameter
    for (at::Tensor& parameter : gm->parameters()) {
      if (parameter.grad().defined() && stepped.insert(parameter.unsafeGetTensorImpl()).second)
        parameter.sub_(0.01 * parameter.grad());
    }
  }
  at::manual_seed(0);
  const c10::IValue outputs = gm->run(pack_inputs(*gm, recorded_inputs(GetParam())));
  if (!record.stepped.empty()) expect_all_equal(outputs, record.stepped);
}

TEST_P(Archive, PrintsATextThatReadsBack) {
  const std::string text = print_graph(loaded(GetParam())->graph());
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

INSTANTIATE_TEST_SUITE_P(OfPython, Archive, ::testing::ValuesIn(archives()), archive_test_name);

}  // namespace fx::load_test
