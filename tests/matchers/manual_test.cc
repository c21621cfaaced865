// docs/matching.md: every example on the page gives what the page says.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <fxgraph/matchers/explain.h>
#include <fxgraph/text/parse.h>
#include "tests/support/short_graph.h"

namespace fx::manual_test {

struct Block {
  int line = 0;
  std::string kind;  ///< what stands behind the three backticks
  std::string text;
};

std::vector<Block> blocks_of(const char* path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({number, line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

/// What the blocks so far have set up: the graph, and what is known of its values and modules.
class Page {
 public:
  void set_graph(const std::string& text) {
    graph_ = text.starts_with("graph(") ? parse_graph(text) : testing::graph_of(text, "x y b");
    shapes_ = Shapes(graph_);
    types_.clear();
  }
  void set_shapes(const std::string& text) {
    std::istringstream lines(text);
    for (std::string name, shape; lines >> name >> shape;) shapes_[*graph_.find(name)] = *parse_tensor_info(shape);
  }
  void set_types(const std::string& text) {
    std::istringstream lines(text);
    for (std::string path, type; lines >> path >> type;) types_.emplace_back(path, type);
  }

  static Pattern pattern(const std::string& text) {
    return Pattern(text, {{"even", [](const Argument& n) { return n.is_int() && n.as_int() % 2 == 0; }}});
  }
  std::string matches(const std::string& text) const {
    std::ostringstream found;
    for (const Match& match : find(graph_, pattern(text), options())) found << match << '\n';
    return found.str();
  }
  std::string misses(const std::string& text) const { return near_misses(graph_, pattern(text), options()); }
  std::string error(const std::string& text) const {
    try {
      return "no error: " + matches(text);
    } catch (const Error& error) {
      return std::string(error.what()) + "\n";
    }
  }

 private:
  FindOptions options() const {
    FindOptions options;
    options.shapes = &shapes_;
    options.modules.type = [this](std::string_view path) -> std::string {
      for (const auto& [known, type] : types_) {
        if (known == path) return type;
      }
      return "";
    };
    return options;
  }

  Graph graph_;
  Shapes shapes_;
  std::vector<std::pair<std::string, std::string>> types_;
};

TEST(Manual, EveryExampleGivesWhatThePageSays) {
  Page page;
  std::string pattern;
  std::size_t examples = 0;
  for (const Block& block : blocks_of("docs/matching.md")) {
    const std::string place = "docs/matching.md:" + std::to_string(block.line);
    if (block.kind == "graph") page.set_graph(block.text);
    if (block.kind == "shapes") page.set_shapes(block.text);
    if (block.kind == "types") page.set_types(block.text);
    if (block.kind == "pattern") pattern = block.text;
    const bool answer = block.kind == "matches" || block.kind == "misses" || block.kind == "error";
    if (!answer) continue;
    ++examples;
    const std::string given = block.kind == "matches"  ? page.matches(pattern)
                              : block.kind == "misses" ? page.misses(pattern)
                                                       : page.error(pattern);
    EXPECT_EQ(given, block.text) << place;
    if (block.kind != "error") {
      const Pattern read = Page::pattern(pattern);
      EXPECT_EQ(Page::pattern(read.str()).str(), read.str()) << place;
    }
  }
  EXPECT_GE(examples, 24u);
}

}  // namespace fx::manual_test
