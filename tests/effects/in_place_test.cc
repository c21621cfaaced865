// In-place calls and what computes the same into a tensor of its own.
#include <fxgraph/effects/in_place.h>

#include <gtest/gtest.h>

#include <fxgraph/ops/records/builtin_schemas.h>
#include "tests/support/short_graph.h"

namespace fx::in_place_test {

using testing::graph_of;

Symbol name_of(const OperatorSchema* schema) { return schema ? schema->target : Symbol("none"); }
Symbol in_place(const char* target) { return name_of(in_place_overload(*find_overload(target))); }
Symbol functional(const char* target) { return name_of(functional_overload(*find_overload(target))); }

TEST(InPlace, OverloadsOfTheSame) {
  EXPECT_EQ(in_place("aten::add.Tensor"), "aten::add_.Tensor");
  EXPECT_EQ(in_place("aten::relu"), "aten::relu_");
  EXPECT_EQ(in_place("aten::detach"), "none") << "a view";
  EXPECT_EQ(in_place("aten::transpose.int"), "none") << "a view";
  EXPECT_EQ(in_place("aten::matmul"), "none");
  EXPECT_EQ(functional("aten::add_.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(functional("aten::relu"), "none");
  EXPECT_EQ(functional("aten::transpose_"), "none");
  EXPECT_EQ(functional("aten::copy_"), "none");
}

TEST(InPlace, EachHasTheOtherForItsOther) {
  std::size_t pairs = 0;
  for (const Symbol target : builtin_targets()) {
    const OperatorSchema* schema = find_overload(target);
    const OperatorSchema* other = schema ? in_place_overload(*schema) : nullptr;
    if (!other) continue;
    ++pairs;
    EXPECT_EQ(functional_overload(*other), schema) << target.view();
    EXPECT_FALSE(in_place_overload(*other)) << target.view();
  }
  EXPECT_GT(pairs, 150u);
}

const Node* seen(const Graph& graph, const char* call) {
  internal::TrackedEffects effects(graph);
  effects.expect_writes();
  return sees_write(*graph.find(call), effects);
}

TEST(InPlace, WhoSeesAWrite) {
  const Graph graph = graph_of(
      "a = aten::sin(%x)\nr = aten::relu_(%a)\n"                                               // nobody
      "b = aten::sin(%x)\nv = aten::view(%b, [-1])\ns = aten::relu_(%b)\nu = aten::cos(%v)\n"  // the view, later
      "c = aten::sin(%x)\nw = aten::view(%c, [-1])\nt = aten::relu_(%c)\n"  // a view that nothing reads
      "p = aten::relu_(%x)\nq = aten::sum(%y)\nk = mylib::any(%q)\nz = aten::relu_(%k)\n"
      "return (r, s, u, t, p, z)",
      "x y");
  EXPECT_EQ(seen(graph, "r"), nullptr);
  EXPECT_EQ(seen(graph, "s"), graph.find("u"));
  EXPECT_EQ(seen(graph, "t"), nullptr);
  EXPECT_EQ(seen(graph, "p"), graph.find("x"));
  EXPECT_EQ(seen(graph, "a"), graph.find("a")) << "no call in place";
}

TEST(InPlace, TheCallerSeesWhatIsReturned) {
  const Graph graph = graph_of("a = aten::sin(%x)\nr = aten::relu_(%a)\nreturn (a, r)", "x");
  EXPECT_EQ(seen(graph, "r"), graph.find("output"));
}

}  // namespace fx::in_place_test
