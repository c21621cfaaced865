#include <fxgraph/report/layout.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::layout_test {

/// A layout with all groups open, and what it must be like whatever the graph.
class Picture {
 public:
  explicit Picture(const Graph& graph, std::size_t max_members = Outline::kMaxMembers,
                   const LayoutOptions& options = {})
      : graph_(graph),
        outline_(graph, max_members),
        hidden_(options.hidden),
        layouts_(lay_out(graph, outline_, options)) {
    stacks_.resize(layouts_.size());
    for (std::size_t group = layouts_.size(); group-- > 0;) {
      std::vector<double> heights;
      for (const auto& box : layouts_[group].boxes) heights.push_back(box.node ? 38 : stacks_[box.group].height);
      stacks_[group] = stack(layouts_[group], kFrameHead, std::move(heights));
    }
  }

  void check() const {
    for (std::size_t group = 0; group < layouts_.size(); ++group) {
      check_boxes(group);
      check_edges(group);
    }
    EXPECT_EQ(nodes_shown(), std::count_if(graph_.nodes().begin(), graph_.nodes().end(),
                                           [&](const Node& node) { return !hidden_(node); }));
    for (const Node& node : graph_.nodes()) {
      if (hidden_(node)) continue;
      node.for_each_input([&](Node& input) {
        EXPECT_TRUE(hidden_(input) || leads(input, node)) << input.name() << " -> " << node.name();
      });
    }
  }

  const std::vector<GroupLayout>& layouts() const { return layouts_; }
  const std::vector<StackedGroup>& stacks() const { return stacks_; }
  const Outline& outline() const { return outline_; }

 private:
  std::ptrdiff_t nodes_shown() const {
    return std::accumulate(layouts_.begin(), layouts_.end(), std::ptrdiff_t{0}, [](std::ptrdiff_t sum, auto& layout) {
      return sum + std::count_if(layout.boxes.begin(), layout.boxes.end(), [](auto& box) { return box.node; });
    });
  }

