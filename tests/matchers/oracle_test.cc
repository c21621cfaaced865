// The matcher against the brute-force one: the same matches, all of them.
#include <gtest/gtest.h>

#include <map>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/text/print.h>
#include "tests/support/brute_force_matcher.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"

namespace fx::oracle_test {

using testing::brute_force_matches;
using testing::match_text;

std::set<std::string> texts_of(const std::vector<Match>& matches) {
  std::set<std::string> texts;
  for (const Match& match : matches)
    EXPECT_TRUE(texts.insert(match_text(match)).second) << "found twice: " << match_text(match);
  return texts;
}

Graph small_graph(std::uint64_t seed) {
  testing::RandomGraphOptions options;
  options.nodes = 2 + seed % 10;
  options.inputs = 1 + seed % 3;
  options.shape = static_cast<testing::Shape>(seed % 4);
  options.vocabulary = &testing::pointwise_vocabulary();
  options.typed_percent = 0;
  return testing::random_graph(seed, options);
}

/// Compares on `count` pairs; returns how many matches there were, so that a vacuous run shows.
std::size_t compare(std::uint64_t first_seed, std::size_t count, FindOptions options) {
  options.overlap = Overlap::all;
  std::size_t found = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const Graph graph = small_graph(seed * 7919);
    const Pattern pattern = testing::random_pattern(seed, {.names = seed % 2 == 0});
    const std::set<std::string> expected = brute_force_matches(graph, pattern, options);
    const std::set<std::string> actual = texts_of(find(graph, pattern, options));
    EXPECT_EQ(actual, expected) << "seed " << seed << "\n" << pattern.str() << print_graph(graph);
    if (::testing::Test::HasFailure()) return found;
    found += actual.size();
  }
  return found;
}

TEST(Oracle, EveryMatchOfRandomPatterns) { EXPECT_GT(compare(1, 40000, {}), 12000u); }

std::size_t num_calls(const Match& match) {
  std::set<const Node*> calls;
  for (std::size_t i = 0; i < match.values().size(); ++i) {
    if (internal::PatternAccess::of(match).nodes[i].kind == internal::PatternKind::call)
      calls.insert(match.values()[i].node_or_null());
  }
  calls.erase(nullptr);
  return calls.size();
}

/// In how many matches each construct had a part, so that a vacuous comparison shows.
using Tally = std::map<std::string, std::size_t>;

void count_constructs(const Match& match, Tally& tally) {
  const internal::PatternData& pattern = internal::PatternAccess::of(match);
  for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
    if (match.values()[i].is_none()) continue;
    const internal::PatternNode& node = pattern.nodes[i];
    tally["negation"] += node.kind == internal::PatternKind::negation;
    tally["unordered"] += node.unordered && node.args.size() > 1;
    tally["constant"] += node.kind == internal::PatternKind::constant;
    tally["tail"] += node.kind == internal::PatternKind::rest;
    tally["sizes"] += node.tensor && !node.dims.empty();
  }
  tally["skipped"] += !match.skipped().empty();
  tally["path"] += match.nodes().size() > match.skipped().size() + num_calls(match);
}

/// Graphs with copies, lists and attributes, and patterns that speak of them; with shapes of a few sizes.
Tally compare_constructs(std::uint64_t first_seed, std::size_t count, FindOptions options) {
  options.overlap = Overlap::all;
  Tally tally;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    testing::RandomGraphOptions shape;
    shape.nodes = 2 + seed % 10;
    shape.inputs = 1 + seed % 3;
    shape.shape = static_cast<testing::Shape>(seed % 4);
    shape.vocabulary = &testing::copying_vocabulary();
    shape.typed_percent = 0;
    const Graph graph = testing::random_graph(seed * 6700417, shape);
    const Shapes shapes = testing::random_shapes(graph, seed);
    options.shapes = &shapes;
    testing::RandomPatternOptions pattern_options;
    pattern_options.constructs = true;
    pattern_options.shapes = seed % 4 == 0;
    pattern_options.depth = 1 + static_cast<int>(seed % 3);
    const Pattern made = testing::random_pattern(seed + 77, pattern_options);
    const Pattern pattern = seed % 5 == 0 ? made.seeing_through() : made;
    const std::set<std::string> expected = brute_force_matches(graph, pattern, options);
    const std::vector<Match> matches = find(graph, pattern, options);
    const std::set<std::string> actual = texts_of(matches);
    EXPECT_EQ(actual, expected) << "seed " << seed << "\n" << pattern.str() << print_graph(graph);
    const Pattern again(pattern.str());
    EXPECT_EQ(again.str(), pattern.str());
    EXPECT_EQ(find(graph, again, options).size(), actual.size()) << pattern.str() << print_graph(graph);
    if (::testing::Test::HasFailure()) return tally;
    for (const Match& match : matches) count_constructs(match, tally);
  }
  return tally;
}

