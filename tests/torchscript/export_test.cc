// Graphs as TorchScript: what is written computes what the graph computes, also after saving and loading.
#include <fxgraph/torchscript/export.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <fxgraph/export/input_notes.h>
#include <fxgraph/export/load.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>

#include "tests/support/scratch_folder.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::export_test {

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

struct Case {
  const char* name;
  const char* lines;
};

const Case kCases[] = {
    {"overload",
     "%y = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %x), kwargs = {alpha: 2})\nreturn y"},
    {"torch_function", "%y = call_function[target=torch.relu](args = (%x,))\nreturn y"},
    {"method", "%y = call_method[target=clamp](args = (%x,), kwargs = {min: 0.0, max: 1.0})\nreturn y"},
    {"size_and_view",
     "%s = call_method[target=size](args = (%x, 0))\n%n = call_function[target=operator.mul](args = (%s, 2))\n%y = "
     "call_function[target=aten::view](args = (%x, [%n, -1]))\nreturn y"},
    {"index",
     "%y = call_function[target=operator.getitem](args = (%x, (slice(None, None, 2), None, Ellipsis, -1)))\nreturn y"},
    {"tensor_index",
     "%i = call_function[target=aten::argmax](args = (%x, 1))\n%y = call_function[target=operator.getitem](args = (%x, "
     "(slice(None, None, None), %i)))\nreturn y"},
    {"list",
     "%y = call_function[target=torch.relu](args = (%x,))\n%z = call_function[target=aten::cat](args = ([%x, %y], "
     "1))\nreturn z"},
    {"optional_list",
     "%i = call_function[target=aten::argmax](args = (%x, 1))\n%y = "
     "call_function[target=torch.ops.aten.index.Tensor](args = (%x, [None, %i]))\nreturn y"},
    {"several_results",
     "%t = call_function[target=aten::topk](args = (%x, 2))\n%v = call_function[target=operator.getitem](args = (%t, "
     "0))\n%i = call_function[target=operator.getitem](args = (%t, 1))\nreturn (v, [i, i], {'v': v})"},
    {"chunks",
     "%c = call_function[target=aten::chunk](args = (%x, 2, 1))\n%y = call_function[target=operator.getitem](args = "
     "(%c, 1))\nreturn y"},
    {"assertion",
     "%d = call_method[target=dim](args = (%x,))\n%c = call_function[target=aten::eq.int](args = (%d, 2))\n%a = "
     "call_function[target=torch._assert](args = (%c, 'rank'))\nreturn x"},
    {"dtype",
     "%y = call_function[target=aten::sum.dim_IntList](args = (%x, [0]), kwargs = {dtype: torch.float64})\nreturn y"},
    {"attributes",
     "%w = get_attr[target=a.b.weight]\n%g = get_attr[target=gain]\n%y = call_function[target=aten::linear](args = "
     "(%x, %w))\n%z = call_function[target=aten::mul.Tensor](args = (%y, %g))\nreturn z"},
    {"number_first_sub", "%y = call_function[target=operator.sub](args = (1, %x))\nreturn y"},
    {"number_first_add", "%y = call_function[target=operator.add](args = (1.5, %x))\nreturn y"},
    {"number_first_mul", "%y = call_function[target=operator.mul](args = (2, %x))\nreturn y"},
    {"number_first_div", "%y = call_function[target=operator.truediv](args = (2, %x))\nreturn y"},
    {"number_first_pow", "%y = call_function[target=operator.pow](args = (2, %x))\nreturn y"},
    {"number_first_mod",
     "%e = call_function[target=aten::exp](args = (%x,))\n%y = call_function[target=operator.mod](args = (3, "
     "%e))\nreturn y"},
    {"number_first_floordiv", "%y = call_function[target=operator.floordiv](args = (7, %x))\nreturn y"},
    {"number_first_lt", "%y = call_function[target=operator.lt](args = (1, %x))\nreturn y"},
    {"number_first_ge", "%y = call_function[target=operator.ge](args = (1, %x))\nreturn y"},
    {"number_first_eq", "%y = call_function[target=operator.eq](args = (1, %x))\nreturn y"},
    {"number_first_torch", "%y = call_function[target=torch.sub](args = (1, %x))\nreturn y"},
    {"number_first_ints",
     "%i = call_function[target=aten::argmax](args = (%x, 1))\n%a = call_function[target=operator.and_](args = (5, "
     "%i))\n%s = call_function[target=operator.lshift](args = (1, %i))\n%f = "
     "call_function[target=operator.floordiv](args = (7, %s))\n%m = call_function[target=operator.sub](args = (0.5, "
     "%f))\nreturn (a, s, f, m)"},
    {"number_result", "%n = call_function[target=aten::size.int](args = (%x, 0))\nreturn (x, n, 3, None)"},
};

