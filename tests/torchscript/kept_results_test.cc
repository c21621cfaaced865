// What a saved form could forget: types and signs of what LibTorch's executor rewrites, memory that callers write, bits
// and readings of memory that archives have no words for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include <fxgraph/module/code.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/error_of.h"
#include "tests/support/scratch_folder.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::kept_results_test {

using ::testing::HasSubstr;
using torch::Tensor;

Graph graph_of(const std::string& calls, const std::string& returned) {
  return parse_graph("graph():\n%x = placeholder[target=x]\n" + calls + "return " + returned);
}
std::string call(const std::string& name, const std::string& target, const std::string& arguments) {
  return "%" + name + " = call_function[target=" + target + "](" + arguments + ")\n";
}

TEST(KeptResults, WhatCallersWriteIsNotInTheNextCall) {
  const std::string programs[] = {
      call("r", "aten::zeros", "args = ([3],)"),
      call("r", "aten::arange", "args = (3,)"),
      call("o", "aten::ones", "args = ([3, 3],)") + call("r", "aten::tril", "args = (%o,)"),
      call("r", "aten::scalar_tensor", "args = (2.5,)"),
      call("o", "aten::full", "args = ([2, 2], 7)") + call("r", "aten::view", "args = (%o, [4])"),
  };
  const Tensor x = torch::ones({2});
  for (const std::string& program : programs) {
    GraphModule gm(graph_of(program, "(r, x)"));
    torch::jit::Module saved = testing::saved_and_loaded(gm);
    Tensor first;
    for (int i = 0; i < 4; ++i) {
      const Tensor result = saved.forward({x}).toTupleRef().elements()[0].toTensor();
      if (i == 0) first = result.clone();
      EXPECT_TRUE(result.equal(first)) << program << i;
      EXPECT_EQ(result.scalar_type(), gm.run({x}).toTupleRef().elements()[0].toTensor().scalar_type());
      result.fill_(9);
    }
  }
}

TEST(KeptResults, WhatIsIndexedByNothingIsATensorOfItsOwn) {
  GraphModule gm(graph_of(
      call("r", "operator.getitem", "args = (%x, Ellipsis)") + call("u", "aten::unsqueeze_", "args = (%x, 0)"), "r"));
  torch::jit::Module saved = testing::saved_and_loaded(gm);
  const Tensor x = torch::ones({2, 3}), result = saved.forward({x}).toTensor();
  EXPECT_EQ(result.dim(), 2);
  EXPECT_EQ(x.dim(), 3);
  EXPECT_TRUE(result.is_alias_of(x));
}

TEST(KeptResults, WhatIsJoinedTwiceIsAsItWasAtFirst) {
  GraphModule gm(graph_of(call("j", "aten::cat", "args = ([%x, %x], -1)") + call("t", "aten::tanh_", "args = (%x,)") +
                              call("k", "aten::cat", "args = ([%j, %x], -1)"),
                          "k"));
  torch::jit::Module saved = testing::saved_and_loaded(gm);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = torch::tensor({1.0, -2.0, 3.0});
    const Tensor expected = at::cat({x, x, x.tanh()}, -1);
    EXPECT_TRUE(saved.forward({x.clone()}).toTensor().equal(expected)) << i;
  }
  const testing::ScratchFolder folder;
  save(gm, folder / "a.pt");
  EXPECT_EQ(load(folder / "a.pt")->graph().size(), gm.graph().size());
}

TEST(KeptResults, WhatChanceDecidesIsOneTensorUnderTwoNames) {
  GraphModule gm(graph_of(
      call("f", "aten::full", "args = ([4], 1)") + call("r", "aten::random_.from", "args = (%f, 1, 3)"), "(r, f)"));
  torch::jit::Module saved = testing::saved_and_loaded(gm);
  for (int i = 0; i < 4; ++i) {
    const c10::IValue results = saved.forward({torch::ones({2})});
    EXPECT_TRUE(
        results.toTupleRef().elements()[0].toTensor().is_alias_of(results.toTupleRef().elements()[1].toTensor()));
  }
}