  void check_boxes(std::size_t group) const {
    const GroupLayout& layout = layouts_[group];
    const StackedGroup& stacked = stacks_[group];
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
      const auto& box = layout.boxes[i];
      const std::size_t held =
          box.node ? outline_.group_of(*box.node) : static_cast<std::size_t>(outline_.groups()[box.group].parent);
      ASSERT_EQ(held, group);
      ASSERT_TRUE(box.node || box.width == layouts_[box.group].width);
      ASSERT_GE(box.x, 0);
      ASSERT_LE(box.x + box.width, layout.width);
      ASSERT_GE(stacked.box_top(layout, i), kFrameHead);
      ASSERT_LE(stacked.box_top(layout, i) + stacked.heights[i], stacked.height);
    }
    std::vector<const GroupLayout::Box*> order;
    for (const auto& box : layout.boxes) order.push_back(&box);
    std::sort(order.begin(), order.end(),
              [](auto* a, auto* b) { return std::pair(a->row, a->x) < std::pair(b->row, b->x); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i]->row != order[i - 1]->row) continue;
      ASSERT_GE(order[i]->x, order[i - 1]->x + order[i - 1]->width + 10) << "group " << group;
    }
  }

  void check_edges(std::size_t group) const {
    const GroupLayout& layout = layouts_[group];
    for (const auto& edge : layout.edges) {
      check_end(edge, edge.from, edge.from_offset, layout, false);
      check_end(edge, edge.to, edge.to_offset, layout, true);
      const std::vector<Point> points = stacks_[group].points(layout, edge);
      ASSERT_GE(points.size(), 2u);
      for (std::size_t i = 1; i < points.size(); ++i) {
        ASSERT_LE(points[i].x, layout.width);
        if (points[i].x == points[i - 1].x) check_clear(group, edge, points[i - 1], points[i]);
      }
    }
  }

  /// What enters or leaves a group does so where the group has a port for it.
  void check_end(const GroupLayout::Edge& edge, std::int32_t end, double offset, const GroupLayout& layout,
                 bool into) const {
    if (end == GroupLayout::kPort) return;
    const auto& box = layout.boxes[static_cast<std::size_t>(end)];
    if (box.node) {
      ASSERT_EQ(offset, 0);
      return;
    }
    const auto& inner = layouts_[box.group];
    const bool found = std::any_of(inner.edges.begin(), inner.edges.end(), [&](const auto& part) {
      if (part.source != edge.source || (into ? part.from : part.to) != GroupLayout::kPort) return false;
      return std::abs((into ? part.way.front() : part.way.back()).x - inner.width / 2 - offset) < 1e-3;
    });
    ASSERT_TRUE(found) << edge.source->name();
  }

  /// Upright parts pass beside the boxes.
  void check_clear(std::size_t group, const GroupLayout::Edge& edge, Point a, Point b) const {
    const auto [top, bottom] = std::minmax(a.y, b.y);
    for (std::size_t i = 0; i < layouts_[group].boxes.size(); ++i) {
      const auto& box = layouts_[group].boxes[i];
      const double y = stacks_[group].box_top(layouts_[group], i);
      const bool meets = a.x > box.x && a.x < box.x + box.width && bottom > y && top < y + stacks_[group].heights[i];
      ASSERT_FALSE(meets) << edge.source->name() << " passes " << (box.node ? box.node->name() : "a group");
    }
  }

  /// Back from the user, out of one group after the other, to the source.
  bool leads(const Node& source, const Node& user) const {
    std::size_t group = outline_.group_of(user);
    const Node* node = &user;
    std::uint32_t inner = 0;
    for (;;) {
      const GroupLayout& layout = layouts_[group];
      const auto edge = std::find_if(layout.edges.begin(), layout.edges.end(), [&](const auto& part) {
        if (part.source != &source || part.to == GroupLayout::kPort) return false;
        const auto& box = layout.boxes[static_cast<std::size_t>(part.to)];
        return node ? box.node == node : !box.node && box.group == inner;
      });
      if (edge == layout.edges.end()) return false;
      if (edge->from != GroupLayout::kPort) return holds(layout.boxes[static_cast<std::size_t>(edge->from)], source);
      node = nullptr;
      inner =
          static_cast<std::uint32_t>(std::exchange(group, static_cast<std::size_t>(outline_.groups()[group].parent)));
    }
  }
  bool holds(const GroupLayout::Box& box, const Node& node) const {
    if (box.node) return box.node == &node;
    auto group = static_cast<std::int32_t>(outline_.group_of(node));
    while (group > static_cast<std::int32_t>(box.group))
      group = outline_.groups()[static_cast<std::size_t>(group)].parent;
    return group == static_cast<std::int32_t>(box.group);
  }

  const Graph& graph_;
  Outline outline_;
  std::function<bool(const Node&)> hidden_;
  std::vector<GroupLayout> layouts_;
  std::vector<StackedGroup> stacks_;
};

/// Calls of a few modules, nested and met again and again, so that values go back and forth between groups.
Graph woven_modules(std::uint64_t seed) {
  const Graph plain = testing::random_graph(seed, testing::random_options(seed, 80));
  Graph graph;
  testing::Random random(seed);
  std::vector<Node*> values{&graph.placeholder("x"), &graph.get_attr("a.weight")};
  for (std::size_t i = 0; i < plain.size(); ++i) {
    std::string path = "m";
    for (std::size_t depth = random.below(4); depth > 0; --depth) path += std::to_string(random.below(3)) + ".m";
    Node* a = values[random.below(values.size())];
    Node* b = values[values.size() - 1 - random.below(std::min<std::size_t>(values.size(), 3))];
    values.push_back(&graph.call_module(path, {*a, *b}));
  }
  graph.output(*values.back());
  return graph;
}

TEST(Layout, BoxesAreApartAndEdgesPassBesideThem) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 80));
    Picture(graph).check();
    Picture(graph, 10).check();
    Picture(graph, Outline::kMaxMembers, {.hidden = [](const Node& node) { return node.is(Op::placeholder); }}).check();
    ASSERT_FALSE(::testing::Test::HasFailure()) << seed;
  }
}

TEST(Layout, ModulesThatAreMetAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = woven_modules(seed);
    Picture(graph).check();
    Picture(graph, 6,
            {.node_width = [](const Node& node) { return 60.0 + 10 * (node.id() % 7); },
             .group_width = [](std::uint32_t group) { return group % 3 * 400.0; }})
        .check();
    ASSERT_FALSE(::testing::Test::HasFailure()) << seed;
  }
}

