#include <gtest/gtest.h>

#include <fxgraph/ops/call.h>

namespace fx::normalize_test {

std::string call_text(const Node& node) {
  std::string text = std::string(to_string(node.op())) + " " + node.target().str() + "(";
  bool first = true;
  for (const Argument& argument : node.args()) {
    text += (first ? "" : ", ") + to_string(argument);
    first = false;
  }
  for (const auto& [name, value] : node.kwargs()) {
    text += (first ? "" : ", ") + name.str() + "=" + to_string(value);
    first = false;
  }
  return text + ")";
}

class Normalize : public ::testing::Test {
 protected:
  // The call after normalising, without its opcode when that is call_function.
  std::string function(const char* target, ArgumentSpan args, KwargSpan kwargs = {}) {
    return normalized(graph.call_function(target, args, kwargs));
  }
  std::string method(const char* target, ArgumentSpan args, KwargSpan kwargs = {}) {
    return normalized(graph.call_method(target, args, kwargs));
  }
  std::string normalized(Node& node) {
    const Call call = call_of(node);
    const std::string name = node.name();
    normalize_operators(graph);
    EXPECT_EQ(node.name(), name);
    const std::string text = call_text(node);
    if (!text.starts_with("call_function aten::")) return text;
    EXPECT_EQ(&call_of(node).schema(), &call.schema()) << "call_of and normalize_operators must agree: " << text;
    EXPECT_EQ(call.schema().target, node.target());
    EXPECT_EQ(check_call(call.schema(), node.args(), node.kwargs()), std::nullopt);
    return text.substr(std::string("call_function ").size());
  }

  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& w = graph.placeholder("w");
  Node& n = graph.call_method("size", {x, 0}, {}, "n");
};

TEST_F(Normalize, TorchFunctionsKeepTheirKeywords) {
  EXPECT_EQ(function("torch.add", {x, y}), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(function("torch.add", {x, y}, {{"alpha", 2}}), "aten::add.Tensor(%x, %y, alpha=2)");
  EXPECT_EQ(function("torch.div", {x, y}, {{"rounding_mode", "floor"}}),
            "aten::div.Tensor_mode(%x, %y, rounding_mode='floor')");
  EXPECT_EQ(function("torch.div", {x, 2.0}), "aten::div.Scalar(%x, 2.0)");
  EXPECT_EQ(function("torch.relu", {}, {{"input", x}}), "aten::relu(self=%x)");
  EXPECT_EQ(function("torch.layer_norm", {}, {{"input", x}, {"normalized_shape", Argument::list({Argument(2)})}}),
            "aten::layer_norm(input=%x, normalized_shape=[2])");
  EXPECT_EQ(function("torch.cat", {Argument::list({Argument(x), Argument(y)})}, {{"axis", 1}}),
            "aten::cat([%x, %y], dim=1)");
  EXPECT_EQ(function("torch.sum", {x}, {{"axis", 1}, {"keepdims", true}}),
            "aten::sum.dim_IntList(%x, dim=[1], keepdim=True)");
  EXPECT_EQ(function("torch.flatten", {x, 1}), "aten::flatten.using_ints(%x, 1)");
  EXPECT_EQ(function("torch.zeros", {2, 3}, {{"dtype", DType::float32}, {"requires_grad", false}}),
            "aten::zeros([2, 3], dtype=torch.float32)");
  EXPECT_EQ(function("torch.add", {x, y}, {{"out", w}}), "aten::add.out(%x, %y, out=%w)");
  EXPECT_EQ(function("torch.add", {x, y}, {{"out", Argument()}}), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(function("torch.conv2d", {x, w}, {{"padding", 1}}), "aten::conv2d(%x, %w, padding=[1, 1])");
  EXPECT_EQ(function("torch.where", {x}, {{"input", y}, {"other", w}}), "aten::where.self(%x, self=%y, other=%w)");
  EXPECT_EQ(function("torch._C._nn.gelu", {x}), "aten::gelu(%x)");
  EXPECT_EQ(function("torch._C._linalg.linalg_norm", {x}), "aten::linalg_norm(%x)");
  EXPECT_EQ(function("torch.linalg.norm", {x}), "aten::linalg_norm(%x)");
  EXPECT_EQ(function("torch.functional.split", {x, 2, 1}), "aten::split.Tensor(%x, 2, 1)");
  EXPECT_EQ(function("torch.functional.einsum", {"ij,jk->ik", x, y}), "aten::einsum('ij,jk->ik', [%x, %y])");
  EXPECT_EQ(function("torch.einsum", {"i,i->", Argument::list({Argument(x), Argument(y)})}),
            "aten::einsum('i,i->', [%x, %y])");
}

TEST_F(Normalize, Operators) {
  EXPECT_EQ(function("operator.add", {x, y}), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(function("_operator.add", {x, y}), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(function("operator.add", {x, 1}), "aten::add.Scalar(%x, 1)");
  EXPECT_EQ(function("operator.add", {1, x}), "aten::add.Scalar(%x, 1)");
  EXPECT_EQ(function("operator.sub", {1, x}), "aten::rsub.Scalar(%x, 1)");
  EXPECT_EQ(function("operator.mul", {2.0, x}), "aten::mul.Scalar(%x, 2.0)");
  EXPECT_EQ(function("operator.truediv", {x, 2}), "aten::div.Scalar(%x, 2)");
  EXPECT_EQ(function("operator.floordiv", {x, 2}), "aten::floor_divide.Scalar(%x, 2)");
  EXPECT_EQ(function("operator.mod", {x, 2}), "aten::remainder.Scalar(%x, 2)");
  EXPECT_EQ(function("operator.pow", {x, 2}), "aten::pow.Tensor_Scalar(%x, 2)");
  EXPECT_EQ(function("operator.pow", {2, x}), "aten::pow.Scalar(2, %x)");
  EXPECT_EQ(function("operator.matmul", {x, y}), "aten::matmul(%x, %y)");
  EXPECT_EQ(function("operator.neg", {x}), "aten::neg(%x)");
  EXPECT_EQ(function("operator.invert", {x}), "aten::bitwise_not(%x)");
  EXPECT_EQ(function("operator.and_", {x, y}), "aten::bitwise_and.Tensor(%x, %y)");
  EXPECT_EQ(function("operator.lshift", {x, 1}), "aten::__lshift__.Scalar(%x, 1)");
  EXPECT_EQ(function("operator.gt", {x, 0}), "aten::gt.Scalar(%x, 0)");
  EXPECT_EQ(function("operator.lt", {0, x}), "aten::gt.Scalar(%x, 0)");
  EXPECT_EQ(function("operator.iadd", {x, y}), "aten::add_.Tensor(%x, %y)");
  EXPECT_EQ(function("operator.imul", {x, 2}), "aten::mul_.Scalar(%x, 2)");
  EXPECT_EQ(function("operator.isub", {x, y}), "aten::sub_.Tensor(%x, %y)");
}

TEST_F(Normalize, OperatorsOnNumbers) {
  EXPECT_EQ(call_text(n), "call_method size(%x, 0)");
  EXPECT_EQ(function("operator.add", {n, 1}), "aten::add.int(%n, 1)");
  EXPECT_EQ(function("operator.floordiv", {n, 2}), "aten::floordiv.int(%n, 2)");
  EXPECT_EQ(function("operator.truediv", {n, 2}), "aten::div.int(%n, 2)");
  EXPECT_EQ(function("operator.iadd", {n, 1}), "aten::add.int(%n, 1)") << "ints are not changed in place";
  EXPECT_EQ(function("operator.mul", {x, n}), "aten::mul.Scalar(%x, %n)");
}

TEST_F(Normalize, Methods) {
  // Where the operator has the keyword it says something, false too.
  EXPECT_EQ(method("requires_grad_", {x}, {{"requires_grad", false}}), "aten::requires_grad_(%x, requires_grad=False)");
  EXPECT_EQ(method("relu", {x}), "aten::relu(%x)");
  EXPECT_EQ(method("add_", {x, y}, {{"alpha", 3}}), "aten::add_.Tensor(%x, %y, alpha=3)");
  EXPECT_EQ(method("view", {x, 2, -1}), "aten::view(%x, [2, -1])");
  EXPECT_EQ(method("view", {x, -1}), "aten::view(%x, [-1])");
  EXPECT_EQ(method("view", {x, n, -1}), "aten::view(%x, [%n, -1])");
  EXPECT_EQ(method("view", {x, Argument::tuple({2, 3})}), "aten::view(%x, (2, 3))");
  EXPECT_EQ(method("reshape", {x, n}), "aten::reshape(%x, [%n])");
  EXPECT_EQ(method("permute", {x, 0, 2, 1}), "aten::permute(%x, [0, 2, 1])");
  EXPECT_EQ(method("expand", {x, -1, 4}), "aten::expand(%x, [-1, 4])");
  EXPECT_EQ(method("size", {x}), "aten::size(%x)");
  EXPECT_EQ(method("size", {x, 1}), "aten::size.int(%x, 1)");
  EXPECT_EQ(method("transpose", {x, 1, 2}), "aten::transpose.int(%x, 1, 2)");
  EXPECT_EQ(method("sum", {x}, {{"dim", 1}}), "aten::sum.dim_IntList(%x, dim=[1])");
  EXPECT_EQ(method("mean", {x, Argument::list({2, 3})}), "aten::mean.dim(%x, [2, 3])");
  EXPECT_EQ(method("float", {x}), "aten::to.dtype(%x, torch.float32)");
  EXPECT_EQ(method("to", {x, DType::float16}), "aten::to.dtype(%x, torch.float16)");
  EXPECT_EQ(method("to", {x, y}), "aten::to.other(%x, %y)");
  EXPECT_EQ(method("type", {x, DType::int64}), "aten::to.dtype(%x, torch.int64)");
  EXPECT_EQ(method("split", {x, 2}, {{"dim", 1}}), "aten::split.Tensor(%x, 2, 1)");
  EXPECT_EQ(method("contiguous", {x}), "aten::contiguous(%x)");
  EXPECT_EQ(method("clamp", {x}, {{"min", 0.0}, {"max", 6.0}}), "aten::clamp(%x, min=0.0, max=6.0)");
  EXPECT_EQ(method("masked_fill", {x, y, -1e9}), "aten::masked_fill.Scalar(%x, %y, -1000000000.0)");
  EXPECT_EQ(method("unbind", {x}), "aten::unbind.int(%x)");
  EXPECT_EQ(method("nelement", {x}), "aten::numel(%x)");
  EXPECT_EQ(method("where", {x, y, w}), "aten::where.self(%y, %x, %w)") << "the condition comes first in the operator";
  EXPECT_EQ(method("nonzero", {x}, {{"as_tuple", true}}), "aten::nonzero_numpy(%x)");
}

TEST_F(Normalize, Functionals) {
  const auto f = [](const char* name) { return std::string("torch.nn.functional.") + name; };
  EXPECT_EQ(function(f("relu").c_str(), {x}, {{"inplace", false}}), "aten::relu(%x)");
  EXPECT_EQ(function(f("relu").c_str(), {x}, {{"inplace", true}}), "aten::relu_(%x)");
  EXPECT_EQ(function(f("dropout").c_str(), {x}, {{"p", 0.1}, {"training", false}, {"inplace", false}}),
            "aten::dropout(%x, 0.1, False)");
  EXPECT_EQ(function(f("softmax").c_str(), {x}, {{"dim", -1}, {"_stacklevel", 3}, {"dtype", Argument()}}),
            "aten::softmax.int(%x, -1)");
  EXPECT_EQ(function(f("log_softmax").c_str(), {x, 1}, {{"dtype", DType::float32}}),
            "aten::log_softmax.int(%x, 1, torch.float32)");
  EXPECT_EQ(function(f("max_pool2d").c_str(), {x, 3},
                     {{"stride", 2}, {"padding", 1}, {"dilation", 1}, {"ceil_mode", false}, {"return_indices", false}}),
            "aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])");
  EXPECT_EQ(function(f("max_pool2d").c_str(), {x, 2}, {{"stride", Argument()}, {"ceil_mode", true}}),
            "aten::max_pool2d(%x, [2, 2], [], [0, 0], [1, 1], True)");
  EXPECT_EQ(function(f("max_pool2d").c_str(), {x, 2}, {{"return_indices", true}}),
            "aten::max_pool2d_with_indices(%x, [2, 2])");
  EXPECT_EQ(function(f("adaptive_avg_pool2d").c_str(), {x, Argument::tuple({1, 1})}),
            "aten::adaptive_avg_pool2d(%x, (1, 1))");
  EXPECT_EQ(function(f("batch_norm").c_str(), {x, y, w}, {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}}),
            "aten::batch_norm(%x, None, None, %y, %w, False, 0.1, 1e-05, True)");
  EXPECT_EQ(function(f("layer_norm").c_str(), {x, Argument::tuple({8})},
                     {{"weight", w}, {"bias", Argument()}, {"eps", 1e-5}}),
            "aten::layer_norm(%x, (8,), %w)");
  EXPECT_EQ(function(f("embedding").c_str(), {x, w}), "aten::embedding(%w, %x)");
  EXPECT_EQ(function(f("embedding").c_str(), {x, w}, {{"padding_idx", 0}}), "aten::embedding(%w, %x, 0)");
  EXPECT_EQ(function(f("linear").c_str(), {x, w}), "aten::linear(%x, %w)");
  EXPECT_EQ(function(f("hardtanh").c_str(), {x, 0.0, 6.0}), "aten::hardtanh(%x, 0.0, 6.0)");
  EXPECT_EQ(function(f("gelu").c_str(), {x}, {{"approximate", "tanh"}}), "aten::gelu(%x, approximate='tanh')");
  EXPECT_EQ(function(f("pad").c_str(), {x, Argument::tuple({1, 1}), "constant", 0}),
            "aten::pad(%x, (1, 1), 'constant', 0)");
}

// A number of which nobody knows whether it is whole, or a float, is none the less a number, and so is what comes of
// it.
TEST_F(Normalize, NumbersOfAnyKindStayNumbers) {
  Node& item = graph.call_function("aten::item", {x});
  for (const std::string name : {"add", "sub", "mul", "ge", "lt", "eq"}) {
    Node& first = graph.call_function("operator.add", {1, item});
    Node& second = graph.call_function("operator.mul", {first, 2});
    Node& third = graph.call_function(Symbol("operator." + name), {second, 0});
    normalize_operators(graph);
    EXPECT_EQ(call_text(third), "call_function aten::" + name + "(%" + second.name() + ", 0)");
  }
}

TEST_F(Normalize, LeavesWhatNoSingleOverloadDoes) {
  const auto stays = [&](Node& node) {
    const std::string before = call_text(node);
    EXPECT_FALSE(call_of(node)) << before;
    normalize_operators(graph);
    EXPECT_EQ(call_text(node), before);
  };
  stays(graph.call_function("operator.getitem", {x, 0}));
  stays(graph.call_function("builtins.getattr", {x, "shape"}));
  stays(graph.call_function("operator.truediv", {1, x}));
  stays(graph.call_function("torch.nn.functional.softmax", {x}));
  stays(graph.call_function("torch.nn.functional.relu", {x}, {{"inplace", Argument(y)}}));
  stays(graph.call_function("torch.nn.functional.adaptive_max_pool2d", {x, 1}));
  stays(graph.call_function("torch.nn.functional.adaptive_avg_pool2d", {x, Argument::tuple({Argument(), 1})}));
  stays(graph.call_function("torch.nn.functional.embedding", {x, w}, {{"padding_idx", -1}}));
  stays(graph.call_function("torch.nn.functional.embedding", {x, w}, {{"max_norm", 1.0}}));
  stays(graph.call_function("torch.max", {x, 0}, {{"out", Argument::tuple({Argument(y), Argument(w)})}}));
  stays(graph.call_function("torch.meshgrid", {x}));
  stays(graph.call_function("my_module.f", {x}));
  stays(graph.call_function("torch.zeros", {2}, {{"requires_grad", true}}));
  stays(graph.call_method("view", {x, y}));
  stays(graph.call_method("type", {x, "torch.FloatTensor"}));
  stays(graph.call_method("format", {x}));
  stays(graph.call_function("operator.add", {Argument::list({1}), Argument::list({2})}));
}

TEST_F(Normalize, SpellsOutOverloads) {
  EXPECT_EQ(function("aten::add", {x, y}), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(function("aten::max", {x}), "aten::max(%x)");
  EXPECT_EQ(function("torch.ops.aten.max", {x, 1}), "aten::max.dim(%x, 1)");
  EXPECT_EQ(function("aten::relu", {x}), "aten::relu(%x)");
}

TEST_F(Normalize, KeepsOrderUsersAndNotes) {
  Graph g;
  Node& a = g.placeholder("a");
  Node& relu = g.call_method("relu", {a}, {}, "act");
  relu.meta().set(meta_key::kStackTrace, std::string("here"));
  Node& add = g.call_function("operator.add", {relu, a});
  g.output(add);
  EXPECT_EQ(normalize_operators(g), 2u);
  EXPECT_EQ(normalize_operators(g), 0u) << "nothing is left to do";
  EXPECT_EQ(relu.name(), "act");
  EXPECT_EQ(*relu.find_meta()->get<std::string>(meta_key::kStackTrace), "here");
  EXPECT_EQ(a.next(), &relu);
  EXPECT_EQ(relu.next(), &add);
  EXPECT_EQ(relu.users().to_vector(), std::vector<Node*>{&add});
  EXPECT_EQ(a.users().to_vector(), (std::vector<Node*>{&relu, &add}));
  EXPECT_EQ(g.count(Op::call_function, "aten::relu"), 1u);
  EXPECT_EQ(g.count(Op::call_method, "relu"), 0u);
  g.lint();
}

// In order every node knows what its inputs yield, however long the chain.
TEST_F(Normalize, LongChainsOfNumbers) {
  Graph g;
  Node& a = g.placeholder("a");
  Node* length = &g.call_method("size", {a, 0});
  for (int i = 0; i < 5000; ++i) length = &g.call_function("operator.add", {*length, 1});
  g.output(*length);
  EXPECT_EQ(normalize_operators(g), 5001u);
  EXPECT_EQ(length->target(), "aten::add.int");
}

}  // namespace fx::normalize_test
