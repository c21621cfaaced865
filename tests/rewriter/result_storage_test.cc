// Where a new result lies in memory, and whose storage it shares, beside the one that it replaces.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/replace_pattern.h>
#include "tests/support/short_graph.h"

namespace fx::result_storage_test {

using testing::calls_of;
using testing::graph_of;

struct Case {
  const char *before, *pattern, *replacement;
  bool same;  ///< the result lies as the old one
};

/// What follows the strides of what it takes, and what lays its elements out anew, differ, however the pattern says it.
TEST(ResultStorage, LayoutsAreThoseOfWhateverAPatternMatches) {
  for (const char* pattern : {"aten::relu(x)", "{aten::relu, aten::matmul}(x, ...)", "/aten::rel.*/(x)",
                              "#pointwise(x)", "(aten::relu(x) | aten::matmul(x, x))", "call_method[relu](x)"}) {
    for (const char* made : {"aten::matmul(x, x)", "call_method[matmul](x, x)"}) {
      for (const auto& [reader, told] :
           {std::pair("aten::as_strided(%r, [2], [1])", true),
            std::pair("aten::as_strided_scatter(%r, %r, [2], [1])", true),
            std::pair("aten::_reshape_alias(%r, [2], [1])", true), std::pair("aten::narrow_copy(%r, 0, 0, 2)", true),
            std::pair("aten::cat([%r])", false)}) {
        const std::string call =
            std::string_view(pattern).starts_with("call_method") ? "call_method[target=relu]" : "aten::relu";
        Graph graph = graph_of("t = aten::t(%x)\nr = " + call + "(%t)\nv = " + std::string(reader) +
                               "\ns = aten::sum(%v)\nreturn s");
        EXPECT_EQ(replace_pattern(graph, pattern, made).applied, told ? 0u : 1u) << pattern << " " << made << reader;
      }
    }
  }
}

/// Of several operands the first decides how what is computed of them lies.
TEST(ResultStorage, OperandsThatChangePlacesAreAnotherLayout) {
  for (const Case& each : {
           Case{"a = aten::add.Tensor(%x, %t)", "aten::add.Tensor(x, y)", "aten::add.Tensor(y, x)", false},
           Case{"a = aten::add.Tensor(%x, %t)", "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, y)", true},
           Case{"a = aten::add.Tensor(%x, %t)", "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, aten::neg(y))", true},
           Case{"a = aten::maximum(%x, %t)", "aten::maximum(x, y)", "aten::maximum(y, x)", false},
           Case{"a = aten::sub.Tensor(%x, %t)", "aten::sub.Tensor(x, y)", "aten::add.Tensor(aten::neg(y), x)", false},
           Case{"a = aten::add.Tensor(%t, %x)", "commutative(aten::add.Tensor(aten::t(v), y))",
                "aten::add.Tensor(aten::t(v), y)", true},
           Case{"a = aten::add.Tensor(%x, %t)", "commutative(aten::add.Tensor(aten::t(v), y))",
                "aten::add.Tensor(aten::t(v), y)", false},
           Case{"a = aten::addcmul(%x, %t, %t)", "aten::addcmul(x, y, z)",
                "aten::add.Tensor(x, aten::mul.Tensor(y, z))", true},
           Case{"a = aten::addcmul(%x, %t, %t)", "aten::addcmul(x, y, z)",
                "aten::add.Tensor(aten::mul.Tensor(y, z), x)", false},
       }) {
    for (const auto& [after, told] :
         {std::pair("v = aten::view(%a, [4])\nreturn v", true),
          std::pair("v = aten::reshape(%a, [4])\nw = aten::add_.Scalar(%v, 1)\nreturn a", true),
          std::pair("r = aten::relu(%a)\nv = aten::reshape(%r, [4])\nw = aten::add_.Scalar(%v, 1)\nreturn r", true),
          std::pair("v = aten::reshape(%a, [4])\nreturn (a, v)", true),
          std::pair("s = aten::sum(%a)\nreturn s", false)}) {
      Graph graph = graph_of("t = aten::t(%x)\n" + std::string(each.before) + "\n" + after);
      EXPECT_EQ(replace_pattern(graph, each.pattern, each.replacement).applied, each.same || !told ? 1u : 0u)
          << each.before << " " << each.pattern << " " << each.replacement << " " << after;
    }
  }
}

/// Also through calls before the last, and by a format that a copy names. What draws tells it.
TEST(ResultStorage, LayoutsAreThoseOfAllCallsTogether) {
  for (const Case& each : {
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::clone(aten::cos(x))", true},
           Case{"s = aten::full([4], 1.0)", "aten::full([4], 1.0)", "aten::clone(aten::full([4], 1.0))", true},
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::clone(aten::sin(x), memory_format=2)", false},
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::clone(aten::cos(x), memory_format=1)", true},
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::sin(aten::contiguous(x))", false},
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::clone(aten::sin(aten::contiguous(x)))", false},
           Case{"s = aten::sin(%x)", "aten::sin(x)", "aten::sin(aten::clone(x, memory_format=0))", false},
           Case{"c = aten::contiguous(%x)\ns = aten::sin(%c)", "aten::sin(aten::contiguous(x))", "aten::sin(x)", false},
       }) {
    Graph graph = graph_of(std::string(each.before) + "\nr = aten::rand_like(%s)\nreturn r");
    EXPECT_EQ(replace_pattern(graph, each.pattern, each.replacement).applied, each.same ? 1u : 0u) << each.replacement;
  }
}

/// A product in place of an operand is what the order of its kernel makes of it.
TEST(ResultStorage, LayoutsAreKeptForProductsInPlaceOfTheirOperands) {
  for (const auto& [call, told] :
       {std::pair("aten::addmm_(%n, %n, %r)", true), std::pair("aten::addmm_(%n, %x, %r)", false),
        std::pair("aten::addmm.out(%x, %n, %r, out=%n)", true), std::pair("aten::add_.Tensor(%n, %r)", false)}) {
    Graph graph =
        graph_of("n = aten::neg(%x)\nt = aten::t(%x)\nr = aten::relu(%t)\nw = " + std::string(call) + "\nreturn w");
    EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "aten::matmul(x, x)").applied, told ? 0u : 1u) << call;
  }
}

