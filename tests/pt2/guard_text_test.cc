// Python's guards on sizes: read, written, computed; compared with a reader that only knows numbers.
#include <fxgraph/contract/assertions.h>
#include <fxgraph/export/guards.h>
#include <fxgraph/export/load.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/error_of.h"

namespace fx::pt2::guard_text_test {

using ::testing::HasSubstr;

// L['v'] is value 0, L['d']['a'][1] is value 1, L['flat_args'][N] is value N.
std::optional<std::size_t> leaf_of(const std::vector<GuardStep>& path) {
  if (path.size() == 1 && path[0].key == "v") return 0;
  if (path.size() == 3 && path[0].key == "d" && path[1].key == "a" && path[2].index == 1) return 1;
  if (path.size() == 2 && path[0].key == "flat_args") return static_cast<std::size_t>(path[1].index);
  return std::nullopt;
}

// All values are numbers.
c10::IValue computed(const std::string& text, const std::vector<std::int64_t>& values) {
  const std::optional<SizeExpr> guard = parse_guard(text, leaf_of);
  if (!guard) return {};
  Graph graph;
  std::vector<Node*> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) inputs.push_back(&graph.placeholder("n" + std::to_string(i)));
  graph.output(AssertionWriter(graph).number(
      *guard, [&](const std::string& symbol) { return Argument(*inputs.at(AskedSize::of(symbol).leaf)); }));
  GraphModule module(std::move(graph));
  return module.run({values.begin(), values.end()});
}

TEST(Guards, AreComputedAsPythonDoes) {
  const struct {
    const char* text;
    bool holds;
  } kGuards[] = {
      {"L['v'] == 7", true},
      {"7 == L['v'] and L[\"d\"]['a'][1] != 7", true},
      {"L['v'] == 1 or not L['v'] < 7", true},
      {"not (L['v'] == 7 and L['d']['a'][1] == 3)", false},
      {"(-1) + L['v'] == 2*L['d']['a'][1]", true},
      {"L['v'] - 1 - 1 == 5", true},
      {"L['v'] // 2 * 2 + L['v'] % 2 == L['v']", true},
      {"-L['v'] // 2 == -4", true},
      {"(-L['v']) % 4 == 1", true},
      {"torch.sym_max(2, L['d']['a'][1] // 2) <= torch.sym_min(L['v'], 2)", true},
      {"L['flat_args'][0] >= 8", false},
      {"2*(L['v'] // 4)*3 > 5 and L['v'] <= 7", true},
  };
  for (const auto& [text, holds] : kGuards) {
    const c10::IValue value = computed(text, {7, 3});
    ASSERT_TRUE(value.isBool()) << text;
    EXPECT_EQ(value.toBool(), holds) << text;
    // What is written says the same.
    EXPECT_EQ(computed(guard_text(*parse_guard(text, leaf_of)), {7, 3}).toBool(), holds) << text;
  }
}

TEST(Guards, SayNothingWhereTheyAreNotRead) {
  for (const char* text :
       {"", "L['v']", "L['w'] == 1", "L['v'] ** 2 == 4", "L['v'] / 2 == 1", "1.5 < L['v']", "L['v'] ==", "(L['v'] == 1",
        "L['v'] == 1)", "L['v'].storage_offset() == 0", "math.ceil(L['v']) == 1", "L['v' == 1", "L['v'].size()[ == 1",
        "1 < L['v'] < 3", "99999999999999999999 == L['v']"}) {
    const c10::IValue value = computed(text, {7, 3});
    EXPECT_FALSE(value.isBool()) << text;
  }
  EXPECT_FALSE(parse_guard(std::string(5000, '('), leaf_of));
  EXPECT_FALSE(parse_guard(std::string(30000, '-'), leaf_of));
}

TEST(Guards, AreCheckedAtTheInputAndWritten) {
  const auto gm = load_exported("tests/corpus/pt2/y_bounds.pt2");
  // torch.sym_max(2, v.size(0) // 2) <= w.size(0)
  EXPECT_NO_THROW(gm->run({at::rand({6, 2}), at::rand({3, 2})}));
  const std::string refused = fx::testing::error_of([&] { gm->run({at::rand({20, 2}), at::rand({3, 2})}); });
  EXPECT_THAT(refused, HasSubstr("the inputs must satisfy"));
  ExportedOptions unchecked;
  unchecked.check_sizes = false;
  const auto free = load_exported("tests/corpus/pt2/y_bounds.pt2", unchecked);
  EXPECT_NO_THROW(free->run({at::rand({20, 2}), at::rand({3, 2})}));
}

}  // namespace fx::pt2::guard_text_test
