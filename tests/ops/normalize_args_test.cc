// Arguments by name, and the types of elements. FX: test_normalize_args, test_annotate_getitem_node.
#include <fxgraph/ops/normalize_args.h>

#include <gmock/gmock.h>

#include <fxgraph/ops/call.h>
#include "tests/support/names.h"
#include "tests/support/random.h"

namespace fx::normalize_args_test {

using ::testing::IsEmpty;

std::string line(const Node& node) {
  std::string text;
  for (const Argument& arg : node.args()) text += to_string(arg) + " ";
  for (const auto& [name, value] : node.kwargs()) text += name.str() + "=" + to_string(value) + " ";
  return text;
}

TEST(NormalizeArgs, test_normalize_args) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& positional = graph.call_function("aten::add.Tensor", {x, y});
  Node& named = graph.call_function("aten::add.Tensor", {x}, {{"other", y}, {"alpha", 1}});
  Node& other = graph.call_function("my.function", {x, 3});
  Node& method = graph.call_method("relu", {x});
  Node& softmax = graph.call_function("aten::softmax.int", {x, -1});
  graph.output(Argument::tuple({positional, named, other, method, softmax}));
  EXPECT_EQ(normalize_args(graph), 3u);
  EXPECT_EQ(line(positional), "self=%x other=%y alpha=1 ");
  EXPECT_EQ(line(named), line(positional));
  EXPECT_EQ(line(other), "%x 3 ");
  EXPECT_EQ(line(method), "%x ");
  EXPECT_EQ(line(softmax), "self=%x dim=-1 dtype=None ");
  EXPECT_EQ(normalize_args(graph), 0u);
}

TEST(NormalizeArgs, test_normalize_args_preserve_meta) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("aten::relu", {x});
  relu.meta().set("my_key", 7);
  graph.output(relu);
  normalize_args(graph);
  EXPECT_EQ(*relu.find_meta()->get<int>("my_key"), 7);
}

TEST(NormalizeArgs, PositionsMayStayAndCallsThatDoNotFitAreLeft) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  const auto kept = normalized_arguments(graph.call_function("aten::add.Tensor", {x}, {{"other", y}}), false);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->args.size(), 1u);
  EXPECT_EQ(kept->kwargs.size(), 2u);
  EXPECT_FALSE(normalized_arguments(graph.call_function("aten::add.Tensor", {x})));
  EXPECT_FALSE(normalized_arguments(graph.call_function("aten::relu", {x, 1, 2})));
  EXPECT_FALSE(normalized_arguments(graph.call_function("prim::Print", {x, y}))) << "any number, without names";
  EXPECT_FALSE(normalized_arguments(x));
}

// Every operator that is known: what it is called with is the same before and behind.
TEST(NormalizeArgs, WhatCallsBindStays) {
  std::size_t seen = 0;
  for (const Symbol target : builtin_targets()) {
    const OperatorSchema& named = *find_overload(target);
    if (named.varargs) continue;
    Graph graph;
    std::vector<Argument> args;
    for (const SchemaArgument& argument : named.arguments) {
      if (argument.keyword_only || argument.default_value) break;
      args.emplace_back(graph.placeholder(argument.name.str()));
    }
    Node& call = graph.call_function(target, args);
    if (check_call(named, call.args(), call.kwargs())) continue;
    // `aten::add` of two nodes is add.Tensor, not the sum of two numbers that has this very name.
    const OperatorSchema& schema = call_of(call).schema();
    const auto bound = [&] {
      std::vector<Argument> values;
      for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
        const Argument* value = Call(schema, call.args(), call.kwargs()).argument(i);
        values.push_back(value ? *value : Argument::opaque("missing"));
      }
      return values;
    };
    const std::vector<Argument> before = bound();
    normalize_args(graph);
    EXPECT_EQ(&call_of(call).schema(), &schema) << target.str();
    EXPECT_FALSE(check_call(schema, call.args(), call.kwargs())) << target.str();
    EXPECT_EQ(bound(), before) << target.str();
    ++seen;
  }
  EXPECT_GT(seen, 100u);
}

