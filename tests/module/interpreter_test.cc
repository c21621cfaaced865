// Interpreter: FX's extension points, partial runs, what it keeps and what it says when something fails.
#include <fxgraph/module/interpreter.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::interpreter_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// x -> linear -> +param -> .relu() -> topk -> (values, linear's mean)
GraphModule every_opcode() {
  torch::manual_seed(0);
  GraphModule::Attributes attributes = {{"linear", std::shared_ptr<torch::nn::Module>(torch::nn::Linear(4, 5).ptr())},
                                        {"param", torch::randn({5}).requires_grad_()}};
  return GraphModule(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %linear = call_module[target=linear](args = (%x,))
    %param = get_attr[target=param]
    %add = call_function[target=operator.add](args = (%linear, %param))
    %relu = call_method[target=relu](args = (%add,))
    %topk = call_function[target=torch.ops.aten.topk.default](args = (%relu, 3))
    %getitem = call_function[target=operator.getitem](args = (%topk, 0))
    %mean = call_function[target=torch.ops.aten.mean.dim](args = (%linear, [-1]), kwargs = {keepdim: True})
    return (getitem, mean))"));
}

bool equal(const Value& a, const Value& b) {
  if (a.isTuple()) {
    const auto& x = a.toTupleRef().elements();
    const auto& y = b.toTupleRef().elements();
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!equal(x[i], y[i])) return false;
    }
    return true;
  }
  return torch::equal(a.toTensor(), b.toTensor());
}

TEST(Interpreter, GivesWhatTheModuleGives) {
  GraphModule gm = every_opcode();
  const torch::Tensor x = torch::randn({2, 4});
  EXPECT_TRUE(equal(Interpreter(gm).run({x}), gm.run({x})));
}

TEST(Interpreter, ReturnsNoneWithoutAnOutput) {
  GraphModule gm(parse_graph("graph():\n%x = placeholder[target=x]"));
  EXPECT_TRUE(Interpreter(gm).run({1}).isNone());
}

TEST(Interpreter, RunNodeSeesEveryNode) {
  struct Names : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(const Node& node) override {
      EXPECT_EQ(current_node(), &node);
      names.push_back(node.name());
      return Interpreter::run_node(node);
    }
    std::vector<std::string> names;
  };
  GraphModule gm = every_opcode();
  Names names(gm);
  names.run({torch::randn({2, 4})});
  EXPECT_THAT(names.names, ElementsAre("x", "linear", "param", "add", "relu", "topk", "getitem", "mean", "output"));
}

TEST(Interpreter, EachOpcodeGoesThroughItsFunction) {
  struct Calls : Interpreter {
    using Interpreter::Interpreter;
    Value placeholder(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("placeholder", t, a, k), Interpreter::placeholder(t, a, k);
    }
    Value get_attr(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("get_attr", t, a, k), Interpreter::get_attr(t, a, k);
    }
    Value call_function(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("call_function", t, a, k), Interpreter::call_function(t, a, k);
    }
    Value call_method(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("call_method", t, a, k), Interpreter::call_method(t, a, k);
    }
    Value call_module(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("call_module", t, a, k), Interpreter::call_module(t, a, k);
    }
    Value output(const Target& t, const Args& a, const Kwargs& k) override {
      return seen("output", t, a, k), Interpreter::output(t, a, k);
    }
    void seen(const char* op, const Target& target, const Args& args, const Kwargs& kwargs) {
      log.push_back(std::string(op) + " " + target.str() + " " + std::to_string(args.size()) + "+" +
                    std::to_string(kwargs.size()));
    }
    std::vector<std::string> log;
  };
  GraphModule gm = every_opcode();
  Calls calls(gm);
  const torch::Tensor x = torch::randn({2, 4});
  EXPECT_TRUE(equal(calls.run({x}), gm.run({x})));
  EXPECT_THAT(calls.log, ElementsAre("placeholder x 0+0", "call_module linear 1+0", "get_attr param 0+0",
                                     "call_function operator.add 2+0", "call_method relu 1+0",
                                     "call_function aten::topk 2+0", "call_function operator.getitem 2+0",
                                     "call_function aten::mean.dim 2+1", "output output 1+0"));
}

TEST(Interpreter, CallsOfModulesFollowTheModule) {
  GraphModule gm = every_opcode();
  Interpreter interpreter(gm);
  const torch::Tensor x = torch::randn({2, 4});
  for (int run = 0; run < 2; ++run) EXPECT_TRUE(equal(interpreter.run({x}), gm.run({x})));
  gm.replace_submodule("linear", torch::nn::Linear(4, 5).ptr());
  EXPECT_TRUE(equal(interpreter.run({x}), gm.run({x}))) << "another module at the path";
}

