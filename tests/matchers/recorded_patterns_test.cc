// What pattern texts come to, right and wrong ones, and what is said of places that almost fit: on record, word by
// word.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <sstream>

#include <fxgraph/matchers/explain.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_set.h>
#include "tests/support/any_operators.h"
#include "tests/support/cut_rule.h"
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/record.h"
#include "tests/support/short_graph.h"

namespace fx::recorded_patterns_test {

using testing::Recorded;

/// One of each thing that the language has.
constexpr const char* kTexts[] = {
    "aten::relu(x)",
    "aten::relu",
    "aten::add.Tensor(x, y: node, alpha=2)",
    "commutative(aten::add.Tensor(aten::mul.Tensor(x, _), b))",
    "{aten::gelu, /aten::.*lu/}(#reduction(v: call_method[/view|reshape/](x, ...), ...))",
    "/aten::(add|sub).*/(x, x)",
    "call_function[#pointwise](x, ...)",
    "(aten::relu(x) | aten::neg(x) | x)",
    "maybe(aten::relu(x))",
    "aten::conv2d(x, w: constant, maybe(b: node), [1, s], (0, 0), ...)",
    "aten::clamp(x, near(0, 1e-6), near(6.0, 0.5))",
    "aten::mul.Scalar(x, c: (float | int))",
    "aten::to.dtype(x, lit(torch.float16))",
    "aten::add.Tensor(x, lit([]), a: lit('it'))",
    "let half(v) = aten::mul.Scalar(v, 0.5) | aten::div.Scalar(v, 2)\nreturn aten::add.Tensor(half(x), half(y))",
    "a = aten::relu(x)\nb = aten::neg(a)  # both\nreturn a, b",
    "aten::relu(sum), sum: aten::add.Tensor(_, y)",
    "aten::relu(~aten::neg(x))",
    "aten::add.Tensor(!aten::relu(_), x)",
    "aten::cat(unordered[x, aten::relu(_), ...others], dim: int)",
    "aten::cat([first, ...], 1)",
    "aten::add.Tensor(gate: dominates(x: aten::relu, {#pointwise, aten::clone}), _)",
    "aten::add.Tensor(repeat(aten::neg(_), 1, 4, v: !aten::neg), y)",
    "aten::relu(x.used_once).uses(1, *)",
    "aten::relu(x).uses(2).is(f32)",
    "call_module[conv]<torch.nn.Conv2d>(x)",
    "call_module<{Conv2d, mine.Head}>(x)",
    "call_method[view](x, n: int, -1)",
    "k: get_attr[/.*weight/]",
    "aten::linear(x, w: get_attr, None)",
    "placeholder",
    "aten::add.Tensor(x: f32[N, *, K], y: floating[K, N])",
    "aten::view(aten::relu(x: tensor[..., N]).used_once, [N, -1])",
    "aten::relu(x: f32[2 * N, N + 1])",
    "aten::pad(x, [1, 2], 'constant', -1.5e-3)",
    "operator.getitem(x, (slice(None, 2, None), ..., None))",
    "graph(%x):\n    %a = call_function[target=aten::relu](args = (%x,))\n    return a",
    "mine.f(x, flag=True, none=None, y)",
    "aten::add.Tensor(a: aten::relu(x), a)",
    "times(x, 2) | plus(x, near(1, 1e-6))",
    "half(square(x)), over(x, literal)",
    "let named(v) = aten::add.Tensor(v: aten::relu(_), v)\nreturn named(a)",
    "let chain(v, w) = aten::neg(aten::mul.Tensor(v, w))\nreturn chain(_, chain(x, 1))",
    "aten::add.Tensor(x, 1e+5), aten::sub.Tensor(x, +2), aten::sub.Tensor(x, -0.5)",
    "aten::f('(', /,/, '|', \"[\", /none/, 'lit', /./, '...')",
    "aten::add.Tensor(x,\ty)\t,\r\n  aten::f(x, -inf, -info)\r\n# to the end",
    "aten::relu(x).uses(0, 1), aten::neg(y).uses(1, 1), aten::abs(z).uses(2, *)",
    "call_method[view]<mine.Head>(x), call_module[head], call_module[/he.d/](x)",
    "aten::mul.Scalar(a: aten::relu(x).used_once, a: float)",
    "aten::mul.Tensor(a: aten::relu(x), a: f32[N])",
    "aten::mul.Tensor(a: f32[N], a), aten::neg(a: f32[N, M])",
    "aten::mul.Tensor(a: node, a: constant), aten::neg(a: int)",
    "aten::mul.Tensor(a: 1, a: 2)",
    "aten::mul.Tensor(_1, x: aten::neg(_1)), aten::sub.Tensor(x, x)",
    "1",
    "int",
    "...",
    "[x, y]",
    "None",
    "x",
    "aten::neg(x), x",
    "aten::neg(x), y",
    "aten::neg(x), aten::relu(!aten::neg(_))",
    "aten::size(x, 0), aten::zeros(n), aten::dim(x)",
};

/// Words, numbers, strings and single signs, with the blanks before them.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    if (i < text.size()) ++i;
    while (i < text.size() && in_word(text[i]) && in_word(text[i - 1])) ++i;
    tokens.push_back(text.substr(start, i - start));
  }
  return tokens;
}

