// Lists, tuples and numbers among the arguments: which are one, and which are not.
#include <gtest/gtest.h>

#include <fxgraph/matchers/matcher.h>
#include "tests/support/short_graph.h"

namespace fx::literal_lists_test {

using testing::graph_of;

TEST(LiteralLists, OneNumberIsAListOfTheSizeThatIsWanted) {
  struct Case {
    const char *call, *pattern;
    std::size_t found;
  };
  for (const Case& c :
       {Case{"aten::max_pool2d(%x, 2)", "aten::max_pool2d(x, 2, 1)", 0},  // without a stride it is the kernel's size
        Case{"aten::max_pool2d(%x, 2, [])", "aten::max_pool2d(x, 2, 2)", 0},
        Case{"aten::max_pool2d(%x, 2, [])", "aten::max_pool2d(x, 2)", 1},
        Case{"aten::max_pool2d(%x, [2, 2])", "aten::max_pool2d(x, 2)", 1},
        Case{"aten::max_pool2d(%x, [2, 3])", "aten::max_pool2d(x, 2)", 0},
        Case{"aten::max_pool2d(%x, [2, 2, 2])", "aten::max_pool2d(x, 2)", 0},
        Case{"aten::amax(%x, 1)", "aten::amax(x)", 0}, Case{"aten::amax(%x)", "aten::amax(x, 1)", 0},
        Case{"aten::amax(%x, [1])", "aten::amax(x, 1)", 1},
        Case{"aten::permute(%x, [])", "aten::permute(x, 2)", 0},  // as many as there are: no number stands for them
        Case{"aten::permute(%x, [2])", "aten::permute(x, 2)", 0}})
    EXPECT_EQ(fx::find(graph_of(std::string("r = ") + c.call + "\nreturn r"), c.pattern).size(), c.found)
        << c.call << " by " << c.pattern;
}

// `x[(0, 1)]` is an element, `x[[0, 1]]` two rows; elsewhere a tuple of numbers and a list of them are one.
TEST(LiteralLists, AnIndexIsATupleOrAList) {
  const char* const kIndices[] = {"(0, 1)", "[0, 1]", "(0, %y)", "[0, %y]"};
  for (const std::string target : {"operator.getitem", "operator.setitem", "torch.nn.functional.pad"}) {
    for (std::size_t a = 0; a < std::size(kIndices); ++a) {
      for (std::size_t b = 0; b < std::size(kIndices); ++b) {
        const auto call = [&](const char* index) {
          return graph_of("r = " + target + "(%x, " + index + ", %x)\nreturn r", "x y");
        };
        const bool fits = (target.starts_with("torch") || a % 2 == b % 2) && (a < 2 || b >= 2);
        EXPECT_EQ(fx::find(call(kIndices[a]), Pattern(call(kIndices[b]))).size(), fits ? 1u : 0u)
            << target << kIndices[a] << " by " << kIndices[b];
      }
    }
  }
}

}  // namespace fx::literal_lists_test