TEST(Interpreter, OverridesChangeWhatRuns) {
  struct Swap : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
      if (target == "aten::sigmoid") return torch::neg(args[0].toTensor());
      return Interpreter::call_function(target, args, kwargs);
    }
    Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
      return Interpreter::call_method(target == "neg" ? Target("sigmoid") : target, args, kwargs);
    }
  };
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%s = call_function[target=torch.ops.aten.sigmoid.default](args = (%x,))\n"
      "%n = call_method[target=neg](args = (%s,))\nreturn n"));
  const torch::Tensor x = torch::randn({3});
  EXPECT_TRUE(torch::equal(Swap(gm).run({x}).toTensor(), x.neg().sigmoid()));
}

TEST(Interpreter, SkipsNodesThatHaveAValue) {
  GraphModule gm = every_opcode();
  const torch::Tensor x = torch::randn({2, 4}), linear = torch::randn({2, 5});
  const Value result = Interpreter(gm).run({x}, {{gm.graph().find("linear"), linear}});
  EXPECT_TRUE(torch::equal(result.toTupleRef().elements()[1].toTensor(), linear.mean(1, true)));
  // With its placeholder given, the graph takes no input.
  const Value whole = Interpreter(gm).run({}, {{gm.graph().find("x"), x}});
  EXPECT_TRUE(equal(whole, gm.run({x})));
}

TEST(Interpreter, RunsAnotherGraphOverTheModule) {
  GraphModule gm = every_opcode();
  const Graph graph = parse_graph(
      "graph():\n%x = placeholder[target=x]\n%p = get_attr[target=param]\n"
      "%y = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %p))\nreturn y");
  const torch::Tensor x = torch::randn({5});
  EXPECT_TRUE(torch::equal(Interpreter(gm, graph).run({x}).toTensor(), x * gm.attribute("param")));
}

// Counts the tensors of a chain that live while it runs.
TEST(Interpreter, DropsValuesAfterTheirLastUse) {
  struct Alive : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(const Node& node) override {
      Value value = Interpreter::run_node(node);
      if (value.isTensor()) made.emplace_back(value.toTensor().getIntrusivePtr());
      std::size_t alive = 0;
      for (auto& weak : made) alive += weak.use_count() > 0;
      most = std::max(most, alive);
      return value;
    }
    std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> made;
    std::size_t most = 0;
  };
  Graph graph;
  Node* at = &graph.placeholder("x");
  graph.call_function("aten::neg", {*at});  // used by nothing
  for (int i = 0; i < 50; ++i) at = &graph.call_function("aten::relu", {*at});
  graph.output(*at);
  GraphModule gm(std::move(graph));
  Alive alive(gm);
  Args inputs{torch::randn({4})};
  const Value result = alive.boxed_run(inputs);
  EXPECT_EQ(alive.most, 2u);  // a node's input and its result
  EXPECT_FALSE(alive.value_of(*gm.graph().find("x")).has_value());
}

TEST(Interpreter, KeepsValuesOnRequest) {
  GraphModule gm = every_opcode();
  Interpreter interpreter(gm);
  interpreter.keep_values(true);
  const torch::Tensor x = torch::randn({2, 4});
  interpreter.run({x});
  for (const Node& node : gm.graph().nodes()) EXPECT_TRUE(interpreter.value_of(node).has_value()) << node;
  EXPECT_TRUE(torch::equal(interpreter.value_of(*gm.graph().find("x"))->toTensor(), x));
}

TEST(Interpreter, BoxedRunEmptiesTheListUnlessItsNumberIsWrong) {
  GraphModule gm = every_opcode();
  Args inputs{torch::randn({2, 4})};
  Interpreter(gm).boxed_run(inputs);
  EXPECT_TRUE(inputs.empty());
  Args wrong{1, 2};
  EXPECT_THAT([&] { Interpreter(gm).boxed_run(wrong); }, ThrowsMessage<Error>(HasSubstr("takes 1 inputs, 2 were")));
  EXPECT_EQ(wrong.size(), 2u);
}

TEST(Interpreter, DefaultsAndRests) {
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%y = placeholder[target=y](default=2.5)\n%rest = "
      "placeholder[target=*rest]\n%s = call_function[target=operator.mul](args = (%x, %y))\nreturn (s, rest)"));
  const Value some = Interpreter(gm).run({2.0});
  EXPECT_EQ(some.toTupleRef().elements()[0].toDouble(), 5.0);
  EXPECT_TRUE(some.toTupleRef().elements()[1].toListRef().empty());
  const Value all = Interpreter(gm).run({2.0, 3.0, 7, 8});
  EXPECT_EQ(all.toTupleRef().elements()[0].toDouble(), 6.0);
  EXPECT_EQ(all.toTupleRef().elements()[1].toIntVector(), (std::vector<std::int64_t>{7, 8}));
}

