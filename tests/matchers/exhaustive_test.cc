// Every small graph against every small pattern: all graphs of up to five calls of three operators, all patterns of up
// to three. The graphs stand side by side in one, so that each pattern is looked for once; what must be found is
// counted out on arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <fxgraph/matchers/matcher.h>

namespace fx::exhaustive_test {

constexpr std::array<const char*, 3> kOperators = {"aten::relu", "aten::neg", "aten::add.Tensor"};

/// A call: which operator, and its operands as positions; the inputs come first.
struct Call {
  int op;
  int a;
  int b;  ///< -1 for operators with one operand
  friend auto operator<=>(const Call&, const Call&) = default;
  bool uses(int position) const { return a == position || b == position; }
};
using Calls = std::vector<Call>;

/// All sequences of `count` calls on `inputs` inputs, one for each graph: where two neighbours could change places, the
/// smaller stands first.
void add_all(int inputs, std::size_t count, Calls& made, std::vector<Calls>& all) {
  if (made.size() == count) {
    all.push_back(made);
    return;
  }
  const int known = inputs + static_cast<int>(made.size());
  for (int op = 0; op < 3; ++op) {
    for (int a = 0; a < known; ++a) {
      for (int b = op == 2 ? 0 : -1; b < (op == 2 ? known : 0); ++b) {
        const Call call{op, a, b};
        if (!made.empty() && !call.uses(known - 1) && call < made.back()) continue;
        made.push_back(call);
        add_all(inputs, count, made, all);
        made.pop_back();
      }
    }
  }
}

std::vector<Calls> graphs(std::size_t most) {
  std::vector<Calls> all;
  Calls made;
  for (std::size_t count = 1; count <= most; ++count) add_all(1, count, made, all);
  return all;
}

/// Patterns with two wildcards where everything is needed for the last call.
std::vector<Calls> patterns() {
  std::vector<Calls> all;
  Calls made;
  for (std::size_t count = 1; count <= 3; ++count) add_all(2, count, made, all);
  std::erase_if(all, [](const Calls& calls) {
    for (int i = 0; i + 1 < static_cast<int>(calls.size()); ++i) {
      if (std::none_of(calls.begin(), calls.end(), [&](const Call& call) { return call.uses(2 + i); })) return true;
    }
    return false;
  });
  return all;
}

Node& build(Graph& graph, const Calls& calls, std::vector<Node*>& values) {
  for (const Call& call : calls) {
    Node& a = *values[static_cast<std::size_t>(call.a)];
    values.push_back(call.b < 0 ? &graph.call_function(kOperators[static_cast<std::size_t>(call.op)], {a})
                                : &graph.call_function(kOperators[static_cast<std::size_t>(call.op)],
                                                       {a, *values[static_cast<std::size_t>(call.b)]}));
  }
  return *values.back();
}

/// What a match binds, as a number: the graph, then for each wildcard and call the position it is bound to.
std::uint64_t code(std::size_t graph, const std::array<int, 5>& bound) {
  std::uint64_t number = graph;
  for (const int position : bound) number = number * 8 + static_cast<std::uint64_t>(position + 1);
  return number;
}

/// Binds the pattern's calls from the last to the first, each to the operand that its user names, in every order of
/// operands that is allowed.
class Counter {
 public:
  Counter(const Calls& pattern, bool commutative, bool contained)
      : pattern_(pattern), commutative_(commutative), contained_(contained) {}

  void count(std::size_t number, const Calls& graph, std::vector<std::uint64_t>& codes) {
    for (int root = 1; root <= static_cast<int>(graph.size()); ++root) {
      std::array<int, 5> bound{-1, -1, -1, -1, -1};
      bound[1 + pattern_.size()] = root;
      bind(graph, static_cast<int>(pattern_.size()) - 1, bound, number, codes);
    }
  }