TEST(AnnotateGetitem, test_annotate_getitem_node) {
  Graph graph;
  const auto typed = [&](const char* name, const char* type) -> Node& {
    Node& node = graph.placeholder(name);
    node.meta().set(meta_key::kType, std::string(type));
    return node;
  };
  const auto element = [&](Node& of, std::int64_t index) -> Node& {
    return graph.call_function("operator.getitem", {of, index});
  };
  const auto type = [](const Node& node) {
    const std::string* text = node.find_meta() ? node.find_meta()->get<std::string>(meta_key::kType) : nullptr;
    return text ? *text : std::string();
  };
  Node& pair = typed("pair", "typing.Tuple[torch.Tensor, List[Tuple[int, str]]]");
  Node &tensor = element(pair, 0), &list = element(pair, -1);
  Node& inner = element(list, 5);
  Node &number = element(inner, 0), &text = element(inner, 1), &beyond = element(inner, 2);
  Node& many = element(typed("many", "tuple[int, ...]"), 17);
  Node& plain = element(typed("plain", "torch.Tensor"), 0);
  Node& unknown = element(graph.placeholder("unknown"), 0);
  Node& lower = element(typed("lower", "builtins.list[int]"), 3);
  Node& nothing = element(typed("nothing", "Tuple[int,]"), 1);
  Node& named = typed("named", "Dict[str, int]");
  Node& value = element(named, 0);
  Node& method = graph.call_method("operator.getitem", {pair, 0});
  Node& module = graph.call_module("operator.getitem", {pair, 0});
  Node& written = graph.call_function("operator.getitem", {Argument::tuple({pair, many}), 0});
  EXPECT_EQ(annotate_getitem_nodes(graph), 7u);
  EXPECT_EQ(type(tensor), "torch.Tensor");
  EXPECT_EQ(type(list), "List[Tuple[int, str]]");
  EXPECT_EQ(type(inner), "Tuple[int, str]");
  EXPECT_EQ(type(number), "int");
  EXPECT_EQ(type(text), "str");
  EXPECT_EQ(type(many), "int");
  EXPECT_EQ(type(lower), "int");
  for (const Node* node : {&beyond, &plain, &unknown, &nothing, &value, &method, &module, &written})
    EXPECT_THAT(type(*node), IsEmpty());
  EXPECT_EQ(annotate_getitem_nodes(graph), 0u);
}

// Whatever stands between the commas, and however many spaces around it.
TEST(AnnotateGetitem, SpacesAroundTypesAreNoPartOfThem) {
  constexpr const char* kTypes[] = {"", "int", "List[ int , str ]", "Tuple[(int, str), a b]", "..."};
  testing::Random random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> elements(1 + random.below(4));
    std::string inside;
    for (std::string& element : elements) {
      element = kTypes[random.below(std::size(kTypes))];
      inside += (inside.empty() && &element == &elements[0] ? "" : ",") + std::string(random.below(3), ' ') + element +
                std::string(random.below(3), ' ');
    }
    const bool list = random.chance(30), many = !list && elements.size() == 2 && elements[1] == "...";
    Graph graph;
    Node& whole = graph.placeholder("whole");
    whole.meta().set(meta_key::kType, (list ? "List[" : "Tuple[") + inside + "]");
    for (int index = -5; index < 5; ++index) {
      Node& taken = graph.call_function("operator.getitem", {whole, index});
      annotate_getitem_nodes(graph);
      const int at = many || list ? 0 : index < 0 ? index + static_cast<int>(elements.size()) : index;
      const bool known = list ? elements.size() == 1 : at >= 0 && at < static_cast<int>(elements.size());
      const std::string wanted = known ? elements[static_cast<std::size_t>(at)] : "";
      const std::string* found = taken.find_meta() ? taken.find_meta()->get<std::string>(meta_key::kType) : nullptr;
      EXPECT_EQ(found ? *found : "", wanted) << inside << " " << index;
    }
  }
}

}  // namespace fx::normalize_args_test
