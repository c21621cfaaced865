// print → parse → print is the identity, on random graphs, on the dumps of the corpus, and at size.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/file_text.h"
#include "tests/support/random_graph.h"

namespace fx::round_trip_test {

using testing::Random;

void expect_equal(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.size(), b.size());
  auto at = b.nodes().begin();
  for (const Node& node : a.nodes()) {
    ASSERT_EQ(node.op(), at->op());
    ASSERT_EQ(node.target(), at->target());
    ASSERT_EQ(node.name(), at->name());
    ASSERT_EQ(node.num_users(), at->num_users());
    ++at;
  }
}

TEST(RoundTrip, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    testing::RandomGraphOptions options = testing::random_options(seed, 30);
    if (seed % 3 == 0) options.vocabulary = &testing::mutating_vocabulary();
    const Graph graph = testing::random_graph(seed, options);
    const std::string text = print_graph(graph);
    const Graph again = parse_graph(text);
    ASSERT_EQ(print_graph(again), text) << "seed " << seed;
    expect_equal(graph, again);
    again.lint();
  }
}

// Arguments, targets, annotations and keywords of random bytes and shapes.
class Oddities {
 public:
  explicit Oddities(std::uint64_t seed) : random_(seed) {}

  Graph build() {
    Graph graph;
    nodes_.push_back(&graph.placeholder("x", value(0)));
    for (int i = 0; i < 4; ++i) {
      std::vector<Argument> args;
      for (std::size_t n = random_.below(4); n > 0; --n) args.push_back(value(0));
      std::vector<NamedArgument> kwargs;
      for (std::size_t n = random_.below(3); n > 0; --n) kwargs.push_back({text() + std::to_string(n), value(0)});
      const Op op = random_.chance(50) ? Op::call_function : Op::call_module;
      Node& node = graph.create_node(op, text(), args, kwargs, text());
      if (random_.chance(50)) node.meta().set(meta_key::kType, text());
      nodes_.push_back(&node);
    }
    graph.output(value(0));
    return graph;
  }

 private:
  std::string text() {
    static constexpr std::string_view kPieces[] = {"a",
                                                   "b1",
                                                   ".",
                                                   "::",
                                                   "torch.ops.",
                                                   ".default",
                                                   " ",
                                                   "\t",
                                                   "\n",
                                                   "[",
                                                   "]",
                                                   "(",
                                                   ")",
                                                   "{",
                                                   "}",
                                                   "<",
                                                   ">",
                                                   "'",
                                                   "\"",
                                                   "\\",
                                                   "%",
                                                   "=",
                                                   ",",
                                                   ":",
                                                   "#",
                                                   "é",
                                                   "\x80",
                                                   "\x01",
                                                   "None",
                                                   "num_users",
                                                   "0",
                                                   "-",
                                                   "e",
                                                   "j",
                                                   "slice(",
                                                   "opaque('",
                                                   "torch.float32",
                                                   "cuda:0",
                                                   "\x7f",
                                                   "_"};
    std::string made;
    for (std::size_t n = random_.below(6); n > 0; --n) made += random_.pick(kPieces);
    if (random_.chance(5)) made += '\0';
    return made;
  }

  Argument value(int depth) {
    static constexpr double kNumbers[] = {0.0, -0.0, 1e-320, 1e22, 123456789.125, -1.5e-7, 1e16};
    if (depth < 4 && random_.chance(25)) {
      std::vector<Argument> elements;
      for (std::size_t n = random_.below(4); n > 0; --n) elements.push_back(value(depth + 1));
      switch (random_.below(4)) {
        case 0: return Argument::list(elements);
        case 1: return Argument::tuple(elements);
        case 2:
          if (elements.size() % 2 == 1) elements.pop_back();
          return Argument::dict(elements);
        default: return Argument::slice(value(depth + 1), value(depth + 1), value(depth + 1));
      }
    }
    switch (random_.below(12)) {
      case 0: return nullptr;
      case 1: return random_.chance(50);
      case 2: return static_cast<std::int64_t>(random_.next());
      case 3: return random_.pick(kNumbers);
      case 4: return std::complex<double>(random_.pick(kNumbers), random_.pick(kNumbers));
      case 5: return Argument(text());
      case 6: return Argument::opaque(text());
      case 7: return Argument::opaque("<" + text() + ">");
      case 8: return Argument::opaque("f(" + text() + ")");
      case 9: return Device{random_.chance(50) ? "cuda" : text(), static_cast<std::int32_t>(random_.below(3)) - 1};
      case 10: return Argument::ellipsis();
      default: return nodes_.empty() ? Argument(1) : Argument(random_.pick(nodes_));
    }
  }

