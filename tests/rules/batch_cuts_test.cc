// Batches that are cut into micro-batches: which programs may be (computes_across_samples), how they run, what is
// saved, and that optimize() cuts where it is faster.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/script.h>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/batch.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/program_facts.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/error_of.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::batch_cuts_test {

using testing::error_of;
using ::testing::HasSubstr;

constexpr const char* kInputs =
    "%x = placeholder[target=x]\n%y = placeholder[target=y]\n%w = get_attr[target=w]\n"
    "%b = get_attr[target=b]\n";

/// x: [4, 6, 8], y: [4, 6, 8]; w: [8, 8], b: [8].
std::shared_ptr<GraphModule> program(const std::string& lines) {
  at::manual_seed(3);
  const GraphModule::Attributes attributes = {{"w", at::randn({8, 8})}, {"b", at::randn({8})}};
  return std::make_shared<GraphModule>(attributes, parse_graph("graph():\n" + (kInputs + lines)));
}

std::vector<TensorInfo> forms(std::int64_t batch = 4) { return {{.sizes = {batch, 6, 8}}, {.sizes = {batch, 6, 8}}}; }
std::vector<c10::IValue> inputs(std::int64_t batch) { return {at::randn({batch, 6, 8}), at::randn({batch, 6, 8})}; }

std::optional<AcrossSamples> across(GraphModule& module, const std::vector<TensorInfo>& of = forms()) {
  rules::ProgramFacts facts(module, of);
  Shapes shapes;
  const auto found = facts.across_samples(shapes);
  EXPECT_TRUE(facts.known()) << facts.unknown_because();
  return found;
}

const std::vector<MicroBatches::Sizes> kBoth = {{-1, -1, 8}, {-1, -1, 8}};
const MicroBatches kTwo{2, kBoth};

// ── Which programs ───────────────────────────────────────────────────────────────────────────────────────────────────

std::string call(const std::string& name, const std::string& target, const std::string& args) {
  return "%" + name + " = call_function[target=torch.ops.aten." + target + "](args = (" + args + "))\n";
}