TEST(Interpreter, RefusesAWrongNumberOfInputs) {
  GraphModule gm = every_opcode();
  EXPECT_THAT([&] { Interpreter(gm).run({}); }, ThrowsMessage<Error>(HasSubstr("no value for the input x")));
  EXPECT_THAT(
      [&] {
        Interpreter(gm).run({torch::zeros({2, 4}), 1});
      },
      ThrowsMessage<Error>(HasSubstr("takes 1 inputs, 2 were given")));
}

TEST(Interpreter, ErrorsShowTheNodeAndWhereItWasMade) {
  GraphModule gm = every_opcode();
  gm.graph().find("add")->meta().set(meta_key::kStackTrace, std::string("outer.py:1\n  net.py:12\n"));
  gm.graph().find("linear")->meta().set(meta_key::kStackTrace, std::string("net.py:7"));
  gm.set_attribute("param", torch::zeros({3}));
  const torch::Tensor x = torch::randn({2, 4});
  EXPECT_THAT([&] { Interpreter(gm).run({x}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("while running %add : [num_users=1] = call_function"),
                                         HasSubstr("must match"), HasSubstr("it was made at net.py:12"))));
  EXPECT_THAT([&] { gm.run({x}); }, ThrowsMessage<Error>(HasSubstr("it was made at net.py:12")));
  EXPECT_THAT(
      [&] {
        Interpreter(gm).run({torch::randn({2, 3})});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("%linear = linear("), HasSubstr("it was made at net.py:7"))));
  try {
    Interpreter(gm).run({x});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::execution);
    EXPECT_EQ(error.node(), "add");
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(Interpreter, WrapsWhatOverridesThrow) {
  struct Picky : Interpreter {
    using Interpreter::Interpreter;
    Value call_method(const Target&, const Args&, const Kwargs&) override { throw std::out_of_range("no methods"); }
  };
  GraphModule gm = every_opcode();
  EXPECT_THAT(
      [&] {
        Picky(gm).run({torch::randn({2, 4})});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("while running %relu"), HasSubstr("no methods"))));
}

TEST(Interpreter, CallsModulesInTheirOwnMode) {
  torch::nn::BatchNorm1d frozen(3);
  frozen->eval();
  GraphModule::Attributes attributes = {{"bn", std::shared_ptr<torch::nn::Module>(frozen.ptr())}};
  GraphModule gm(attributes, parse_graph("graph():\n%x = placeholder[target=x]\n"
                                         "%y = call_module[target=bn](args = (%x,))\nreturn y"));
  ASSERT_TRUE(gm.is_training());
  Interpreter(gm).run({torch::randn({8, 3})});
  EXPECT_FALSE(frozen->is_training());
  EXPECT_TRUE(torch::equal(frozen->running_mean, torch::zeros({3})));
}

TEST(Interpreter, FollowsEditsBetweenRuns) {
  GraphModule gm = every_opcode();
  Interpreter interpreter(gm);
  const torch::Tensor x = torch::randn({2, 4});
  interpreter.run({x});
  gm.graph().find("relu")->set_target("sigmoid");
  EXPECT_TRUE(equal(interpreter.run({x}), gm.run({x})));
}

TEST(Interpreter, TakesValuesForItsOwnNodesOnly) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_function[target=aten::relu](args = (%x,))\n"
                  "return y"));
  Graph other;
  other.placeholder("p");
  const Node& q = other.placeholder("q");  // with the id of %y
  Node& gone = gm.graph().call_function("aten::neg", {*gm.graph().find("x")});
  gm.graph().erase_node(gone);
  const torch::Tensor x = -torch::ones({2});
  Interpreter interpreter(gm);
  const auto refused = [&](const Node* node, const char* name) {
    EXPECT_THAT(
        [&] {
          interpreter.run({x}, {{node, x}});
        },
        ThrowsMessage<Error>(AllOf(HasSubstr("a value for"), HasSubstr(name))));
  };
  refused(&q, "q, a node of another graph");
  refused(nullptr, "a null node");
  refused(&gone, "an erased node");
  EXPECT_TRUE(equal(interpreter.run({x}, {{gm.graph().find("y"), x}}), x));
}

// A dtype is a number in LibTorch; what stands in the graph tells which it is.
TEST(Interpreter, TakesDtypesForDtypes) {
  for (const char* call : {"call_method[target=view](args = (%x, torch.int32))",
                           "call_function[target=aten::view](args = (%x, torch.int32))",
                           "call_method[target=to](args = (%x, torch.float64))"}) {
    GraphModule gm(torch::nn::Module(),
                   parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%v = ") + call + "\nreturn v"));
    const torch::Tensor x = torch::rand({2, 3});
    const torch::Tensor found = Interpreter(gm).run({x}).toTensor();
    EXPECT_TRUE(found.equal(gm.run({x}).toTensor())) << call;
  }
}

}  // namespace fx::interpreter_test