// A caller's own copy is another tensor, which may be written.
TEST(KeptResults, OnlyWhatTheWriterAddsIsLeftOut) {
  GraphModule gm(graph_of(call("z", "aten::zeros", "args = ([2],)") + call("e", "aten::empty_like", "args = (%z,)") +
                              call("c", "aten::copy_", "args = (%e, %z)") +
                              call("w", "aten::add_.Tensor", "args = (%c, %x)") +
                              call("r", "aten::add.Tensor", "args = (%z, %c)"),
                          "(r, z)"));
  const testing::ScratchFolder folder;
  save(gm, folder / "a.pt");
  const Tensor x = torch::ones({2});
  EXPECT_TRUE(load(folder / "a.pt")->run({x}).toTupleRef().elements()[0].toTensor().equal(x));
}

TEST(KeptResults, TypesAndSignsAreWhatOperatorsMake) {
  const std::pair<const char*, const char*> calls[] = {
      {"aten::add.Scalar", "(%b, 0)"},   {"aten::mul.Scalar", "(%b, 1)"}, {"aten::div.Scalar", "(%i, 1)"},
      {"aten::add.Scalar", "(%n, 0)"},   {"aten::sub.Scalar", "(%n, 0)"}, {"aten::mul.Scalar", "(%n, 1)"},
      {"aten::add.Scalar", "(%i, 0.0)"},
  };
  const Tensor x = torch::tensor({1.0, -2.0, 0.0});
  for (const auto& [target, arguments] : calls) {
    GraphModule gm(graph_of(
        call("b", "aten::gt.Scalar", "args = (%x, 0)") + call("i", "aten::mul.Scalar", "args = (%b, 3)") +
            call("m", "aten::mul.Scalar", "args = (%x, 0.0)") + call("n", "aten::neg", "args = (%m,)") +
            call("r", target, std::string("args = ") + arguments) + call("s", "aten::reciprocal", "args = (%r,)"),
        "(r, s)"));
    torch::jit::Module saved = testing::saved_and_loaded(gm);
    const c10::IValue expected = gm.run({x});
    for (int i = 0; i < 4; ++i) {
      const c10::IValue found = saved.forward({x});
      for (std::size_t part : {0, 1}) {
        const Tensor a = expected.toTupleRef().elements()[part].toTensor(),
                     b = found.toTupleRef().elements()[part].toTensor();
        EXPECT_EQ(a.scalar_type(), b.scalar_type()) << target << arguments;
        EXPECT_TRUE(a.equal(b) && a.signbit().equal(b.signbit())) << target << arguments << b;
      }
    }
  }
}

// ── Buffers ───────────────────────────────────────────────────────────────────────────────────────────────────────

GraphModule with_buffers(const std::vector<std::pair<std::string, Tensor>>& buffers) {
  std::string calls, returned;
  for (const auto& [name, tensor] : buffers) {
    calls += "%" + name + " = get_attr[target=" + name + "]\n" +
             call(name + "_r", "aten::mul.Scalar", "args = (%" + name + ", 1.0)");
    returned += name + "_r, ";
  }
  GraphModule::Attributes attributes;
  for (const auto& [name, tensor] : buffers) attributes.emplace_back(name, tensor);
  return GraphModule(attributes, graph_of(calls, "(" + returned + "x)"));
}

void expect_same(const c10::IValue& a, const c10::IValue& b) {
  for (std::size_t i = 0; i < a.toTupleRef().elements().size(); ++i) {
    const Tensor one = a.toTupleRef().elements()[i].toTensor(), other = b.toTupleRef().elements()[i].toTensor();
    EXPECT_EQ(one.scalar_type(), other.scalar_type());
    EXPECT_TRUE(one.resolve_conj().resolve_neg().equal(other.resolve_conj().resolve_neg())) << one << other;
  }
}

TEST(KeptResults, BuffersKeepTheirBitsAndTypes) {
  const Tensor real = torch::tensor({1.0f, 2.0f, 3.0f}), complex = torch::complex(real, real + 1);
  const Tensor whole = torch::arange(4, torch::kInt);
  const std::vector<std::vector<std::pair<std::string, Tensor>>> programs = {
      {{"a", complex.conj()}},
      {{"a", torch::imag(complex.conj())}},
      {{"a", complex.conj()}, {"b", torch::imag(complex.conj())}},
      {{"a", complex}, {"b", torch::real(complex)}},
      {{"a", complex}, {"b", complex.conj()}},
      {{"a", whole}, {"b", whole.view(torch::kChar)}},
  };
  const Tensor x = torch::ones({2});
  for (const auto& buffers : programs) {
    GraphModule gm = with_buffers(buffers);
    const c10::IValue expected = gm.run({x});
    expect_same(expected, testing::saved_and_loaded(gm).forward({x}));
    expect_same(expected, gm.clone_graph_module()->run({x}));
  }
}