std::string outcome(const std::string& text) {
  std::string found;
  const std::string error = testing::error_of([&] { found = Pattern(text).str(); });
  return found.empty() ? error : found;
}

std::string all_but(const std::vector<std::string>& tokens, std::size_t at, const std::string& instead) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) text += i == at ? instead : tokens[i];
  return text;
}

/// What nests, up to where it is too much.
TEST(RecordedPatterns, DeepTexts) {
  std::vector<Recorded> all;
  constexpr std::array<const char*, 3> kAround[] = {{"(", "aten::f(x)", ")"},
                                                    {"!", "aten::f(x)", ""},
                                                    {"aten::g(", "x", ")"},
                                                    {"aten::g([", "x", "])"},
                                                    {"~(", "aten::f(x)", ")"}};
  for (const auto& [before, inside, after] : kAround) {
    std::string found;
    for (int depth = 0; depth <= 230; depth += depth == 8 ? 20 : 1) {
      std::string text = inside;
      for (int i = 0; i < depth; ++i) text = before + text + after;
      const std::string said = outcome(text);
      found += std::to_string(depth) + " " + (said.size() > 200 ? std::to_string(said.size()) : said) + "\n";
    }
    all.push_back({before, found});
  }
  testing::expect_as_recorded("deep_patterns", all);
}

TEST(RecordedPatterns, TextsAndWhatIsWrongWithThem) {
  static constexpr const char* kInstead[] = {"",  "(", ")",  ",", ":", ".", "...", "|", "'", "1",
                                             "-", "=", " x", "%", "[", "}", "\n",  "*", "é"};
  std::vector<Recorded> all;
  for (std::size_t number = 0; number < std::size(kTexts); ++number) {
    const std::string text = kTexts[number];
    all.push_back({std::to_string(number), outcome(text)});
    const std::vector<std::string> tokens = tokens_of(text);
    for (const char* instead : kInstead) {
      std::string found;
      for (std::size_t at = 0; at < tokens.size(); ++at) {
        const std::string changed = all_but(tokens, at, instead);
        found += changed + "\n  => " + outcome(changed) + "\n";
      }
      all.push_back({std::to_string(number) + " with " + (*instead == '\n' ? "\\n" : instead), found});
    }
    std::string cut;
    for (std::size_t size = 0; size < text.size(); ++size)
      cut += text.substr(0, size) + "\n  => " + outcome(text.substr(0, size)) + "\n";
    all.push_back({std::to_string(number) + " cut", cut});
  }
  testing::expect_as_recorded("pattern_texts", all);
}

struct Case {
  Graph graph;
  Pattern pattern;
};

Case case_at(std::uint64_t seed) {
  testing::RandomGraphOptions options;
  options.nodes = 3 + seed % 12;
  options.inputs = 1 + seed % 3;
  options.shape = static_cast<testing::Shape>(seed / 3 % 4);
  options.vocabulary = seed % 2 ? &testing::copying_vocabulary() : &testing::pointwise_vocabulary();
  testing::RandomPatternOptions how;
  how.constructs = seed % 2;
  how.shapes = seed % 4 == 0;
  how.depth = 1 + static_cast<int>(seed % 3);
  const Pattern pattern = testing::random_pattern(seed + 300000, how);
  return {testing::random_graph(seed * 7919, options), seed % 5 == 0 ? pattern.seeing_through() : pattern};
}

FindOptions options_at(std::uint64_t seed, const Shapes& shapes) {
  FindOptions options;
  options.overlap = std::array{Overlap::first, Overlap::all, Overlap::largest, Overlap::best_benefit}[seed % 4];
  options.contained = seed % 3 != 0;
  options.convex = seed % 7 == 0;
  options.ignore_literals = seed % 6 == 0;
  options.commutative = seed % 8 == 0;
  options.benefit = [](const Match& match) { return static_cast<double>(match.nodes().size() % 3); };
  if (seed % 10 != 9) options.shapes = &shapes;
  return options;
}

std::string text_of(const std::vector<Match>& matches) {
  std::ostringstream text;
  for (const Match& match : matches) text << match << "\n";
  return text.str();
}

