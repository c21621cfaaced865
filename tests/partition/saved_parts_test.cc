// Parts of a program whose sizes are free, saved by themselves: whole numbers and lists of them go from part to part.
#include <fxgraph/rewriter/partition/split_module.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <map>

#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/module/code.h>
#include <fxgraph/rewriter/partition/submodule_inputs.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"
#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::saved_parts_test {

using torch::Tensor;

struct Heads : torch::nn::Module {
  Heads() { project = register_module("project", torch::nn::Linear(6, 8)); }
  Tensor forward(const Tensor& x) {
    const std::int64_t batch = x.size(0), length = x.size(1);
    const Tensor heads = project(x).view({batch, length, 2, 4}).transpose(1, 2);
    const Tensor weights = torch::softmax(heads.matmul(heads.transpose(-1, -2)) / double(length), -1);
    return weights.matmul(heads).transpose(1, 2).reshape({batch, length, 8}) * double(batch);
  }
  torch::nn::Linear project{nullptr};
};

/// The program in parts of so many calls, and where each comes from.
std::shared_ptr<GraphModule> in_parts(const GraphModule& gm, std::size_t calls) {
  std::map<const Node*, std::int64_t> part;
  std::size_t next = 0;
  for (const Node& node : gm.graph().nodes()) {
    if (node.is_callable()) part[&node] = static_cast<std::int64_t>(next++ / calls);
  }
  return split_module(gm, [&](const Node& node) { return part.at(&node); });
}

using SavedAndLoaded = std::function<std::shared_ptr<GraphModule>(GraphModule& part, std::vector<c10::IValue> given)>;

/// With each part as it is after it was saved and loaded, what it was given in a run on the example beside.
std::shared_ptr<GraphModule> with_parts(GraphModule& split, const Tensor& example, const SavedAndLoaded& saved) {
  const auto whole = split.clone_graph_module();
  const SubmoduleInputs given = inputs_of_submodules(split, {example});
  EXPECT_GT(given.size(), 1u);
  for (const auto& [path, inputs] : given) {
    const auto part = std::dynamic_pointer_cast<GraphModule>(split.submodule(path));
    whole->replace_submodule(path, saved(*part, inputs));
  }
  return whole;
}

class SavedParts : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Tensor example_ = torch::rand({3, 5, 6});
  const std::shared_ptr<GraphModule> gm_ = symbolic_trace(std::make_shared<Heads>(), {example_});
  const std::shared_ptr<GraphModule> split_ = in_parts(*gm_, GetParam());
  const testing::ScratchFolder folder_;
};

TEST_P(SavedParts, DoTheSameAsTorchScript) {
  const torch::NoGradGuard no_grad;
  const auto whole = with_parts(*split_, example_, [&](GraphModule& part, const std::vector<c10::IValue>&) {
    part.save(folder_ / "part.pt");
    return load(folder_ / "part.pt");
  });
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{3, 5, 6}, {7, 2, 6}, {2, 9, 6}}) {
    const Tensor x = torch::rand(sizes);
    EXPECT_TRUE(whole->forward(x).equal(gm_->forward(x))) << x.sizes();
  }
}

std::shared_ptr<GraphModule> as_archive(GraphModule& part, std::vector<c10::IValue> given) {
  const testing::ScratchFolder folder;
  save_exported(part, folder / "part.pt2", {.inputs = std::move(given), .sizes = ExportedSizes::found});
  return load(folder / "part.pt2");
}

// A part alone does not know that its inputs come of one tensor: what only a product of their sizes ties is fixed.
TEST_P(SavedParts, DoTheSameAsArchivesOrRefuseOtherSizes) {
  const torch::NoGradGuard no_grad;
  const auto whole = with_parts(*split_, example_, as_archive);
  EXPECT_TRUE(whole->forward(example_).equal(gm_->forward(example_)));
  const Tensor x = torch::rand({7, 2, 6});
  EXPECT_THAT(testing::error_of([&] { EXPECT_TRUE(whole->forward(x).equal(gm_->forward(x))); }),
              ::testing::AnyOf(::testing::IsEmpty(), ::testing::HasSubstr(" must be ")));
}

INSTANTIATE_TEST_SUITE_P(OfSoManyCalls, SavedParts, ::testing::Values(1, 2, 3, 5, 8));

TEST(SavedPartsOfNumbers, VaryAsArchives) {
  const torch::NoGradGuard no_grad;
  const Tensor example = torch::rand({3, 4});
  const auto gm = symbolic_trace(
      [](const Tensor& x) {
        const std::int64_t rows = x.size(0);
        return torch::relu(x).sum(0) * rows + torch::arange(rows).sum();
      },
      {example});
  for (const std::size_t calls : {1, 2, 3}) {
    const auto whole = with_parts(*in_parts(*gm, calls), example, as_archive);
    for (const std::int64_t rows : {3, 8, 2}) {
      const Tensor x = torch::rand({rows, 4});
      EXPECT_TRUE(whole->forward(x).equal(gm->forward(x))) << rows << " rows, parts of " << calls;
    }
  }
}

// A folder is Python's: it says the types of what it takes.
TEST(SavedPartsInPython, SayWhichInputsAreNumbers) {
  const auto gm = symbolic_trace(std::make_shared<Heads>(), {torch::rand({3, 5, 6})});
  const auto split = in_parts(*gm, 3);
  const testing::ScratchFolder folder;
  std::string all;
  for (const Node* call : split->graph().find_nodes(Op::call_module)) {
    const auto part = std::dynamic_pointer_cast<GraphModule>(split->submodule(call->target().str()));
    to_folder(*part, folder / call->target().str(), "Part");
    all += testing::file_text((folder / call->target().str()).string() + "/module.py");
  }
  EXPECT_THAT(all, ::testing::ContainsRegex("def forward\\(self.*: int"));
}

}  // namespace fx::saved_parts_test