GraphModule module_of(const char* lines) {
  return GraphModule({{"a.b.weight", torch::ones({2, 4}).requires_grad_()}, {"gain", torch::full({1}, 2.0)}},
                     parse_graph(std::string("graph():\n%x = placeholder[target=x]\n") + lines));
}

void expect_equal(const c10::IValue& got, const c10::IValue& expected) {
  if (expected.isTensor()) {
    EXPECT_TRUE(got.toTensor().equal(expected.toTensor()));
  } else if (expected.isTuple()) {
    ASSERT_EQ(got.toTuple()->elements().size(), expected.toTuple()->elements().size());
    for (std::size_t i = 0; i < expected.toTuple()->elements().size(); ++i) {
      expect_equal(got.toTuple()->elements()[i], expected.toTuple()->elements()[i]);
    }
  } else if (expected.isList()) {
    ASSERT_EQ(got.toListRef().size(), expected.toListRef().size());
    for (std::size_t i = 0; i < expected.toListRef().size(); ++i)
      expect_equal(got.toListRef()[i], expected.toListRef()[i]);
  } else if (expected.isGenericDict()) {
    for (const auto& item : expected.toGenericDict()) expect_equal(got.toGenericDict().at(item.key()), item.value());
  } else {
    EXPECT_EQ(got, expected);
  }
}

class ExportCases : public ::testing::TestWithParam<Case> {};

TEST_P(ExportCases, ComputesWhatTheGraphComputes) {
  GraphModule module = module_of(GetParam().lines);
  const c10::IValue expected = module.run({sample()});
  torch::jit::Module script = to_torchscript(module);
  expect_equal(script.forward({sample()}), expected);
  torch::jit::Module loaded = testing::saved_and_loaded(script);
  expect_equal(loaded.forward({sample()}), expected);
  expect_equal(from_torchscript(loaded)->run({sample()}), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ExportCases, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Export, KeepsParametersBuffersAndSharing) {
  const GraphModule module = module_of(
      "%w = get_attr[target=a.b.weight]\n%g = get_attr[target=gain]\n%y = call_function[target=aten::linear](args = "
      "(%x, %w))\nreturn (y, g)");
  const torch::jit::Module script = to_torchscript(module);
  ASSERT_EQ(script.named_parameters().size(), 1u);
  EXPECT_EQ((*script.named_parameters().begin()).name, "a.b.weight");
  ASSERT_EQ(script.named_buffers().size(), 1u);
  EXPECT_TRUE((*script.named_parameters().begin()).value.is_same(module.attribute("a.b.weight")));
}

TEST(Export, LeavesKeepTheirTypes) {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4), torch::nn::ReLU());
  net->eval();
  Graph graph;
  Node* at = &graph.placeholder("x");
  for (const char* path : {"0", "1", "2"}) at = &graph.call_module(path, {at});
  graph.output(at);
  GraphModule module(*net, std::move(graph));
  const torch::Tensor x = torch::randn({2, 3, 6, 6});
  torch::jit::Module loaded = testing::saved_and_loaded(module);
  EXPECT_TRUE(loaded.forward({x}).toTensor().allclose(net->forward(x)));
  const auto again = from_torchscript(loaded);
  EXPECT_EQ(again->module_type("0"), "Conv2d");
  EXPECT_EQ(again->module_type("1"), "BatchNorm2d");
  EXPECT_EQ(again->graph().count(Op::call_module, "1"), 1u);
  EXPECT_TRUE(again->forward(x).allclose(net->forward(x)));
}

TEST(Export, InputsKeepNameTypeAndDefault) {
  GraphModule module(parse_graph(
      "graph():\n%input_1 = placeholder[target=input]\n%xs : List[Tensor] = placeholder[target=xs]\n"
      "%k : float = placeholder[target=k](default=2.0)\n%c = call_function[target=aten::cat](args = (%xs, 0))\n"
      "%y = call_function[target=aten::add.Tensor](args = (%input_1, %c))\n"
      "%z = call_function[target=aten::mul.Scalar](args = (%y, %k))\nreturn z"));
  const torch::jit::Module script = testing::saved_and_loaded(module);
  const auto& schema = script.get_method("forward").function().getSchema();
  EXPECT_EQ(schema.arguments()[1].name(), "input");
  EXPECT_EQ(schema.arguments()[2].type()->annotation_str(), "List[Tensor]");
  EXPECT_EQ(schema.arguments()[3].default_value()->toDouble(), 2.0);
}