/// A wildcard may stand for what the pattern matches elsewhere: what has effects would have them twice.
TEST(ResultStorage, ACallWithEffectsIsNotTakenByAWildcardAsWell) {
  for (const auto& [operand, taken] : {std::pair("%a", true), std::pair("%x", false)}) {
    Graph graph = graph_of("n = aten::neg(%x)\na = aten::add_.Scalar(%n, 2)\nm = aten::mul.Tensor(%a, " +
                           std::string(operand) + ")\nreturn m");
    const Graph before = graph_of("a = aten::add_.Scalar(%x, 2)\nm = aten::mul.Tensor(%a, %y)\nreturn m", "x y");
    EXPECT_EQ(replace_pattern(graph, before, before).applied, taken ? 0u : 1u) << operand;
  }
}

/// Written to inside and given twice, it is seen nowhere but where it is given.
TEST(ResultStorage, AResultThatIsGivenTwiceIsOne) {
  Graph graph = graph_of("n = aten::neg(%x)\nr = aten::relu_(%n)\nt = aten::t(%r)\ns = aten::sum(%t)\nreturn s");
  const Graph before = graph_of("n = aten::neg(%x)\nr = aten::relu_(%n)\nreturn (r, r)"),
              after = graph_of("s = aten::sin(%x)\nreturn (s, s)");
  EXPECT_EQ(replace_pattern(graph, before, after).applied, 1u);
}

/// What the caller gets, and may write to, does not come to share storage with what outlives the call.
TEST(ResultStorage, AReturnedResultBecomesNoParameterHoweverThatIsSaid) {
  const Graph parameter = graph_of("w = get_attr[target=w]()\nreturn w", ""),
              other = graph_of("w = get_attr[target=v]()\nreturn w", ""),
              view = graph_of("w = get_attr[target=v]()\nt = aten::t(%w)\nreturn t", ""),
              copy = graph_of("w = get_attr[target=v]()\nc = aten::clone(%w)\nreturn c", "");
  for (const auto& [replacement, shares] :
       {std::pair(Replacement("p"), true), std::pair(Replacement(parameter), true), std::pair(Replacement(other), true),
        std::pair(Replacement(view), true), std::pair(Replacement(copy), false)}) {
    for (const bool allowed : {false, true}) {
      for (const char* returned : {"", "t = aten::t(%r)\nreturn t", "s = aten::sum(%r)\nreturn s"}) {
        const bool seen = !std::string_view(returned).starts_with("s =");
        Graph graph =
            graph_of("w = get_attr[target=w]()\nr = aten::relu(%w)\n" + std::string(*returned ? returned : "return r"));
        EXPECT_EQ(
            replace_pattern(graph, "aten::relu(p: get_attr)", replacement, {.allow_output_aliases = allowed}).applied,
            shares && seen && !allowed ? 0u : 1u)
            << calls_of(graph);
      }
    }
  }
}

/// A view that the caller gets is a tensor of its own: `y.unsqueeze_(0)` is not to change the input, a parameter or
/// another result.
TEST(ResultStorage, AReturnedViewBecomesNoOtherTensorThatIsSeen) {
  struct Case {
    const char* program;
    bool applied;
  };
  for (const Case& each : {
           Case{"p = aten::permute(%x, [0, 1])\nreturn p", false},
           Case{"w = get_attr[target=w]()\np = aten::permute(%w, [0, 1])\nreturn p", false},
           Case{"r = aten::relu(%x)\np = aten::permute(%r, [0, 1])\nreturn p", true},
           Case{"r = aten::relu(%x)\np = aten::permute(%r, [0, 1])\nreturn [p, r]", false},
           Case{"p = aten::permute(%x, [0, 1])\nc = aten::contiguous(%p)\nreturn c", false},
           Case{"c = aten::contiguous(%x)\np = aten::permute(%c, [0, 1])\nreturn p", false},
           Case{"p = aten::permute(%x, [0, 1])\nt = aten::t(%p)\nreturn t", true},
           Case{"p = aten::permute(%x, [0, 1])\nr = aten::relu(%p)\nreturn r", true},
           Case{"m = aten::add_.Tensor(%x, 1)\np = aten::permute(%m, [0, 1])\nreturn p", false},
       }) {
    for (const bool allowed : {false, true}) {
      Graph graph = graph_of(each.program);
      EXPECT_EQ(replace_pattern(graph, "aten::permute(x, [0, 1])", "x", {.allow_output_aliases = allowed}).applied,
                each.applied || allowed ? 1u : 0u)
          << each.program;
    }
  }
}

}  // namespace fx::result_storage_test