struct Case {
  const char* name;
  std::string lines;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

const std::string kSize = call("n", "size.int", "%x, 0");

class Accepted : public ::testing::TestWithParam<Case> {};

TEST_P(Accepted, AndCutComputesTheSame) {
  const auto module = program(GetParam().lines);
  const auto why = across(*module);
  ASSERT_FALSE(why) << why->node << ": " << why->reason;
  for (const std::int64_t batch : {1, 2, 5, 6}) {
    const std::vector<c10::IValue> given = inputs(batch);
    module->set_micro_batches({});
    const c10::IValue whole = module->run(copies_of(given));
    for (const std::int64_t size : {1, 2, 4}) {
      module->set_micro_batches({size, kBoth});
      EXPECT_LT(relative_difference(whole, module->run(copies_of(given))), 1e-5)
          << "batch " << batch << ", by " << size;
    }
  }
}

const Case kAccepted[] = {
    {"pointwise", call("r", "add.Tensor", "%x, %y") + call("s", "mul.Tensor", "%r, %b") + "return s"},
    {"in_place", call("r", "add.Tensor", "%x, %y") + call("s", "relu_", "%r") + "return s"},
    {"written_input", call("r", "relu_", "%x") + call("s", "add.Tensor", "%x, %y") + "return s"},
    {"linear", call("r", "linear", "%x, %w, %b") + call("s", "softmax.int", "%r, -1") + "return s"},
    {"reduced", call("r", "mean.dim", "%x, [1, 2]") + "return r"},
    {"kept_dimension", call("r", "amax", "%x, [1], True") + call("s", "sub.Tensor", "%y, %r") + "return s"},
    {"flattened", call("r", "flatten.using_ints", "%x, 1, -1") + call("s", "relu", "%r") + "return s"},
    {"batch_is_merged",
     call("l", "linear", "%x, %w") + call("r", "reshape", "%l, [-1, 8]") + call("s", "mm", "%r, %w") + "return s"},
    {"and_taken_apart_again", kSize + call("r", "reshape", "%x, [-1, 8]") + call("s", "addmm", "%b, %r, %w") +
                                  call("t", "view", "%s, [%n, 6, 8]") + call("u", "add.Tensor", "%t, %y") + "return u"},
    {"by_a_count", kSize + "%m = call_function[target=operator.mul](args = (%n, 6))\n" +
                       call("r", "reshape", "%x, [%m, -1]") + call("s", "relu", "%r") + "return s"},
    {"attention", kSize + call("q", "linear", "%x, %w") + call("h", "view", "%q, [%n, 6, 2, 4]") +
                      call("p", "permute", "%h, [2, 0, 1, 3]") + call("t", "transpose.int", "%p, -2, -1") +
                      call("m", "matmul", "%p, %t") + call("s", "softmax.int", "%m, -1") +
                      call("o", "matmul", "%s, %p") + call("b1", "permute", "%o, [1, 2, 0, 3]") +
                      call("r", "reshape", "%b1, [%n, 6, 8]") + "return r"},
    {"sequence_first",  // as torch.nn.MultiheadAttention: other dimensions before the batch, and one with it
     kSize + call("l", "size.int", "%x, 1") + call("p", "transpose.int", "%x, 0, 1") + call("q", "linear", "%p, %w") +
         "%m = call_function[target=operator.mul](args = (%n, 2))\n" + call("h", "reshape", "%q, [%l, %m, 4]") +
         call("t", "transpose.int", "%h, 0, 1") + call("k", "transpose.int", "%t, 1, 2") + call("s", "bmm", "%t, %k") +
         call("o", "bmm", "%s, %t") + call("u", "transpose.int", "%o, 0, 1") +
         "%z = call_function[target=operator.mul](args = (%l, %n))\n" + call("v", "reshape", "%u, [%z, 8]") +
         call("c", "linear", "%v, %w, %b") + call("d", "view", "%c, [%l, %n, 8]") +
         call("r", "transpose.int", "%d, 0, 1") + call("e", "add.Tensor", "%r, %y") + "return e"},
    {"steps_of_a_sequence", kSize + call("l", "size.int", "%x, 1") + call("w1", "linear", "%x, %w") +
                                "%m = call_function[target=operator.mul](args = (%n, %l))\n" +
                                call("f", "reshape", "%w1, [%m, 2, 4]") + call("g", "flatten.using_ints", "%f, 1, 2") +
                                call("h", "view", "%g, [%n, %l, -1]") + call("r", "mean.dim", "%h, [1]") + "return r"},
    {"class_token", kSize + call("v", "view", "%b, [1, 1, 8]") + call("e", "expand", "%v, [%n, -1, -1]") +
                        "%r = call_function[target=torch.ops.aten.cat.default](args = ([%e, %x], 1))\nreturn r"},
    {"zeros_of_the_batch", kSize + call("z", "zeros", "[%n, 6, 8]") + call("r", "add.Tensor", "%z, %x") + "return r"},
    {"split", call("s", "split.Tensor", "%x, 2, 1") +
                  "%a = call_function[target=operator.getitem](args = (%s, 0))\n%c = "
                  "call_function[target=operator.getitem](args = (%s, 2))\n" +
                  call("r", "mul.Tensor", "%a, %c") + "return r"},
    {"index", "%i = call_function[target=operator.getitem](args = (%x, (slice(None, None, None), 0)))\n" +
                  call("r", "neg", "%i") + "return r"},
    {"all_samples", call("s", "slice.Tensor", "%x, 0, 0, 9223372036854775807") + call("r", "neg", "%s") + "return r"},
    {"several_results",
     call("r", "neg", "%x") + call("s", "exp", "%y") + call("t", "sum.dim_IntList", "%x, [1]") + "return (r, (s, t))"},
    {"functions_and_methods",
     "%r = call_function[target=torch.nn.functional.relu](args = (%x,))\n%s = "
     "call_method[target=transpose](args = (%r, 1, 2))\n%t = "
     "call_function[target=operator.add](args = (%s, 1))\nreturn t"},
    {"dropout_in_evaluation", call("r", "neg", "%x") + call("s", "dropout_", "%r, 0.5, False") + "return s"},
    {"what_samples_share", call("v", "t", "%w") + call("r", "matmul", "%x, %v") + "return r"},
};
INSTANTIATE_TEST_SUITE_P(Batches, Accepted, ::testing::ValuesIn(kAccepted),
                         [](const auto& test) { return test.param.name; });

struct RefusedCase {
  const char* name;
  std::string lines;
  const char* reason;
};

void PrintTo(const RefusedCase& test, std::ostream* out) { *out << test.name; }

class Refused : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(Refused, SaysWhy) {
  const auto module = program(GetParam().lines);
  const auto why = across(*module);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->reason, HasSubstr(GetParam().reason)) << why->node;
}

