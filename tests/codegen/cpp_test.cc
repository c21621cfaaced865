// C++ and TorchScript source, as text. That it compiles and computes the same is tests/trace/generated_cpp_test.cc.
#include <fxgraph/codegen/cpp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/codegen/torchscript.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::cpp_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// The statements of forward.
std::string body_of(const std::string& source) {
  const std::size_t from = source.find(" forward(");
  const std::size_t line = source.find('\n', from) + 1;
  return source.substr(line, source.find("  }\n", line) - line);
}

std::string cpp_body(const std::string& lines) {
  return body_of(cpp_code(parse_graph("graph():\n%x = placeholder[target=x]\n" + lines)));
}

TEST(CppCode, NoneIsATensorThatIsNotDefined) {
  const std::string code = cpp_code(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%m = placeholder[target=m](default=None)\n%w = placeholder[target=w]\n"
      "%c = call_function[target=operator.is_](args = (%m, None))\n"
      "%a = call_function[target=torch._assert](args = (%c, 'm must be None'))\n"
      "%d = call_function[target=operator.is_not](args = (%x, None))\n"
      "%b = call_function[target=torch._assert](args = (%d, 'x must be there'))\n"
      "%y = call_function[target=aten::add.Tensor](args = (%x, %w))\nreturn y"));
  EXPECT_THAT(code, ::testing::HasSubstr("torch::Tensor x, torch::Tensor m, torch::Tensor w)"));
  EXPECT_THAT(code, ::testing::HasSubstr("= !m.defined();"));
  EXPECT_THAT(code, ::testing::HasSubstr("= x.defined();"));
}

TEST(CppCode, IsOneStatementPerNodeAndLetsGoOfValues) {
  EXPECT_EQ(cpp_body("%w = get_attr[target=fc.weight]\n"
                     "%y = call_function[target=aten::linear](args = (%x, %w))\n"
                     "%z = call_method[target=relu](args = (%y,))\n"
                     "%s = call_function[target=operator.add](args = (%y, %z))\nreturn (s, z)"),
            "    torch::Tensor y = torch::linear(x, fc_weight_);  x.reset();\n"
            "    torch::Tensor z = torch::relu(y);\n"
            "    torch::Tensor s = torch::add(y, z);  y.reset();\n"
            "    return std::make_tuple(s, z);\n");
}

TEST(CppCode, SpellsLiteralsAsCppDoes) {
  EXPECT_EQ(cpp_body("%a = call_function[target=aten::full](args = ([2, 3], inf), kwargs = {dtype: torch.float64, "
                     "device: device(type='cpu')})\n"
                     "%b = call_function[target=aten::clamp](args = (%a, -1, 5000000000))\n"
                     "%c = call_method[target=view](args = (%b, [3, -1]))\n"
                     "%d = call_function[target=aten::gelu](args = (%c,), kwargs = {approximate: 'tanh'})\n"
                     "%e = call_method[target=add_](args = (%d, %x))\nreturn e"),
            "    torch::Tensor a = torch::full({2, 3}, std::numeric_limits<double>::infinity(), "
            "torch::TensorOptions().dtype(torch::kDouble).device(torch::Device(\"cpu\")));\n"
            "    torch::Tensor b = torch::clamp(a, -1, int64_t{5000000000});  a.reset();\n"
            "    torch::Tensor c = b.view(torch::IntArrayRef({3, -1}));  b.reset();\n"
            "    torch::Tensor d = torch::gelu(c, \"tanh\");  c.reset();\n"
            "    torch::Tensor e = d.add_(x);  d.reset(); x.reset();\n"
            "    return e;\n");
}

TEST(CppCode, TakesResultsApart) {
  EXPECT_EQ(
      cpp_body("%t = call_function[target=aten::topk](args = (%x, 2))\n"
               "%i = call_function[target=operator.getitem](args = (%t, -1))\n"
               "%c = call_function[target=aten::chunk](args = (%x, 3, 1))\n"
               "%p = call_function[target=operator.getitem](args = (%c, 2))\n"
               "%r = call_function[target=operator.getitem](args = (%p, (slice(0, 2, None), None, %i)))\nreturn [r]"),
      "    auto t = torch::topk(x, 2);\n"
      "    torch::Tensor i = std::get<1>(t);  t = {};\n"
      "    std::vector<torch::Tensor> c = torch::chunk(x, 3, 1);  x.reset();\n"
      "    torch::Tensor p = element(c, 2);  c.clear();\n"
      "    torch::Tensor r = p.index({torch::indexing::Slice(0, 2, torch::indexing::None), torch::indexing::None, "
      "i});  p.reset(); i.reset();\n"
      "    return std::vector<torch::Tensor>{r};\n");
}

TEST(CppCode, AvoidsWordsThatCppNeeds) {
  const std::string source =
      cpp_code(parse_graph("graph():\n%new = placeholder[target=new]\n%x_ = get_attr[target=x]\n%_y = "
                           "call_function[target=aten::add.Tensor]("
                           "args = (%new, %x_))\nreturn _y"));
  EXPECT_THAT(source, AllOf(HasSubstr("forward(torch::Tensor v_new)"), HasSubstr("torch::Tensor v_y = torch::add("),
                            HasSubstr("v_new, x_)")));
}