TEST(Export, NestedGraphModulesAreMethodsOfTheirOwn) {
  auto inner = std::make_shared<GraphModule>(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::neg](args = (%x,))\nreturn y"));
  GraphModule outer(
      {{"inner", std::shared_ptr<torch::nn::Module>(inner)}},
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=inner](args = (%x,))\nreturn y"));
  torch::jit::Module script = testing::saved_and_loaded(outer);
  EXPECT_TRUE(script.forward({sample()}).toTensor().equal(-sample()));
}

TEST(Export, SaysWhatTorchScriptCannotSay) {
  const GraphModule module = module_of("%y = call_function[target=my.function](args = (%x,))\nreturn y");
  try {
    to_torchscript(module);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.node(), "y");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("my.function"));
  }
}

// TorchScript has tuples of anything, but lists and dicts of one type only.
TEST(TorchScriptExport, ContainersOfSeveralTypesAreRefusedWhereTheyStand) {
  const auto refusal = [](const GraphModule& module) -> std::string {
    try {
      to_torchscript(module);
    } catch (const Error& error) {
      return error.node() + ": " + error.message();
    }
    return "taken";
  };
  const std::string types = " of values of different types, for which TorchScript has no type; make it a tuple";
  EXPECT_THAT(refusal(*load_exported("tests/corpus/pt2/p_in.pt2")),
              ::testing::AllOf(::testing::StartsWith("args_0: "),
                               ::testing::HasSubstr("the input 'args_0' is a container" + types)));
  EXPECT_THAT(refusal(*load_exported("tests/corpus/pt2/pytree.pt2")),
              ::testing::AllOf(::testing::StartsWith("output: "), ::testing::HasSubstr("a dict" + types)));
  EXPECT_THAT(refusal(module_of("return [%x, (%x,)]")), ::testing::HasSubstr("a list" + types));
  EXPECT_THAT(refusal(module_of("%y = call_function[target=operator.getitem](args = (%x, k))\nreturn y")),
              ::testing::HasSubstr("an index of the type str is none of a tensor's; give the input its type"));
  const GraphModule unread = module_of("return x");
  const_cast<Graph&>(unread.graph()).placeholder("more").meta().set(pt2::kTreeNote, pt2::TreeSpec::list({}));
  EXPECT_EQ(refusal(unread), "taken");
}

// A number stands beside tensors without a say in their type; TorchScript's tensor of it would have one.
TEST(TorchScriptExport, NumbersInPlacesOfTensorsStayNumbers) {
  for (const char* call :
       {"aten::mul.Tensor](args = (2.0, %x))", "aten::mul.Tensor](args = (%x, 2.5))",
        "aten::sub.Tensor](args = (2, %x))", "aten::add.Tensor](args = (%x, 3), kwargs = {alpha: 2})",
        "aten::div.Tensor](args = (1.5, %x))", "aten::gt.Tensor](args = (1, %x))"}) {
    GraphModule gm(parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%y = call_function[target=") + call +
                               "\nreturn y"));
    torch::jit::Module saved = to_torchscript(gm);
    for (const torch::Tensor& x :
         {torch::arange(1, 5), sample() + 0.25, sample().to(torch::kDouble) + 0.25, torch::tensor({true, false})}) {
      torch::Tensor expected;
      try {
        expected = gm.forward(x);
      } catch (const std::exception&) {
        continue;  // a subtraction of bools
      }
      const torch::Tensor found = saved.forward({x}).toTensor();
      EXPECT_EQ(expected.scalar_type(), found.scalar_type()) << call << " on " << x.scalar_type();
      EXPECT_TRUE(torch::allclose(expected, found, 1e-6)) << call << " on " << x.scalar_type();
    }
  }
}