const RefusedCase kRefused[] = {
    {"mean_of_all", call("r", "mean", "%x") + "return r", "over all dimensions"},
    {"mean_of_the_batch", call("r", "mean.dim", "%x, [0], True") + call("s", "sub.Tensor", "%x, %r") + "return s",
     "along the batch"},
    {"softmax", call("r", "softmax.int", "%x, 0") + "return r", "along the batch"},
    {"norm_in_training",
     call("t", "transpose.int", "%x, 1, 2") +
         call("r", "batch_norm", "%t, %b, None, None, None, True, 0.1, 1e-5, False") + "return r",
     "normalised over the batch"},
    {"literal_batch", call("r", "reshape", "%x, [4, 48]") + "return r", ""},
    {"between_samples",
     call("f", "flatten.using_ints", "%x, 1, -1") + call("g", "t", "%f") + call("r", "mm", "%f, %g") + "return r", ""},
    {"one_sample", call("s", "select.int", "%x, 0, 0") + call("r", "add.Tensor", "%x, %s") + "return r", "batch"},
    {"squeeze", call("r", "squeeze", "%x") + "return r", "batch of one"},
    {"batch_elsewhere", call("r", "transpose.int", "%x, 0, 1") + call("s", "neg", "%r") + "return s",
     "lie in dimension 1"},
    {"mixed",
     call("t", "transpose.int", "%x, 0, 1") + call("r", "reshape", "%t, [-1, 8]") + call("s", "neg", "%r") + "return s",
     "mixes the batch"},
    {"broadcast_across",
     call("a", "select.int", "%x, 1, 0") + call("m", "matmul", "%x, %w") + call("t", "select.int", "%m, 1, 1") +
         call("u", "unsqueeze", "%a, 0") + call("v", "unsqueeze", "%t, 1") + call("r", "mul.Tensor", "%u, %v") +
         "return r",
     "different places"},
    {"count_as_number", kSize + call("r", "div.Scalar", "%x, %n") + "return r", ""},
    {"random", call("r", "rand_like", "%x") + "return r", "random"},
    {"written_weight", call("a", "add_.Tensor", "%b, 1") + call("r", "add.Tensor", "%x, %a") + "return r",
     "writes what the samples share"},
    {"weight", "return (x, w)", ""},
    {"input", "return x", "memory of something else"},
    {"view_of_an_input", kSize + call("r", "view", "%x, [%n, -1]") + "return r", "memory of something else"},
    {"twice", call("r", "neg", "%x") + "return (r, r)", "the memory of"},
    {"not_in_order",
     call("l", "linear", "%x, %w") + call("t", "transpose.int", "%l, 0, 1") +
         call("r", "flatten.using_ints", "%t, 0, 1") + call("s", "neg", "%r") + "return s",
     "not in order"},
    {"dictionary", call("r", "neg", "%x") + "return {'r': r}", "no tensor"},
    {"nonzero", call("r", "nonzero", "%x") + "return r", "not known"},
    {"not_in_the_table", call("r", "cdist", "%x, %y") + "return r", "not known where samples lie"},
};
INSTANTIATE_TEST_SUITE_P(Batches, Refused, ::testing::ValuesIn(kRefused),
                         [](const auto& test) { return test.param.name; });

// ── How they run ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Says how many samples it was given.
std::shared_ptr<GraphModule> counting() {
  return program(kSize + call("o", "ones", "[%n]") + call("r", "mul.Scalar", "%o, %n") +
                 call("s", "add.Tensor", "%x, %y") + "return (r, s)");
}
std::vector<float> counts(const c10::IValue& result) {
  const at::Tensor counted = result.toTupleRef().elements()[0].toTensor();
  return {counted.data_ptr<float>(), counted.data_ptr<float>() + counted.numel()};
}