  Random random_;
  std::vector<Node*> nodes_;
};

TEST(RoundTrip, Oddities) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const Graph graph = Oddities(seed).build();
    const std::string text = print_graph(graph);
    std::string again;
    try {
      const Graph parsed = parse_graph(text);
      again = print_graph(parsed);
      expect_equal(graph, parsed);
    } catch (const Error& error) {
      again = error.what();
    }
    ASSERT_EQ(again, text) << "seed " << seed;
  }
}

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/corpus")) {
    if (entry.path().extension() == ".fx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(RoundTrip, TheCorpusOfPythonsDumps) {
  const auto files = corpus();
  ASSERT_GE(files.size(), 5u) << "run from the root of the repository";
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    const Graph graph = load_graph_text(file.string());
    graph.lint();
    const std::string text = print_graph(graph);
    EXPECT_EQ(print_graph(parse_graph(text)), text);
    std::size_t lines = 0;
    for (const char c : text) lines += c == '\n';
    EXPECT_EQ(lines, graph.size() + 1) << "a node a line";
  }
}

// Where Python's text needs no interpretation ours differs from it in nothing.
TEST(RoundTrip, PrintsTheCorpusAsPythonDid) {
  for (const char* name : {"export214_resnet18.fx", "torchfx214_googlenet.fx"}) {
    std::string theirs = testing::file_text(std::filesystem::path("tests/corpus") / name);
    if (!theirs.ends_with('\n')) theirs += '\n';
    EXPECT_EQ(print_graph(parse_graph(theirs)), theirs) << name;
  }
}

// Damaged texts parse or throw; they never crash. (Run with sanitizers, this is a small fuzzer.)
TEST(RoundTrip, DamagedTextsParseOrThrow) {
  Random random(11);
  std::vector<std::string> texts;
  for (const auto& file : corpus()) {
    if (std::filesystem::file_size(file) < 4000) texts.push_back(testing::file_text(file));
  }
  for (std::uint64_t seed = 0; seed < 60; ++seed) texts.push_back(print_graph(Oddities(seed).build()));
  std::size_t parsed = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = random.pick(texts);
    if (random.chance(30)) text.resize(random.below(text.size() + 1));
    for (std::size_t flips = random.below(4); flips > 0 && !text.empty(); --flips) {
      static constexpr std::string_view kBytes =
          "%()[]{}'\",:=#\\ \n<>.\x00\xff"
          "0ax";
      text[random.below(text.size())] =
          random.chance(70) ? kBytes[random.below(kBytes.size())] : static_cast<char>(random.next());
    }
    try {
      const Graph graph = parse_graph(text);
      const std::string printed = print_graph(graph);
      ASSERT_EQ(print_graph(parse_graph(printed)), printed) << text;
      ++parsed;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::syntax) << text;
      ++refused;
    }
  }
  EXPECT_GT(parsed, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(RoundTrip, LongChainsAndWideFans) {
  for (const Graph& graph : {testing::chain(100'000), testing::fan(300'000), testing::ladder(50'000)}) {
    const std::string text = print_graph(graph);
    const Graph again = parse_graph(text);
    EXPECT_TRUE(print_graph(again) == text);
    again.lint();
  }
}

// Texts that a parser with a quadratic corner would chew on for hours.
TEST(RoundTrip, NoTextIsQuadratic) {
  const auto refuse = [](const std::string& args) {
    EXPECT_THROW(parse_graph("graph():\n %y : = call_function[target=f](args = (" + args), Error);
  };
  const auto repeated = [](std::string_view piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  for (const char* piece :
       {"a(,", "<,", "b',", "f('(,", "a ", "{", "[", "(", "a:", "'a', ", ",", "%y,", "\n", "a\n,", "-1,"}) {
    refuse(repeated(piece, 300'000));
  }
  std::string stems = "graph():\n";
  for (int i = 0; i < 50'000; ++i)
    stems += " %s" + std::to_string(i) + "x_" + std::to_string(3 * i) + " = get_attr[target=w]\n";
  EXPECT_EQ(parse_graph(stems).size(), 50'000u);
}

}  // namespace fx::round_trip_test