TEST(RecordedPatterns, MatchesAndNearMisses) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Case one = case_at(seed);
    const Shapes shapes = testing::random_shapes(one.graph, seed);
    FindOptions options = options_at(seed, shapes);
    FindStats stats;
    options.stats = &stats;
    std::string found = one.pattern.str() + text_of(find(one.graph, one.pattern, options));
    found += std::to_string(stats.candidates) + " " + std::to_string(stats.matches) + " " +
             std::to_string(stats.escaped) + "\n";
    options.stats = nullptr;
    found += near_misses(one.graph, one.pattern, options, 4);
    for (const Node& node : one.graph.nodes()) {
      if (node.is_callable()) found += node.name() + ": " + explain(one.graph, one.pattern, node, options) + "\n";
    }
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("near_misses", all);
}

/// Calls of all kinds of arguments, and the texts above on them.
TEST(RecordedPatterns, TextsOnCallsOfAllKinds) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    testing::RandomGraphOptions how = testing::random_options(seed, 30);
    const Graph graph = testing::random_graph(seed, how);
    const Shapes shapes = testing::random_shapes(graph, seed);
    FindOptions options = options_at(seed, shapes);
    options.modules.type = [](std::string_view path) {
      return std::string(path == "head" ? "mine.Head" : "torch.nn.Conv2d");
    };
    std::string found;
    for (const char* text : kTexts) {
      found += std::string(text) + "\n";
      found += testing::error_of([&] {
        const Pattern pattern(text);
        found += text_of(find(graph, pattern, options)) + near_misses(graph, pattern, options, 3);
      });
    }
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("pattern_matches", all);
}

/// Parts of graphs, and the same with one thing changed, which nearly fits.
TEST(RecordedPatterns, PartsOfGraphs) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    testing::RandomGraphOptions how = testing::random_options(seed, 16);
    if (seed % 3 == 2) how.vocabulary = &testing::mutating_vocabulary();
    const Graph graph =
        seed % 3 ? testing::random_graph(seed, how) : testing::graph_of_any_operators(seed, 3 + seed % 6);
    testing::Random random(seed);
    const testing::CutRule rule = testing::cut_rule(graph, random);
    const Shapes shapes = testing::any_shapes(graph, seed);
    FindOptions options = options_at(seed, shapes);
    PatternOptions reading;
    reading.exact_attributes = seed % 7 == 0;
    reading.match_placeholder = seed % 9 == 0;
    std::string found;
    for (const Graph* part : {&rule.pattern, &rule.replacement}) {
      found += testing::error_of([&] {
        const Pattern pattern(*part, reading);
        const Pattern asked = seed % 4 == 0 ? pattern.seeing_through() : pattern;
        found += asked.str() + text_of(find(graph, asked, options)) + near_misses(graph, asked, options, 4);
      });
    }
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found;
  }
  testing::expect_as_recorded("parts_of_graphs", all);
}

/// A prepared pattern, asked after each edit, answers as one that is made then; a set as its patterns do.
TEST(RecordedPatterns, PreparedAndInSets) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const std::uint64_t number = 4 * seed + 1 + seed % 2;  // without shapes
    Case one = case_at(number);
    FindOptions options;
    if (seed % 3 == 0) options.budget = 5 + seed % 40;
    NodeMatcher prepared(one.graph, one.pattern, options);
    testing::Random random(seed);
    for (int edits = 0; edits < 3; ++edits) {
      std::vector<Node*> unused;
      for (Node& node : one.graph.nodes()) {
        const std::optional<Match> now = prepared.match(node);
        NodeMatcher anew(one.graph, one.pattern, options);
        const std::optional<Match> expected = anew.match(node);
        ASSERT_EQ(now ? text_of({*now}) : "", expected ? text_of({*expected}) : "") << seed;
        if (node.is_callable() && !node.has_users()) unused.push_back(&node);
      }
      one.graph.output_node()->set_args(
          {one.graph.placeholders().empty() ? Argument() : Argument(*one.graph.placeholders()[0])});
      if (!unused.empty()) one.graph.erase_node(*random.pick(unused));
    }
    std::string found;
    PatternSet set({case_at(number + 600).pattern, one.pattern, case_at(number + 1200).pattern});
    FindStats stats;
    options.stats = &stats;
    const Graph graph = case_at(number).graph;
    for (const SetMatch& match : set.find(graph, options))
      found += std::to_string(match.pattern) + text_of({match.match});
    found += std::to_string(static_cast<int>(stats.stop)) + " " + std::to_string(stats.candidates) + " " +
             std::to_string(stats.nodes_visited);
    if (seed % 10 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found + "\n";
  }
  testing::expect_as_recorded("pattern_sets", all);
}

}  // namespace fx::recorded_patterns_test