TEST(MicroBatches, ArePartsOfEvenSizes) {
  const auto module = counting();
  module->set_micro_batches({3, kBoth});
  EXPECT_EQ(counts(module->run(inputs(7))), (std::vector<float>{2, 2, 2, 2, 3, 3, 3}));
  EXPECT_EQ(counts(module->run(inputs(3))), (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(counts(module->run(inputs(0))), std::vector<float>());
}

TEST(MicroBatches, WhatIsNotSuchABatchRunsWhole) {
  const auto module = counting();
  module->set_micro_batches({1, kBoth});
  EXPECT_EQ(counts(module->run({at::ones({2, 6, 8}), at::ones({1, 6, 8})})), (std::vector<float>{2, 2}));
  EXPECT_EQ(counts(module->run({at::ones({2, 8}), at::ones({2, 8})})), (std::vector<float>{2, 2}));
  EXPECT_EQ(counts(module->run({at::ones({2, 6, 1}), at::ones({2, 6, 1})})), (std::vector<float>{2, 2}));
}

TEST(MicroBatches, EndWithAnEdit) {
  const auto module = counting();
  module->set_micro_batches(kTwo);
  EXPECT_EQ(module->clone_graph_module()->micro_batches().size, 2);
  Node& sum = *module->graph().find("s");
  sum.set_args({sum.arg(0), sum.arg(0)});
  EXPECT_EQ(module->micro_batches().size, 0);
  EXPECT_EQ(counts(module->run(inputs(4))), (std::vector<float>{4, 4, 4, 4}));
  module->set_micro_batches(kTwo);
  module->set_buffer("b", at::ones({8}));
  EXPECT_EQ(module->micro_batches().size, 0);
  module->set_micro_batches(kTwo);
  module->set_graph(module->graph().clone());
  EXPECT_EQ(module->micro_batches().size, 0);
}

TEST(MicroBatches, NeedARankForEachInput) {
  const auto module = counting();
  EXPECT_THAT(error_of([&] {
                module->set_micro_batches({2, {{-1, 8}}});
              }),
              HasSubstr("sizes of 1 inputs, and the graph takes 2"));
  EXPECT_THAT(error_of([&] { module->set_micro_batches({2, {{}, {}}}); }), HasSubstr("no input is cut"));
}

TEST(MicroBatches, AreSavedAndLoaded) {
  const auto module = counting();
  module->set_micro_batches({3, kBoth});
  torch::jit::Module script = testing::saved_and_loaded(*module);
  for (const std::int64_t batch : {0, 2, 3, 7}) {
    const std::vector<c10::IValue> given = inputs(batch);
    EXPECT_EQ(relative_difference(module->run(given), script.forward(given)), 0) << batch;
  }
  EXPECT_EQ(counts(script.forward({at::ones({4, 8}), at::ones({4, 8})})), (std::vector<float>{4, 4, 4, 4}));
  EXPECT_EQ(counts(script.forward({at::ones({4, 6, 8}), at::ones({1, 6, 8})})), (std::vector<float>{4, 4, 4, 4}));
  const auto loaded = from_torchscript(script);
  EXPECT_EQ(loaded->micro_batches().size, 3);
  EXPECT_EQ(loaded->micro_batches().inputs, kBoth);
  EXPECT_EQ(print_graph(loaded->graph()).find("narrow"), std::string::npos);
  EXPECT_EQ(counts(loaded->run(inputs(7))), (std::vector<float>{2, 2, 2, 2, 3, 3, 3}));
}

TEST(MicroBatches, ListsAndNestedTuplesAreSaved) {
  for (const char* result : {"return [r, s]", "return (r, (s, r2))", "return (r,)"}) {
    const auto module = program(call("r", "neg", "%x") + call("s", "exp", "%y") + call("r2", "abs", "%y") + result);
    module->set_micro_batches(kTwo);
    const std::vector<c10::IValue> given = inputs(5);
    const c10::IValue loaded = to_torchscript(*module).forward(given);
    EXPECT_EQ(relative_difference(module->run(given), loaded), 0) << result;
    module->set_micro_batches({});
    EXPECT_EQ(relative_difference(module->run(given), loaded), 0) << result;
  }
}

TEST(MicroBatches, InputsMayBeCalledAsTheLoopCallsItsOwn) {
  const auto module = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %batch = placeholder[target=batch]
    %parts = placeholder[target=parts]
    %r = call_function[target=torch.ops.aten.add.Tensor](args = (%batch, %parts))
    return r)"));
  module->set_micro_batches(kTwo);
  const std::vector<c10::IValue> given = inputs(5);
  EXPECT_EQ(relative_difference(module->run(given), to_torchscript(*module).forward(given)), 0);
}

TEST(MicroBatches, HeldMemoryServesAllParts) {
  const auto module = program(call("r", "matmul", "%x, %w") + call("s", "matmul", "%r, %w") + "return s");
  module->set_micro_batches({64, kBoth});
  module->hold_memory();
  const std::vector<c10::IValue> given = inputs(512);
  const c10::IValue first = module->run(given);
  const std::size_t held = module->held_bytes();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(relative_difference(first, module->run(given)), 0);
  EXPECT_LE(module->held_bytes(), held + 512 * 6 * 8 * 4);  // one more result lives
}

// ── optimize ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Three wide layers of pointwise operators: memory alone counts, and that of few samples is in the caches.
std::shared_ptr<GraphModule> wide() {
  std::string lines = call("h", "linear", "%x, %w, %b");
  for (int i = 0; i < 12; ++i) {
    const std::string before = i == 0 ? "%h" : "%h" + std::to_string(i);
    lines += call("h" + std::to_string(i + 1), i % 2 ? "neg" : "mul.Scalar", before + (i % 2 ? "" : ", 1.01"));
  }
  return program(lines + call("z", "add.Tensor", "%h12, %y") + call("r", "mean.dim", "%z, [1, 2]") + "return r");
}

TEST(MicroBatchesNight, OptimizeMeasuresThemAndKeepsWhatIsFaster) {
  const auto module = wide();
  const auto before = module->clone_graph_module();
  const std::vector<TensorInfo> of = {{.sizes = {32, 4096, 8}}, {.sizes = {32, 4096, 8}}};
  const OptimizeReport report = optimize(*module, {.inputs = of, .target = "cpu"});
  ASSERT_TRUE(report.micro_batches) << report.without_micro_batches;
  EXPECT_EQ(report.micro_batches->measured[0].name, "whole");
  EXPECT_GT(report.micro_batches->measured.size(), 1u);
  EXPECT_EQ(report.is_cut(), module->micro_batches().size > 0);
  for (const std::int64_t batch : {1, 32, 37}) {
    const std::vector<c10::IValue> given = {at::randn({batch, 4096, 8}), at::randn({batch, 4096, 8})};
    EXPECT_LT(relative_difference(before->run(given), module->run(given)), 1e-5) << batch;
  }
}

TEST(MicroBatches, OptimizeSaysWhyABatchIsRunWhole) {
  const auto module = program(call("r", "softmax.int", "%x, 0") + "return r");
  const OptimizeReport report = optimize(*module, {.inputs = forms(), .target = "cpu"});
  EXPECT_FALSE(report.micro_batches);
  EXPECT_THAT(report.without_micro_batches, HasSubstr("r: it computes along the batch"));
  const auto one = program(call("r", "softmax.int", "%x, 1") + "return r");
  EXPECT_FALSE(optimize(*one, {.inputs = forms(1), .target = "cpu"}).micro_batches);
  const auto off = program(call("r", "softmax.int", "%x, 1") + "return r");
  EXPECT_FALSE(optimize(*off, {.inputs = forms(), .target = "cpu", .micro_batches = false}).micro_batches);
}

TEST(MicroBatches, DecomposePackedUndoesThem) {
  const auto module = program(call("r", "neg", "%x") + "return r");
  module->set_micro_batches(kTwo);
  const OptimizeReport report = optimize(*module, {.rules = {"decompose-packed"}});
  EXPECT_EQ(report.applied(), 1u);
  EXPECT_EQ(module->micro_batches().size, 0);
}

}  // namespace fx::batch_cuts_test
