#include <fxgraph/effects/effects_of.h>

#include <gtest/gtest.h>

#include <fxgraph/ops/schema.h>

namespace fx::effects_test {

std::string effects_text(const NodeEffects& effects) {
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(effects.writes, "writes");
  add(effects.random, "random");
  add(effects.side_effect, "side_effect");
  add(effects.unknown, "unknown");
  add(effects.may_alias, "alias");
  return text;
}

class Effects : public ::testing::Test {
 protected:
  std::string function(const char* target, ArgumentSpan args, KwargSpan kwargs = {}) {
    last = &graph.call_function(target, args, kwargs);
    const std::string text = effects_text(effects_of(*last));
    EXPECT_EQ(effects_text(effects_of(*last)), text) << "asked twice";
    const auto each = effects_of_each(last->op(), last->target());
    EXPECT_TRUE(!each || *each == effects_of(*last)) << target;
    return text;
  }
  std::string method(const char* target, ArgumentSpan args, KwargSpan kwargs = {}) {
    last = &graph.call_method(target, args, kwargs);
    return effects_text(effects_of(*last));
  }
  std::string written() {
    std::string text;
    for_each_written(*last, [&](const Argument& argument) { text += (text.empty() ? "" : " ") + to_string(argument); });
    return text;
  }
  std::string aliased() {
    std::string text;
    for_each_aliased_input(*last, [&](Node& node) { text += (text.empty() ? "" : " ") + node.name(); });
    return text;
  }

  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& w = graph.placeholder("w");
  Node* last = nullptr;
};

TEST_F(Effects, OfOperators) {
  EXPECT_EQ(function("aten::add.Tensor", {x, y}), "");
  EXPECT_EQ(function("aten::relu", {x}), "");
  EXPECT_EQ(function("aten::rand", {Argument::list({2})}), "random");
  EXPECT_EQ(function("aten::_assert_async", {x}), "side_effect");
  EXPECT_EQ(function("prim::Print", {x}), "side_effect");
  EXPECT_EQ(function("aten::add_.Tensor", {x, y}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("aten::add.out", {x, y}, {{"out", w}}), "writes alias");
  EXPECT_EQ(written(), "%w");
  EXPECT_EQ(aliased(), "w");
  EXPECT_EQ(function("aten::copy_", {x, y}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(function("aten::normal_", {x}), "writes random alias");
  EXPECT_EQ(function("mylib::thing", {x, 1, y}), "unknown alias");
  EXPECT_EQ(written(), "%x %y");
  EXPECT_EQ(aliased(), "x y");
}

TEST_F(Effects, OfViews) {
  EXPECT_EQ(function("aten::view", {x, Argument::list({-1})}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(written(), "");
  EXPECT_EQ(function("aten::expand_as", {x, y}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("aten::split.Tensor", {x, 2}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("aten::clone", {x}), "");
  EXPECT_EQ(aliased(), "");
  EXPECT_EQ(function("aten::type_as", {x, y}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("aten::broadcast_tensors", {Argument::list({Argument(x), Argument(y)})}), "alias");
  EXPECT_EQ(aliased(), "x y");
  EXPECT_EQ(function("aten::append.t", {x, y}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(aliased(), "x y") << "the element is in the list";
  EXPECT_EQ(function("aten::__getitem__.t", {x, 0}), "alias");
  EXPECT_EQ(aliased(), "x");
}

// Containers hold what they are made of, whatever the declarations say.
TEST_F(Effects, WhatIsHeldIsAliased) {
  const Argument list = Argument::list({Argument(x), Argument(y)});
  struct Case {
    const char* target;
    std::vector<Argument> args;
    const char *effects, *aliased;
  };
  for (const Case& c : {
           Case{"aten::slice.t", {list, 1}, "alias", "x y"},
           Case{"aten::add.t", {x, y}, "alias", "x y"},
           Case{"aten::list.t", {x}, "alias", "x"},
           Case{"aten::mul.left_t", {x, 2}, "alias", "x"},
           Case{"aten::add_.t", {x, y}, "writes alias", "x y"},
           Case{"aten::extend.t", {x, y}, "writes alias", "x y"},
           Case{"aten::len.t", {x}, "", ""},
           Case{"operator.add", {list, list}, "alias", "x y x y"},
           Case{"operator.setitem", {list, 0, w}, "writes alias", "x y w"},
           Case{"operator.setitem", {x, "key", w}, "writes alias", "x w"},
           Case{"operator.setitem", {x, 0, w}, "writes", ""},
           Case{"builtins.setattr", {x, "data", w}, "writes alias", "x w"},
       }) {
    EXPECT_EQ(function(c.target, c.args), c.effects) << c.target;
    EXPECT_EQ(aliased(), c.aliased) << c.target;
  }
  function("builtins.setattr", {x, "data", y});
  EXPECT_TRUE(effects_of(*last).restructures);
  Node& chunks = graph.call_function("aten::chunk", {x, 2});
  function("operator.getitem", {chunks, Argument::slice({}, 1, {})});
  EXPECT_FALSE(effects_of(*last).aliases) << "a list of its own";
  function("operator.getitem", {x, Argument::slice({}, 1, {})});
  EXPECT_TRUE(effects_of(*last).aliases);
}

TEST_F(Effects, ResultsAreWhatWasGivenAsOut) {
  for (const auto& [target, args] : std::initializer_list<std::pair<const char*, std::vector<Argument>>>{
           {"torch.norm", {x}},
           {"torch.nonzero", {x}},
           {"torch.tensordot", {x, y}},
           {"torch.chain_matmul", {x, y}},
           {"torch.nn.functional.normalize", {x}},
           {"torch.nn.functional.normalize", {x, 2.0, 1, 1e-12}}}) {
    EXPECT_EQ(function(target, args).find("writes"), std::string::npos) << target;
    EXPECT_EQ(function(target, args, {{"out", w}}), "writes alias") << target;
    EXPECT_NE(aliased().find("w"), std::string::npos) << target;
  }
  for (const auto& [target, args] : std::initializer_list<std::pair<const char*, std::vector<Argument>>>{
           {"torch.nn.functional.normalize", {x, 2.0, 1, 1e-12, w}},
           {"torch.norm", {x, 2, 0, false, w}},
           {"torch.tensordot", {x, y, 1, w}}}) {
    EXPECT_EQ(function(target, args), "writes alias") << target;
    EXPECT_NE(aliased().find("w"), std::string::npos) << target;
  }
}

TEST_F(Effects, AliasesAreThoseThatTheDeclarationNames) {
  const std::pair<const char*, const char*> cases[] = {
      {"(Tensor(a) x, Tensor y) -> Tensor(a)", "x"},
      {"(Tensor x, Tensor(b) y) -> Tensor(b)", "y"},
      {"(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))", "x y"},
      {"(Tensor(a) x, Tensor(b -> *) y) -> Tensor(a)", "x"},
      {"(Tensor(a!) x, Tensor(b -> *) y) -> Tensor(a!)", "x y"},
      {"(Tensor(a) x, Tensor(b -> a) y) -> Tensor(a)", "x y"},
      {"(Tensor(a) x, Tensor y) -> (Tensor(a), Tensor(*))", "x y"},
      {"(Tensor x, Tensor y) -> Tensor(*)", "x y"},
      {"(Tensor x, Tensor y) -> Tensor(c)", "x y"},  // of what, it does not say
      {"(Tensor x, Tensor y) -> Tensor", ""},
  };
  for (const auto& [declaration, wanted] : cases) {
    register_schema(std::string("effects_test::share") + declaration);
    function("effects_test::share", {x, y});
    EXPECT_EQ(aliased(), wanted) << declaration;
  }
}

TEST_F(Effects, WhatIsHandedOnIsOfTheCallsInputs) {
  EXPECT_EQ(function("aten::dropout", {x, 0.5, false}), "alias");
  EXPECT_EQ(aliased(), "x") << "its declaration does not say so";
  function("operator.getitem", {x, 0});
  EXPECT_TRUE(effects_of(*last).aliases);
  function("operator.getitem", {x, y});
  EXPECT_FALSE(effects_of(*last).aliases) << "an index of tensors copies";
  function("operator.getitem", {x, 0, 1});
  EXPECT_FALSE(effects_of(*last).aliases) << "whatever it does";
  function("operator.getitem", {Argument::list({Argument(x), Argument(y)}), 0});
  EXPECT_FALSE(effects_of(*last).aliases) << "of which one is not told";
}

TEST_F(Effects, LiteralsSwitchThemOff) {
  EXPECT_EQ(function("aten::dropout", {x, 0.5, true}), "random alias");
  EXPECT_EQ(function("aten::dropout", {x, 0.5, false}), "alias") << "it returns its input";
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("aten::dropout", {x, 0.0, true}), "alias");
  EXPECT_EQ(function("aten::dropout", {x, 0, true}), "alias");
  EXPECT_EQ(function("aten::dropout", {x, 0.5}, {{"train", Argument(y)}}), "random alias") << "not known: on";
  EXPECT_EQ(function("aten::dropout", {x}), "random alias") << "nor what is missing";
  EXPECT_EQ(function("aten::dropout_", {x, 0.5, false}), "writes alias");
  EXPECT_EQ(function("aten::rrelu", {x}), "");
  EXPECT_EQ(function("aten::rrelu", {x}, {{"training", true}}), "random");
  EXPECT_EQ(function("aten::rrelu_", {x}), "writes alias");
  EXPECT_EQ(function("aten::scaled_dot_product_attention", {x, y, w}), "");
  EXPECT_EQ(function("aten::scaled_dot_product_attention", {x, y, w}, {{"dropout_p", 0.1}}), "random");
  const Argument none;
  EXPECT_EQ(function("aten::batch_norm", {x, none, none, y, w, false, 0.1, 1e-5, true}), "");
  EXPECT_EQ(function("aten::batch_norm", {x, none, none, y, w, true, 0.1, 1e-5, true}), "writes");
  EXPECT_EQ(written(), "%y %w") << "the running statistics";
  EXPECT_EQ(function("aten::batch_norm", {x, none, none, none, none, true, 0.1, 1e-5, true}), "") << "there are none";
  EXPECT_EQ(function("aten::instance_norm", {x, none, none, y, w, true, 0.1, 1e-5, true}), "writes");
  EXPECT_EQ(function("aten::instance_norm", {x, none, none, none, none, true, 0.1, 1e-5, true}), "");
  // It writes back what it read, as a mean over the batch, even when it does not update.
  EXPECT_EQ(function("aten::instance_norm", {x, none, none, y, w, false, 0.1, 1e-5, true}), "writes");
  EXPECT_EQ(function("aten::rrelu_with_noise", {x, y, 0.1, 0.3, false}), "");
  EXPECT_EQ(function("aten::rrelu_with_noise_", {x, y, 0.1, 0.3, false}), "writes alias") << "itself, always";
  EXPECT_EQ(function("aten::native_batch_norm", {x, none, none, y, w, true, 0.1, 1e-5}), "writes");
  EXPECT_EQ(function("aten::native_batch_norm", {x, none, none, y, w, false, 0.1, 1e-5}), "");
  EXPECT_EQ(function("aten::_native_batch_norm_legit", {x, none, none, y, w, true, 0.1, 1e-5}), "writes");
  EXPECT_EQ(written(), "%y %w");
  const Argument list = Argument::list({Argument(y)});
  EXPECT_EQ(function("aten::lstm.input", {x, list, list, true, 1, 0.5, true, false, false}), "random");
  EXPECT_EQ(function("aten::lstm.input", {x, list, list, true, 1, 0.0, true, false, false}), "");
  EXPECT_EQ(function("aten::lstm.input", {x, list, list, true, 1, 0.5, false, false, false}), "");
}

TEST_F(Effects, OfPythonFunctions) {
  EXPECT_EQ(function("torch.relu", {x}), "");
  EXPECT_EQ(function("torch.add", {x, y}, {{"alpha", 2}}), "");
  EXPECT_EQ(function("torch.add", {x, y}, {{"out", w}}), "writes alias");
  EXPECT_EQ(written(), "%w");
  EXPECT_EQ(function("torch.max", {x, 0}, {{"out", Argument::tuple({Argument(y), Argument(w)})}}), "writes alias");
  EXPECT_EQ(written(), "%x (%y, %w)") << "no overload is found: anything given";
  EXPECT_EQ(function("torch.relu_", {x}), "writes alias");
  for (const char* random :
       {"torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.rand_like", "torch.randn_like",
        "torch.randint_like", "torch.normal", "torch.poisson", "torch.bernoulli", "torch.multinomial"}) {
    EXPECT_EQ(function(random, {x, 1}), "random") << random;
  }
  EXPECT_EQ(function("torch.nn.functional.relu", {x}), "");
  EXPECT_EQ(function("torch.nn.functional.relu", {x}, {{"inplace", true}}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(function("torch.nn.functional.relu", {x}, {{"inplace", Argument(y)}}), "writes alias")
      << "not known: assumed";
  EXPECT_EQ(function("torch.nn.functional.dropout", {x}), "random alias");
  EXPECT_EQ(function("torch.nn.functional.dropout", {x}, {{"training", false}}), "alias");
  EXPECT_EQ(function("torch.nn.functional.dropout3d", {x}, {{"training", false}}), "alias");
  EXPECT_EQ(function("torch.nn.functional.dropout3d", {x}, {{"inplace", true}}), "writes random alias");
  EXPECT_EQ(function("torch.nn.functional.multi_head_attention_forward", {x}), "random");
  std::vector<Argument> attention(13, x);
  for (const auto& [p, effects] :
       {std::pair<Argument, const char*>(0.5, "random"), {0.0, ""}, {0, ""}, {true, "random"}}) {
    attention[10] = p;
    EXPECT_EQ(function("torch.nn.functional.multi_head_attention_forward", attention), effects) << p;
  }
  EXPECT_EQ(function("torch.nn.functional.batch_norm", {x, y, w}, {{"training", true}}), "writes");
  EXPECT_EQ(written(), "%y %w");
  EXPECT_EQ(function("torch.nn.functional.batch_norm", {x, y, w}), "");
  EXPECT_EQ(function("torch.nn.functional.embedding", {x, w}), "");
  EXPECT_EQ(function("torch.nn.functional.embedding", {x, w}, {{"padding_idx", -1}}), "");
  EXPECT_EQ(function("torch.nn.functional.embedding", {x, w}, {{"max_norm", 1.0}}), "writes");
  EXPECT_EQ(function("torch.nn.functional.interpolate", {x}, {{"scale_factor", 2}}), "");
  EXPECT_EQ(function("torch.nn.functional.cross_entropy", {x, y}), "");
  EXPECT_EQ(function("torch.nn.functional.gumbel_softmax", {x}), "random");
  EXPECT_EQ(function("torch.nn.functional.adaptive_max_pool2d", {x, 1}), "");
  EXPECT_EQ(function("torch.norm", {x}), "");
  EXPECT_EQ(function("torch.functional.einsum", {"ij->ji", x}), "alias");
  EXPECT_EQ(function("torch._assert", {x, "message"}), "side_effect");
  EXPECT_EQ(function("torch._C._set_grad_enabled", {false}), "side_effect");
  EXPECT_EQ(function("builtins.print", {x}), "side_effect");
  EXPECT_EQ(function("builtins.len", {x}), "");
  EXPECT_EQ(function("math.sqrt", {x}), "");
  EXPECT_EQ(function("my_module.f", {x}), "unknown alias");
}

TEST_F(Effects, OfModuleOperator) {
  EXPECT_EQ(function("operator.add", {x, y}), "");
  EXPECT_EQ(function("operator.iadd", {x, y}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("operator.imul", {x, 2}), "writes alias");
  EXPECT_EQ(function("operator.setitem", {x, 0, y}), "writes");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(function("operator.getitem", {x, 0}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(function("operator.getitem", {x, Argument(y)}), "alias");
  EXPECT_EQ(aliased(), "x") << "the index is read only";
  EXPECT_EQ(function("builtins.getattr", {x, "T"}), "alias");
  EXPECT_EQ(function("builtins.getattr", {x, "shape"}), "");
  EXPECT_EQ(function("operator.getitem", {*last, 0}), "") << "an int";
  Node& length = graph.call_method("size", {x, 0});
  EXPECT_EQ(function("operator.iadd", {length, 1}), "") << "ints are not changed in place";
}

TEST_F(Effects, OfMethods) {
  EXPECT_EQ(method("relu", {x}), "");
  EXPECT_EQ(method("add_", {x, y}), "writes alias");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(method("zero_", {x}), "writes alias");
  EXPECT_EQ(method("view", {x, -1}), "alias");
  EXPECT_EQ(aliased(), "x");
  EXPECT_EQ(method("view", {x, y}), "alias");
  EXPECT_EQ(method("contiguous", {x}), "alias");
  EXPECT_EQ(method("float", {x}), "alias");
  EXPECT_EQ(method("bernoulli", {x}), "random");
  EXPECT_EQ(method("random_", {x}), "writes random alias");
  EXPECT_EQ(method("size", {x}), "");
  EXPECT_EQ(method("item", {x}), "");
  EXPECT_EQ(method("tolist", {x}), "");
  EXPECT_EQ(method("norm", {x}), "");
  EXPECT_EQ(method("backward", {x}), "side_effect");
  EXPECT_EQ(method("some_method", {x}), "unknown alias");
  EXPECT_EQ(method("share_memory_", {x, y}), "writes");
  EXPECT_EQ(written(), "%x");
  EXPECT_EQ(method("some_method_", {x, y}), "unknown alias");
  EXPECT_EQ(written(), "%x %y");
  for (const char* no_method : {"aten::relu", "aten::add", "aten::add_.Tensor", "aten::dropout"}) {
    EXPECT_EQ(method(no_method, {x, y}, {{"alpha", w}}), "unknown alias") << no_method;
    EXPECT_EQ(written(), "%x %y %w") << no_method;
    EXPECT_EQ(aliased(), "x y w") << no_method;
  }
}

TEST_F(Effects, OfOperatorsWithoutOverload) {
  EXPECT_EQ(function("aten::add", {x, y}), "");
  EXPECT_EQ(function("aten::add_", {x, y}), "writes alias");
  EXPECT_EQ(function("aten::add", {x, y}, {{"out", w}}), "writes alias");
  EXPECT_EQ(written(), "%w");
  EXPECT_EQ(function("aten::bernoulli", {x}), "random");
  EXPECT_EQ(function("profiler::_record_function_enter", {"here"}), "side_effect");
}

TEST_F(Effects, OfCollectives) {
  register_schema("_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor");
  EXPECT_EQ(function("_c10d_functional::all_reduce", {x, "sum", "g"}), "side_effect");
  EXPECT_EQ(function("torch.ops._c10d_functional.all_reduce.default", {x, "sum", "g"}), "side_effect");
}

TEST_F(Effects, OfModules) {
  Node& call = graph.call_module("layer", {x});
  EXPECT_FALSE(effects_of(call).impure()) << "pure, as in FX";
  EXPECT_TRUE(effects_of(call).may_alias);
  const ModuleInfo modules{.effects = [](const Node& node) { return NodeEffects{.writes = node.target() == "layer"}; }};
  EXPECT_TRUE(effects_of(call, modules).writes);
  int written = 0;
  for_each_written(
      call, [&](const Argument&) { ++written; }, modules);
  EXPECT_EQ(written, 1);
  EXPECT_FALSE(effects_of(graph.call_module("other", {x}), modules).impure());
}

TEST_F(Effects, OfEachCallOfATarget) {
  const auto each = [](Op op, const char* target, const ModuleInfo& modules = {}) {
    const auto effects = effects_of_each(op, target, modules);
    return effects ? "each " + effects_text(*effects) : std::string("the call decides");
  };
  EXPECT_EQ(each(Op::call_function, "aten::relu"), "each ");
  EXPECT_EQ(each(Op::call_function, "aten::transpose.int"), "each alias");
  EXPECT_EQ(each(Op::call_function, "aten::rand_like"), "each random");
  EXPECT_EQ(each(Op::call_function, "aten::add_.Tensor"), "the call decides");
  EXPECT_EQ(each(Op::call_function, "aten::dropout"), "the call decides");
  EXPECT_EQ(each(Op::call_function, "torch.relu"), "the call decides") << "out=";
  EXPECT_EQ(each(Op::call_function, "mine::unheard_of"), "the call decides");
  EXPECT_EQ(each(Op::call_method, "relu"), "the call decides");
  EXPECT_EQ(each(Op::call_module, "layer"), "each alias");
  EXPECT_EQ(each(Op::call_module, "layer", {.effects = [](const Node&) { return NodeEffects{}; }}), "the call decides");
  EXPECT_EQ(each(Op::placeholder, "x"), "each ");
  EXPECT_EQ(each(Op::get_attr, "weight"), "each ");
  EXPECT_EQ(each(Op::output, "output"), "each ");
}

TEST_F(Effects, OfOtherNodes) {
  EXPECT_EQ(effects_of(x), NodeEffects{});
  EXPECT_EQ(effects_of(graph.get_attr("weight")), NodeEffects{});
  EXPECT_EQ(effects_of(graph.output(x)), NodeEffects{});
}

}  // namespace fx::effects_test