void expect_all(const Tally& tally) {
  for (const char* construct : {"negation", "unordered", "constant", "tail", "sizes", "skipped", "path"})
    EXPECT_GT(tally.at(construct), 100u) << construct;
}

TEST(Oracle, Constructs) { expect_all(compare_constructs(1, 100000, {})); }

TEST(Oracle, ConstructsWithoutContainment) {
  FindOptions options;
  options.contained = false;
  expect_all(compare_constructs(500000, 100000, options));
}

TEST(Oracle, WithoutContainment) {
  FindOptions options;
  options.contained = false;
  EXPECT_GT(compare(100000, 40000, options), 14000u);
}

TEST(Oracle, CommutativeBySchema) {
  FindOptions options;
  options.commutative = true;
  options.contained = false;
  EXPECT_GT(compare(200000, 20000, options), 8000u);
}

TEST(Oracle, FirstIsDisjointAndMaximal) {
  for (std::uint64_t seed = 1; seed < 2000; ++seed) {
    const Graph graph = small_graph(seed * 104729);
    const Pattern pattern = testing::random_pattern(seed + 5000000);
    const std::set<std::string> all = brute_force_matches(graph, pattern);
    std::set<const Node*> taken;
    const std::vector<Match> kept = find(graph, pattern);
    for (const Match& match : kept) {
      EXPECT_TRUE(all.count(match_text(match)));
      for (const Node* node : match.nodes()) EXPECT_TRUE(taken.insert(node).second) << "seed " << seed;
    }
    EXPECT_EQ(kept.empty(), all.empty()) << "seed " << seed;
    for (const Match& match : find(graph, pattern, {.overlap = Overlap::all})) {
      bool free = true;
      for (const Node* node : match.nodes()) free &= !taken.count(node);
      EXPECT_FALSE(free) << "left out at seed " << seed << ": " << match_text(match);
    }
  }
}

TEST(Oracle, ASetFindsWhatItsPatternsFind) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed < 400; ++seed) {
    const Graph graph = small_graph(seed * 15485863);
    PatternSet set;
    std::multiset<std::string> expected;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Pattern pattern = testing::random_pattern(seed * 8 + i);
      const std::size_t position = set.add(pattern);
      for (const Match& match : find(graph, pattern, {.overlap = Overlap::all}))
        expected.insert(std::to_string(position) + match_text(match));
    }
    std::multiset<std::string> actual;
    for (const SetMatch& match : set.find(graph, {.overlap = Overlap::all}))
      actual.insert(std::to_string(match.pattern) + match_text(match.match));
    EXPECT_EQ(actual, expected) << "seed " << seed;
    found += actual.size();
  }
  EXPECT_GT(found, 400u);
}

TEST(Oracle, TextSaysThePattern) {
  for (std::uint64_t seed = 1; seed < 3000; ++seed) {
    const Pattern pattern = testing::random_pattern(seed);
    const std::string text = pattern.str();
    const Pattern again(text);
    EXPECT_EQ(again.str(), text);
    const Graph graph = small_graph(seed * 6700417);
    std::size_t first = find(graph, pattern, {.overlap = Overlap::all}).size();
    std::size_t second = find(graph, again, {.overlap = Overlap::all}).size();
    EXPECT_EQ(first, second) << text << print_graph(graph);
  }
}

}  // namespace fx::oracle_test