// TorchScript has no bool for a Scalar, and an empty list has a type only where it stands.
TEST(TorchScriptExport, ArgumentsWithoutATypeOfTheirOwn) {
  for (const char* call : {"aten::zeros](args = ([],))",
                           "aten::ones](args = ([],))",
                           "aten::full](args = ([], 2.5))",
                           "torch.ops.aten.zeros.default](args = ([],), kwargs = {dtype: torch.int64})",
                           "torch.zeros](args = ([],))",
                           "torch.sum](args = (%x, []))",
                           "aten::full](args = ([2], True))",
                           "aten::full](args = ([], False), kwargs = {dtype: torch.float32})",
                           "aten::full_like](args = (%x, True))",
                           "aten::add.Scalar](args = (%x, True))",
                           "aten::mul.Scalar](args = (%x, True))",
                           "aten::mul.Tensor](args = (%x, True))",
                           "operator.mul](args = (%x, True))",
                           "operator.and_](args = (%i, True))",
                           "operator.or_](args = (%b, False))",
                           "aten::bitwise_and.Scalar](args = (%i, True))",
                           "aten::bitwise_xor.Scalar](args = (%b, True))",
                           "aten::eq.Scalar](args = (%b, True))",
                           "aten::ne.Scalar](args = (%x, False))",
                           "aten::pow.Tensor_Scalar](args = (%x, True))",
                           "aten::masked_fill.Scalar](args = (%x, %b, False))",
                           "aten::masked_fill.Scalar](args = (%b, %b, False))",
                           "torch.masked_fill](args = (%i, %b, True))",
                           "aten::where.Scalar](args = (%b, True, False))",
                           "aten::where.Scalar](args = (%b, True, 2))",
                           "aten::where.ScalarOther](args = (%b, %x, True))",
                           "aten::where.ScalarSelf](args = (%b, False, %b))",
                           "aten::add.Scalar](args = (%b, True, 1))",
                           "aten::fill.Scalar](args = (%b, True))",
                           "aten::index_fill.int_Scalar](args = (%b, 0, %n, True))",
                           "aten::constant_pad_nd](args = (%x, [1, 1], True))",
                           "aten::constant_pad_nd](args = (%b, [1, 1], True))",
                           "aten::clamp](args = (%x, False, True))",
                           "aten::clamp](args = (%x,), kwargs = {max: True})",
                           "aten::clamp_min](args = (%i, True))",
                           "aten::leaky_relu](args = (%x, True))",
                           "aten::scatter.value](args = (%b, 0, %n2, True))",
                           "aten::addcmul](args = (%x, %x, %x), kwargs = {value: True})",
                           "aten::mul.Scalar](args = (%x, %yes))",
                           "aten::masked_fill.Scalar](args = (%b, %b, %yes))",
                           "aten::leaky_relu](args = (%x, %yes))",
                           "aten::arange](args = (True,))"}) {
    GraphModule gm({{"n", torch::tensor({1})}, {"n2", torch::tensor({{0, 1, 2}})}},
                   parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%n = get_attr[target=n]\n"
                                           "%n2 = get_attr[target=n2]\n"
                                           "%i = call_method[target=to](args = (%x, torch.int64))\n"
                                           "%b = call_function[target=aten::gt.Scalar](args = (%x, 0))\n"
                                           "%d = call_method[target=dim](args = (%x,))\n"
                                           "%yes = call_function[target=operator.eq](args = (%d, 2))\n"
                                           "%y = call_function[target=") +
                               call + "\nreturn y"));
    try {
      const torch::Tensor expected = gm.forward(sample());
      const torch::jit::Module saved = testing::saved_and_loaded(gm);
      const auto again = from_torchscript(saved);
      for (const torch::Tensor& found :
           {torch::jit::Module(saved).forward({sample()}).toTensor(), again->forward(sample())}) {
        EXPECT_EQ(expected.scalar_type(), found.scalar_type()) << call;
        EXPECT_TRUE(expected.sizes() == found.sizes() && expected.equal(found)) << call;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << call << ": " << error.what();
    }
  }
}

TEST(TorchScriptExport, ValuesThatNoOperatorTakesAreRefusedInOneLine) {
  for (const char* lines :
       {"%y = call_function[target=operator.getitem](args = (%d, 0))",
        "%y = call_method[target=view](args = (%x, 'a'))", "%y = call_function[target=aten::relu](args = ('a',))",
        "%y = call_function[target=aten::softmax.int](args = (%x, 'a'))"}) {
    const GraphModule gm =
        module_of((std::string("%d = call_method[target=dim](args = (%x,))\n") + lines + "\nreturn y").c_str());
    EXPECT_THAT([&] { to_torchscript(gm); }, ::testing::ThrowsMessage<Error>(::testing::AllOf(
                                                 ::testing::HasSubstr("save the program as .pt2"),
                                                 ::testing::Not(::testing::HasSubstr("aten::relu(Tensor")),
                                                 ::testing::Not(::testing::HasSubstr("\n")))))
        << lines;
  }
}