TEST(CppCode, RegistersTensorsUnderTheirPaths) {
  const Graph graph =
      parse_graph("graph():\n%w = get_attr[target=layer.0.w]\n%n = get_attr[target=class]\nreturn (w, n)");
  const std::string source = cpp_code(
      graph, {.class_name = "Net", .tensors = {{"layer.0.w", {.dtype = DType::float16, .sizes = {2, 3}}, true}}});
  EXPECT_THAT(source,
              AllOf(HasSubstr("struct Net : torch::nn::Module {"),
                    HasSubstr("layer_0_w_ = add_tensor(\"layer.0.w\", torch::zeros({2, 3}, torch::kHalf), true);"),
                    HasSubstr("v_class_ = add_tensor(\"class_\", torch::empty({0}), false);")));
}

TEST(CppCode, LeavesUnknownModulesToTheUser) {
  const std::string source = cpp_code(
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=encoder.0](args = (%x,))\nreturn y"));
  EXPECT_THAT(source, AllOf(HasSubstr("torch::Tensor y = encoder_0_.forward(x);"),
                            HasSubstr("torch::nn::AnyModule encoder_0_;")));
}

TEST(CppCode, AsksModulesOfTheUsersForWhatTheyReturn) {
  const CodeModule::Result state{.parts = {{}, {}}};
  const std::string source =
      cpp_code(parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=l](args = (%x,))\n%s = "
                           "call_function[target=operator.getitem](args = (%y, 1))\n%h = "
                           "call_function[target=operator.getitem](args = (%s, 0))\nreturn h"),
               {.results = {{"l", {.parts = {{}, state}}}}});
  EXPECT_THAT(source, AllOf(HasSubstr("auto y = l_.forward<std::tuple<torch::Tensor, std::tuple<torch::Tensor, "
                                      "torch::Tensor>>>(x);"),
                            HasSubstr("std::get<1>(y)"), HasSubstr("torch::Tensor h = std::get<0>(s)")));
}

TEST(CppCode, GoesThroughTheDispatcherWhereThereIsNoFunction) {
  const std::string source = cpp_code(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::rms_norm](args = (%x, [4]))\nreturn y"));
  EXPECT_THAT(source, HasSubstr("call_operator(\"aten::rms_norm\", \"\", {x, c10::List<int64_t>({4}), c10::IValue(), "
                                "c10::IValue()})[0].toTensor()"));
  EXPECT_THAT(source, HasSubstr("static torch::jit::Stack call_operator("));
}

TEST(CppCode, NamesTheNodeThatItCannotSay) {
  EXPECT_THAT([] { cpp_body("%y = call_function[target=math.gcd](args = (4, 6))\nreturn y"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cpp_code: %y"), HasSubstr("math.gcd"))));
  EXPECT_THAT(
      [] {
        cpp_body(
            "%t = call_function[target=aten::topk](args = (%x, 2))\n%i = "
            "call_function[target=operator.getitem](args = (%t, 2))\nreturn i");
      },
      ThrowsMessage<Error>(HasSubstr("no element 2 in a tuple of 2")));
}

TEST(CppCode, OfAnEmptyGraphReturnsNothing) {
  EXPECT_THAT(cpp_code(Graph()), AllOf(HasSubstr("void forward() {\n  }"), Not(HasSubstr("private"))));
}

TEST(TorchScriptCode, CallsOperatorsByTheirNames) {
  EXPECT_EQ(torchscript_code(parse_graph(
                "graph():\n%x = placeholder[target=x]\n%k = placeholder[target=k](default=2)\n"
                "%w = get_attr[target=layers.0.weight]\n%y = call_function[target=torch.relu](args = (%x,))\n"
                "%z = call_method[target=to](args = (%y, torch.float64))\n"
                "%s = call_function[target=operator.getitem](args = (%z, (Ellipsis, slice(None, -1, None))))\n"
                "%t = call_function[target=aten::add.Tensor](args = (%s, %w), kwargs = {alpha: inf})\nreturn (t,)")),
            "def forward(self, x: Tensor, k: int = 2):\n"
            "    w = getattr(self.layers, \"0\").weight\n"
            "    y = torch.relu(x)\n"
            "    z = torch.to(y, 7)\n"
            "    s = z[..., :-1]\n"
            "    t = torch.add(s, w, alpha=float(\"inf\"))\n"
            "    return (t,)\n");
}

TEST(TorchScriptCode, AssertsAsPythonDoes) {
  EXPECT_EQ(
      torchscript_code(parse_graph("graph():\n%x = placeholder[target=x]\n%d = call_method[target=dim](args = (%x,))\n"
                                   "%e = call_function[target=aten::eq.int](args = (%d, 2))\n"
                                   "%a = call_function[target=torch._assert](args = (%e, \"a 'matrix'\"))\nreturn x")),
      "def forward(self, x: Tensor):\n"
      "    d = torch.dim(x)\n"
      "    e = torch.eq(d, 2)\n"
      "    assert e, \"a 'matrix'\"\n"
      "    return x\n");
}

}  // namespace fx::cpp_test
