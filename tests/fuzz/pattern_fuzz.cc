// Patterns: read, or refused. What is printed reads back to the same, and small ones find what the matcher finds that
// tries everything.
#include <algorithm>
#include <set>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_access.h>
#include "tests/fuzz/fuzz.h"
#include "tests/support/brute_force_matcher.h"
#include "tests/support/random_graph.h"

namespace {

const fx::Graph& graph() {
  static const fx::Graph kGraph = [] {
    fx::testing::RandomGraphOptions options;
    options.nodes = 9;
    options.inputs = 2;
    options.vocabulary = &fx::testing::pointwise_vocabulary();
    options.typed_percent = 0;
    return fx::testing::random_graph(7, options);
  }();
  return kGraph;
}

void compare_with_oracle(const fx::Pattern& pattern) {
  if (fx::internal::PatternAccess::of(pattern).nodes.size() > 5 || pattern.needs_shapes() ||
      pattern.needs_module_types())
    return;
  const fx::FindOptions options{.overlap = fx::Overlap::all};
  std::set<std::string> found;
  for (const fx::Match& match : fx::find(graph(), pattern, options)) found.insert(fx::testing::match_text(match));
  const std::set<std::string> there = fx::testing::brute_force_matches(graph(), pattern, options);
  std::string shown = pattern.str();
  for (const std::string& match : there) shown += "\nthere is " + match;
  for (const std::string& match : found) shown += "\nfound " + match;
  fx::fuzz::expect(found == there, "the matcher finds what there is", shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto pattern = fx::fuzz::made_or_refused([&] { return fx::Pattern(fx::fuzz::text_of(data, size)); });
  if (!pattern) return 0;
  const std::string printed = pattern->str();
  const auto again = fx::fuzz::made_or_refused([&] { return fx::Pattern(printed); });
  fx::fuzz::expect(again && again->str() == printed, "a printed pattern reads back", printed);
  fx::fuzz::made_or_refused([&] {
    compare_with_oracle(*pattern);
    return true;
  });
  return 0;
}