TEST(TorchScriptExport, DefaultsBeforeAnInputWithoutOneAreLeftOut) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%m : Optional[Tensor] = placeholder[target=m](default=None)\n"
                  "%w = placeholder[target=w]\n%k : int = placeholder[target=k](default=2)\n"
                  "%y = call_function[target=aten::add.Tensor](args = (%x, %w))\nreturn y"));
  torch::jit::Module saved = testing::saved_and_loaded(gm);
  EXPECT_TRUE(saved.forward({sample(), c10::IValue(), sample()}).toTensor().equal(2 * sample()));
  EXPECT_TRUE(from_torchscript(saved)->run({sample(), c10::IValue(), sample()}).toTensor().equal(2 * sample()));
}

TEST(TorchScriptExport, NoneInLists) {
  for (const char* result :
       {"[%x, None]", "[None, %x]", "[None]", "[None, None]", "([%x, None], [None])", "{'a': %x, 'b': None}",
        "{'a': None}", "[(%x, None), (%x, %x)]", "[(%x, None), (%x, None)]", "[(None, %x), (%x, None)]", "[]",
        "([], %x)", "[[%x], []]", "[1, None]"}) {
    GraphModule gm = module_of((std::string("return ") + result).c_str());
    try {
      expect_equal(testing::saved_and_loaded(gm).forward({sample()}), gm.run({sample()}));
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("values of different types")) << result;
    }
  }
}

TEST(TorchScriptExport, WritesToTheTensorsOfAListAreRefused) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n"
                  "%y = call_function[target=torch.ops.aten._foreach_add_.Scalar](args = ([%x], 1.0))\nreturn x"));
  EXPECT_THAT([&] { to_torchscript(gm); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("writes to the tensors of a list")));
}

TEST(Export, MembersMayHaveNamesThatEveryModuleOrPythonHas) {
  const GraphModule module(
      {{"forward", torch::rand({3, 4})}, {"training", torch::rand({4})}, {"lambda", torch::rand({4})}},
      parse_graph("graph():\n%x = placeholder[target=x]\n%f = get_attr[target=forward]\n"
                  "%t = get_attr[target=training]\n%l = get_attr[target=lambda]\n"
                  "%y = call_function[target=operator.mul](args = (%x, %f))\n"
                  "%z = call_function[target=operator.add](args = (%y, %t))\n"
                  "%a = call_function[target=operator.sub](args = (%z, %l))\nreturn a"));
  torch::jit::Module loaded = testing::saved_and_loaded(module);
  const torch::Tensor expected =
      sample() * module.attribute("forward") + module.attribute("training") - module.attribute("lambda");
  EXPECT_TRUE(loaded.forward({sample()}).toTensor().allclose(expected));
}

TEST(Export, AValueUsedBeforeItIsThereIsRefused) {
  GraphModule module(
      parse_graph("graph():\n%x = placeholder[target=x]\n%a = call_function[target=aten::relu](args = (%x,))\n"
                  "%b = call_function[target=aten::neg](args = (%a,))\nreturn b"));
  module.graph().find("b")->append(*module.graph().find("a"));
  EXPECT_THAT([&] { to_torchscript(module); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("b: it uses a, which is defined after it")));
}

// In each of the forms that a name's ending says.
TEST(Save, WritesWhatTheNameSaysAndLoadReadsIt) {
  GraphModule module(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = call_function[target=aten::relu](args = (%x,))
    return y)"));
  const testing::ScratchFolder folder;
  const at::Tensor x = torch::randn({3});
  for (const char* name : {"saved.pt", "saved.ts", "saved.fx", "saved.txt", "saved"}) {
    const std::string file = folder / name;
    module.save(file);
    const bool is_text = std::string(name).ends_with(".fx") || std::string(name).ends_with(".txt");
    EXPECT_EQ(form_of_file(file), is_text ? ProgramForm::text : ProgramForm::torchscript) << name;
    EXPECT_EQ(holds_archive(file), !is_text) << name;
    EXPECT_TRUE(torch::equal(load(file)->run({x}).toTensor(), x.relu())) << name;
  }
}

}  // namespace fx::export_test
