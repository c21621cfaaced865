// What kind of value comes of what, on record: of every annotation, attribute and method, of Python's functions and
// operators on values of all kinds, of every operator that is called with its arguments.
#include <gtest/gtest.h>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/schema.h>
#include "tests/support/record.h"

namespace fx::recorded_kinds_test {

using testing::Recorded;

std::string kind_text(const Argument& value) {
  const internal::ArgumentType type = internal::argument_type(value);
  std::string text = type.known ? std::to_string(static_cast<int>(type.base)) : "?";
  if (type.list) text += "[]";
  if (internal::is_number_type(type)) text += "#";
  return text + " ";
}

constexpr const char* kAnnotations[] = {"int",        "float",        "bool",         "str",
                                        "Tensor",     "List[int]",    "torch.dtype",  "torch.device",
                                        "torch.Size", "List[Tensor]", "torch.Tensor", "Dict[str, int]"};

constexpr const char* kFunctions[] = {
    "operator.getitem", "operator.add",     "operator.sub",  "operator.neg",   "operator.truediv",  "operator.floordiv",
    "operator.pow",     "operator.eq",      "operator.lt",   "builtins.max",   "builtins.abs",      "builtins.len",
    "builtins.int",     "builtins.getattr", "torch.sym_ite", "torch.sym_not",  "torch.sym_int",     "math.sqrt",
    "math.floor",       "mine.f",           "aten::add",     "aten::mul",      "aten::neg",         "aten::eq",
    "aten::size",       "aten::len",        "aten::Int",     "aten::floordiv", "aten::__getitem__", "aten::dim",
    "prim::dtype",      "aten::split",      "aten::item",    "aten::max",      "kinds::of_any",     "kinds::of_numbers",
    "kinds::of_texts"};

// Operators of several overloads, the first of which has no name beside the others.
constexpr const char* kDeclared[] = {"kinds::of_any() -> int",
                                     "kinds::of_any.one(Tensor x) -> int",
                                     "kinds::of_numbers(Scalar a, Scalar b) -> Scalar",
                                     "kinds::of_numbers.Tensor(Tensor a, Tensor b) -> Tensor",
                                     "kinds::of_texts(str a, str b) -> str",
                                     "kinds::of_texts.Tensor(Tensor a, Tensor b) -> Tensor"};

/// A value of every kind, and some that only seem to be of one.
std::vector<Argument> values_of(Graph& graph) {
  std::vector<Argument> all;
  for (const char* annotation : kAnnotations) {
    Node& node = graph.placeholder("p");
    node.meta().set<std::string>(meta_key::kType, annotation);
    all.emplace_back(node);
  }
  Node& x = graph.placeholder("x");
  all.emplace_back(x);
  for (const char* attribute : {"shape", "ndim", "dtype", "is_cuda", "grad", "no_such"})
    all.emplace_back(graph.call_function("builtins.getattr", {x, attribute}));
  for (const char* method : {"size", "item", "dim", "is_contiguous", "relu"})
    all.emplace_back(graph.call_method(method, {x}));
  all.emplace_back(graph.call_method("size", {x, 0}));
  all.emplace_back(graph.call_module("layer", {x}));
  all.emplace_back(graph.get_attr("weight"));
  for (const char* target : {"aten::split.Tensor", "aten::item", "aten::max.dim", "aten::_assert_async"})
    all.emplace_back(graph.call_function(target, {x, 1}));
  for (const Argument& literal :
       {Argument(), Argument(true), Argument(2), Argument(2.5), Argument("text"), Argument(std::complex<double>(1, 2)),
        Argument(DType::int64), Argument(Device{"cpu"}), Argument(Layout{"strided"}),
        Argument(MemoryFormat{"channels_last"}), Argument::slice(1, nullptr, nullptr), Argument::list({}),
        Argument::list({1, 2}), Argument::list({1, 2.5}), Argument::tuple({x, x}),
        Argument::list({Argument::list({1})}), Argument::list({x, 1}), Argument::list({2.5, Argument(all[0])})})
    all.push_back(literal);
  return all;
}

TEST(RecordedKinds, OfFunctionsOnValuesOfAllKinds) {
  for (const char* declared : kDeclared) register_schema(declared);
  std::vector<Recorded> all;
  for (const char* function : kFunctions) {
    Graph graph;
    const std::vector<Argument> values = values_of(graph);
    std::string found = kind_text(graph.call_function(function, {}));
    for (const Argument& first : values) {
      found += "\n" + to_string(first) + ": " + kind_text(first);
      found += kind_text(graph.call_function(function, {first}));
      found += kind_text(graph.call_function(function, {first}, {{"other", 1}}));
      for (const Argument& second : values) {
        Node& call = graph.call_function(function, {first, second});
        found += kind_text(call) + kind_text(graph.call_function("operator.getitem", {call, 0}));
        found += kind_text(graph.call_function("operator.add", {call, 1}));
        found += kind_text(graph.call_function(function, {first, second, 1}));
        found += kind_text(graph.call_function(function, {first, second}, {{"b", 1}}));
      }
    }
    all.push_back({function, found});
  }
  testing::expect_as_recorded("kinds", all);
}

// How far back a question looks.
TEST(RecordedKinds, OfLongChains) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::string found;
  for (const char* function : {"operator.neg", "operator.add"}) {
    Node* last = &graph.call_method("size", {x, 0});
    for (int length = 1; length <= 60; ++length) {
      last = &graph.call_function(function, {*last});
      found += kind_text(*last);
    }
    Node* sum = &graph.call_method("size", {x, 0});
    for (int depth = 1; depth <= 10; ++depth) {
      sum = &graph.call_function(function, {*sum, *sum});
      found += kind_text(*sum);
    }
  }
  testing::expect_as_recorded("kinds_of_chains", {{"chains", found}});
}

TEST(RecordedKinds, OfEveryOperator) {
  std::vector<Recorded> all;
  for (const Symbol target : builtin_targets()) {
    const std::string packet(packet_of(target.view()));
    if (all.empty() || all.back().name != packet) all.push_back({packet, ""});
    Graph graph;
    Node& x = graph.placeholder("x");
    const std::vector<Argument> args(find_overload(target)->num_positional(), Argument(x));
    std::string& found = all.back().found;
    found += target.str() + " ";
    for (const Symbol called : {target, Symbol(packet)}) {
      Node& call = graph.call_function(called, args);
      found += kind_text(call) + kind_text(graph.call_function("operator.getitem", {call, 0}));
      found += kind_text(graph.call_function("operator.getitem", {call, Argument::slice(1, nullptr, nullptr)}));
      found += kind_text(graph.call_function("operator.mul", {call, call}));
      found += kind_text(graph.call_function("operator.mul", {2, call}));
    }
    found += "\n";
  }
  testing::expect_as_recorded("kinds_of_operators", all);
}

}  // namespace fx::recorded_kinds_test