/// Weights that are read first do not put their module above what it is given.
TEST(Layout, ModulesStandBelowWhatTheyAreGiven) {
  const Graph graph = parse_graph(R"(graph():
    %c_w = get_attr[target=c.w]
    %b_w = get_attr[target=b.w]
    %a_w = get_attr[target=a.w]
    %x = placeholder[target=x]
    %p = call_module[target=a.l](args = (%x, %a_w))
    %q = call_module[target=b.l](args = (%p, %b_w))
    %r = call_module[target=c.l](args = (%q, %c_w))
    return r)");
  const Picture picture(graph);
  picture.check();
  const auto row_of = [&](const char* name) {
    const std::size_t group = picture.outline().group_of(*graph.find(name));
    for (const auto& box : picture.layouts()[0].boxes) {
      if (!box.node && box.group == group) return static_cast<int>(box.row);
    }
    return -1;
  };
  EXPECT_GE(row_of("p"), 0);
  EXPECT_LT(row_of("p"), row_of("q"));
  EXPECT_LT(row_of("q"), row_of("r"));
}

TEST(Layout, RealModels) {
  for (const char* name : {"torchfx113_resnet18", "torchfx214_googlenet", "torchfx113_densenet121",
                           "export214_transformer", "export214_resnet18"}) {
    SCOPED_TRACE(name);
    const Graph graph = load_graph_text(std::string("tests/corpus/") + name + ".fx");
    Picture(graph).check();
    Picture(graph, std::numeric_limits<std::size_t>::max()).check();
  }
}

TEST(Layout, OfAChainIsStraightAndSoIsTheTrunkOfAResNet) {
  Graph chain;
  Node* value = &chain.placeholder("x");
  for (int i = 0; i < 50; ++i) value = &chain.call_function("aten::relu", {*value});
  chain.output(*value);
  const Picture straight(chain);
  for (const auto& box : straight.layouts()[0].boxes) EXPECT_DOUBLE_EQ(box.x, straight.layouts()[0].boxes[0].x);

  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const Picture resnet(graph);
  const GroupLayout& block = resnet.layouts()[resnet.outline().group_of(*graph.find("layer1_0_conv1"))];
  for (const auto& box : block.boxes)
    EXPECT_DOUBLE_EQ(box.x + box.width / 2, block.boxes[0].x + block.boxes[0].width / 2);
}

TEST(Layout, RepeatedBlocksDoNotDriftAway) {
  // The results of each block leave far right of where its input enters.
  Graph graph;
  Node* value = &graph.placeholder("x");
  for (int block = 0; block < 30; ++block) {
    std::vector<Argument> results;
    const std::string path = "blocks." + std::to_string(block);
    Node& wide = graph.call_module(path + ".a", {*value});
    for (const char* part : {".b", ".c", ".d"}) graph.call_module(path + part, {wide});
    Node& end = graph.call_module(path + ".e", {*value});
    for (const char* part : {".f", ".g", ".h"}) results.push_back(&graph.call_module(path + part, {end}));
    value = &graph.call_function("torch.cat", {Argument::list(results)});
  }
  graph.output(*value);
  const Picture picture(graph);
  double widest = 0;
  for (std::size_t i = 2; i < picture.layouts().size(); ++i) widest = std::max(widest, picture.layouts()[i].width);
  EXPECT_LT(picture.layouts()[0].width, 2 * widest);
}

TEST(Layout, VeryLongEdgesTakeALaneBesideEverything) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node* value = &x;
  for (int i = 0; i < 90; ++i) value = &graph.call_function("aten::relu", {*value});
  graph.output(graph.call_function("aten::add.Tensor", {*value, x}));
  const Picture picture(graph, 1000);
  picture.check();
  const auto& edges = picture.layouts()[0].edges;
  const auto longest = std::max_element(edges.begin(), edges.end(), [](const auto& a, const auto& b) {
    return (a.way.empty() ? 0 : a.way[0].rows) < (b.way.empty() ? 0 : b.way[0].rows);
  });
  EXPECT_EQ(longest->way.size(), 1u);
  EXPECT_EQ(longest->way[0].rows, 90);
  for (const auto& box : picture.layouts()[0].boxes) EXPECT_GT(longest->way[0].x, box.x + box.width);
}

TEST(Layout, OfNothing) { Picture(Graph{}).check(); }

TEST(LayoutNight, LargeGraphs) {
  for (const Graph& graph : {testing::chain(30'000), testing::fan(100'000), testing::ladder(30'000)}) {
    EXPECT_GT(lay_out(graph, Outline(graph))[0].width, 0);
    EXPECT_EQ(lay_out(graph, Outline(graph, graph.size()))[0].boxes.size(), graph.size());
  }
}

}  // namespace fx::layout_test