 private:
  void bind(const Calls& graph, int call, const std::array<int, 5>& bound, std::size_t number,
            std::vector<std::uint64_t>& codes) {
    if (call < 0) {
      if (!contained_ || is_contained(graph, bound)) codes.push_back(code(number, bound));
      return;
    }
    const int position = bound[static_cast<std::size_t>(2 + call)];
    if (position == 0) return;  // the graph's input is no call
    const Call& wanted = pattern_[static_cast<std::size_t>(call)];
    const Call& found = graph[static_cast<std::size_t>(position - 1)];
    if (wanted.op != found.op) return;
    try_order(graph, call, bound, found.a, found.b, number, codes);
    if (commutative_ && wanted.op == 2) try_order(graph, call, bound, found.b, found.a, number, codes);
  }

  void try_order(const Calls& graph, int call, std::array<int, 5> bound, int a, int b, std::size_t number,
                 std::vector<std::uint64_t>& codes) {
    const Call& wanted = pattern_[static_cast<std::size_t>(call)];
    if (!set(bound, wanted.a, a) || (wanted.b >= 0 && !set(bound, wanted.b, b))) return;
    bind(graph, call - 1, bound, number, codes);
  }

  static bool set(std::array<int, 5>& bound, int at, int position) {
    int& known = bound[static_cast<std::size_t>(at)];
    if (known < 0) known = position;
    return known == position;
  }

  bool is_contained(const Calls& graph, const std::array<int, 5>& bound) const {
    const auto last = bound.begin() + 2 + static_cast<std::ptrdiff_t>(pattern_.size());
    for (int i = 0; i + 1 < static_cast<int>(pattern_.size()); ++i) {
      const int value = bound[static_cast<std::size_t>(2 + i)];
      if (value == *(last - 1)) continue;
      for (int user = 1; user <= static_cast<int>(graph.size()); ++user) {
        if (graph[static_cast<std::size_t>(user - 1)].uses(value) && std::find(bound.begin() + 2, last, user) == last)
          return false;
      }
    }
    return true;
  }

  const Calls& pattern_;
  bool commutative_;
  bool contained_;
};

struct Place {
  std::uint32_t graph;
  int position;
};

void compare(std::size_t most, bool commutative, bool contained) {
  const std::vector<Calls> all = graphs(most);
  Graph graph;
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    std::vector<Node*> values = {&graph.placeholder("x" + std::to_string(i))};
    build(graph, all[i], values);
    places.resize(graph.id_bound());
    for (std::size_t k = 0; k < values.size(); ++k) places[values[k]->id()] = {i, static_cast<int>(k)};
  }
  std::size_t found = 0;
  for (const Calls& calls : patterns()) {
    Graph pattern;
    std::vector<Node*> values = {&pattern.placeholder("x"), &pattern.placeholder("y")};
    pattern.output(build(pattern, calls, values));
    std::vector<std::uint64_t> actual;
    for (const Match& match :
         find(graph, pattern, {.overlap = Overlap::all, .contained = contained, .commutative = commutative})) {
      std::array<int, 5> bound{-1, -1, -1, -1, -1};
      for (std::size_t k = 0; k < match.values().size(); ++k) {
        if (const Node* node = match.values()[k].node_or_null()) bound[k] = places[node->id()].position;
      }
      actual.push_back(code(places[match.anchor().id()].graph, bound));
    }
    std::vector<std::uint64_t> expected;
    Counter counter(calls, commutative, contained);
    for (std::size_t i = 0; i < all.size(); ++i) counter.count(i, all[i], expected);
    std::sort(actual.begin(), actual.end());
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    ASSERT_EQ(actual.size(), expected.size()) << Pattern(pattern).str();
    ASSERT_TRUE(actual == expected) << Pattern(pattern).str();
    found += actual.size();
  }
  EXPECT_GT(found, 10 * all.size());
  EXPECT_EQ(patterns().size(), 640u);
  EXPECT_EQ(graphs(5).size(), 77762u);
}

TEST(Exhaustive, AllSmallGraphsAndPatterns) { compare(5, false, true); }
TEST(Exhaustive, CommutativeAndNotContained) { compare(4, true, false); }

}  // namespace fx::exhaustive_test