TEST(KeptResults, MemoryThatIsWrittenIsNotReadInTwoWays) {
  const Tensor complex = torch::complex(torch::rand({3}), torch::rand({3}));
  GraphModule gm({{"a", complex}, {"b", torch::real(complex)}},
                 graph_of("%a = get_attr[target=a]\n%b = get_attr[target=b]\n" +
                              call("w", "aten::add_.Scalar", "args = (%a, 1)") + call("r", "aten::neg", "args = (%b,)"),
                          "r"));
  const testing::ScratchFolder folder;
  EXPECT_THAT(
      testing::one_line_error_of([&] { save(gm, folder / "a.pt"); }),
      HasSubstr("the tensors 'a', 'b' share memory and read it as different types, which TorchScript has no words"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.pt"));
}

// Callers write to what they get.
TEST(KeptResults, MemoryThatIsReturnedIsNotReadInTwoWays) {
  const Tensor negated = torch::rand({3, 3})._neg_view();
  GraphModule gm({{"a", negated}, {"b", negated.select(0, 0)}}, graph_of("%b = get_attr[target=b]\n", "b"));
  gm.set_buffer("a", negated);
  const testing::ScratchFolder folder;
  EXPECT_THAT(testing::one_line_error_of([&] { save(gm, folder / "a.pt"); }),
              HasSubstr("where one of them is written, returned or trained"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.pt"));
}

TEST(KeptResults, WhatLiesBesideATensorIsNotForgotten) {
  const Tensor complex = torch::complex(torch::rand({4}), torch::rand({4}));
  const testing::ScratchFolder folder;
  for (const char* target : {"aten::as_strided", "aten::as_strided_"}) {
    GraphModule gm({{"a", torch::imag(complex.conj())}},
                   graph_of("%a = get_attr[target=a]\n" + call("s", target, "args = (%a, [4], [1])") +
                                call("r", "aten::neg", "args = (%s,)"),
                            "r"));
    EXPECT_THAT(testing::one_line_error_of([&] { save(gm, folder / "a.pt"); }),
                HasSubstr("the tensor 'a' is read beyond its elements"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a.pt"));
  }
}

TEST(KeptResults, ResultsThatNoInputDecidesShareNoMemory) {
  const std::string zeros = call("z", "aten::zeros", "args = ([2, 3],)"), turned = call("t", "aten::t", "args = (%z,)");
  GraphModule gm(graph_of(zeros + turned, "(z, t, x)")), same(graph_of(zeros, "(z, z)"));
  EXPECT_THAT(testing::error_of([&] { to_torchscript(gm); }), HasSubstr("shares memory with %z"));
  const c10::IValue twice = testing::saved_and_loaded(same).forward({torch::rand({2})});
  EXPECT_TRUE(twice.toTupleRef().elements()[0].toTensor().is_alias_of(twice.toTupleRef().elements()[1].toTensor()));
}

TEST(KeptResults, ImplicitExpansionsExpand) {
  GraphModule gm(graph_of(call("r", "aten::expand", "args = (%x, [3, -1]), kwargs = {implicit: True}"), "r"));
  EXPECT_EQ(testing::saved_and_loaded(gm).forward({torch::rand({2})}).toTensor().sizes(), torch::IntArrayRef({3, 2}));
}

TEST(KeptResults, TensorsKeepAllTheirNames) {
  const Tensor shared = torch::rand({2});
  GraphModule gm({{"read", shared}}, graph_of("%w = get_attr[target=read]\n", "w"));
  gm.set_buffer("unread", shared);
  const testing::ScratchFolder folder;
  save(gm, folder / "a.pt");
  const auto again = load(folder / "a.pt");
  EXPECT_TRUE(again->attribute("unread").is_alias_of(again->attribute("read")));
}

}  // namespace fx::kept_results_test
