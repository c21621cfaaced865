// What the alias analyses say of every graph of a few calls, against every run that the graph may have.
//
// A run decides for each call that may do one thing or another which it does: whether `contiguous` copies, what a
// module that nobody described returns, whether an operator without a schema writes. It says in which storage each
// value lies and which storages are written. What some run does may happen; what all do is sure. Not among these
// graphs: lists, several arguments, in-place views, tied attributes; random graphs have those (tests/effects,
// tests/rules).
#include <gtest/gtest.h>

#include <array>
#include <bitset>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/text/print.h>
#include "tests/support/night.h"

namespace fx::every_graph_test {

constexpr std::size_t kMostCalls = 5, kInput = 0, kWeight = 1, kMostValues = kMostCalls + 2;

enum class Call : std::uint8_t { relu, view, contiguous, add_, rand_like, module, unknown };
constexpr std::size_t kCalls = 7;

struct Step {
  Call call = Call::relu;
  std::size_t operand = 0;  // a value
};
using Program = std::vector<Step>;

/// How many things a call may do, and what it does: the storage of its result, `own` or one of those given.
constexpr std::size_t choices(Call call) {
  constexpr std::array<std::size_t, kCalls> kChoices = {1, 1, 2, 1, 1, 3, 4};
  return kChoices[static_cast<std::size_t>(call)];
}

std::size_t result(Call call, std::size_t choice, std::size_t operand, std::size_t own) {
  switch (call) {
    case Call::relu:
    case Call::rand_like: return own;
    case Call::view:
    case Call::add_: return operand;
    case Call::module: return choice == 2 ? kWeight : choice ? operand : own;
    default: return choice % 2 ? operand : own;
  }
}

bool writes(Call call, std::size_t choice) { return call == Call::add_ || (call == Call::unknown && choice >= 2); }

/// What some run does, and what all do, by value: values of calls come behind the input and the weight.
struct Runs {
  std::array<std::bitset<kMostValues>, kMostValues> may{}, must{}, may_write{};  // a call's, whose storages it writes
  std::bitset<kMostValues> conflicts{};  // a call's, with the one before: some run writes what the other touches
};

Runs runs_of(const Program& program) {
  Runs runs;
  for (auto& all : runs.must) all.set();
  const std::size_t values = program.size() + 2;
  std::array<std::size_t, kMostCalls> choice{};
  while (true) {
    std::array<std::size_t, kMostValues> storage{kInput, kWeight};
    for (std::size_t i = 0; i < program.size(); ++i)
      storage[i + 2] = result(program[i].call, choice[i], storage[program[i].operand], i + 2);
    for (std::size_t a = 0; a < values; ++a) {
      for (std::size_t b = 0; b < values; ++b) {
        runs.may[a][b] = runs.may[a][b] || storage[a] == storage[b];
        runs.must[a][b] = runs.must[a][b] && storage[a] == storage[b];
      }
    }
    const auto written = [&](std::size_t i) {
      return writes(program[i].call, choice[i]) ? storage[program[i].operand] : kMostValues;
    };
    const auto touches = [&](std::size_t i, std::size_t where) {
      return storage[program[i].operand] == where || (program[i].call == Call::module && where == kWeight);
    };
    for (std::size_t i = 0; i < program.size(); ++i) {
      for (std::size_t a = 0; a < values; ++a)
        runs.may_write[i + 2][a] = runs.may_write[i + 2][a] || storage[a] == written(i);
      if (i > 0 && (touches(i, written(i - 1)) || touches(i - 1, written(i)))) runs.conflicts[i + 2] = true;
    }
    std::size_t i = 0;
    for (; i < program.size(); ++i) {
      if (++choice[i] < choices(program[i].call)) break;
      choice[i] = 0;
    }
    if (i == program.size()) return runs;
  }
}

struct Built {
  Graph graph;
  std::vector<Node*> nodes;
};

Built build(const Program& program) {
  Built made;
  Graph& graph = made.graph;
  made.nodes = {&graph.placeholder("x"), &graph.get_attr("layer.weight")};
  for (const Step& step : program) {
    Node& input = *made.nodes[step.operand];
    const auto node = [&]() -> Node& {
      switch (step.call) {
        case Call::relu: return graph.call_function("aten::relu", {input});
        case Call::view: return graph.call_function("aten::view", {input, Argument::list({-1})});
        case Call::contiguous: return graph.call_function("aten::contiguous", {input});
        case Call::add_: return graph.call_function("aten::add_.Scalar", {input, 1});
        case Call::rand_like: return graph.call_function("aten::rand_like", {input});
        case Call::module: return graph.call_module("layer", {input});
        default: return graph.call_function("mylib::nobody_knows", {input});
      }
    };
    made.nodes.push_back(&node());
  }
  graph.output(*made.nodes.back());
  return made;
}

/// Neighbours whose order shows though neither touches what the other writes: both draw or may, or a module that nobody
/// described stands beside an effect.
bool keep_order(Call a, Call b) {
  const auto draws = [](Call call) { return call == Call::rand_like || call == Call::unknown; };
  const auto acts = [&](Call call) { return draws(call) || call == Call::add_; };
  return (draws(a) && draws(b)) || (a == Call::module && acts(b)) || (b == Call::module && acts(a));
}

/// What is wrong; empty: nothing.
std::string disagreement(const Program& program) {
  const Built built = build(program);
  const std::vector<Node*>& nodes = built.nodes;
  const Runs runs = runs_of(program);
  const Effects effects(built.graph);
  internal::TrackedEffects tracked(built.graph);
  tracked.expect_writes();
  std::string wrong;
  const auto expect = [&](bool right, const char* what, const Node& a, const Node& b) {
    if (!right) wrong += std::string(what) + " of " + a.name() + " and " + b.name() + "; ";
  };
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    const Node& value = *nodes[a];
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      const Node& other = *nodes[b];
      expect(effects.may_alias(value, other) == runs.may[a][b], "Effects: may_alias", value, other);
      expect(tracked.may_alias(value, other) == runs.may[a][b], "TrackedEffects: may_alias", value, other);
      if (b < 2) continue;
      expect(tracked.may_write(other, value) == runs.may_write[b][a], "TrackedEffects: may_write", value, other);
      std::size_t last = b - 1;
      while (last >= 2 && !runs.may_write[last][a]) --last;
      const Node* expected = last >= 2 ? nodes[last] : nullptr;
      expect(effects.last_write_before(value, other) == expected, "Effects: last_write_before", value, other);
      expect(tracked.write_between(value, *nodes[0], other) == expected, "TrackedEffects: write", value, other);
      std::size_t first = 2;
      while (first < b && !runs.may_write[first][a]) ++first;
      expected = first < b ? nodes[first] : nullptr;
      expect(effects.write_between(value, *nodes[0], other) == expected, "Effects: write_between", value, other);
    }
    std::size_t origin = 0;
    while (!runs.must[a][origin]) ++origin;
    expect(tracked.origin_of(value).node == nodes[origin], "TrackedEffects: origin_of", value, *nodes[origin]);
    expect(tracked.is_returned(value) == runs.may[a][nodes.size() - 1], "TrackedEffects: is_returned", value, value);
    if (a < 3) continue;
    const Step &before = program[a - 3], &step = program[a - 2];
    const bool may_swap = step.operand != a - 1 && !runs.conflicts[a] && !keep_order(before.call, step.call);
    expect(effects.may_swap(*nodes[a - 1], value) == may_swap, "Effects: may_swap", *nodes[a - 1], value);
  }
  return wrong;
}

class EveryGraph : public ::testing::Test {
 public:
  void visit(std::size_t calls) {
    if (program_.size() > 0) check();
    if (program_.size() == calls || wrong_ > 5) return;
    const std::size_t values = program_.size() + 2;
    for (std::size_t call = 0; call < kCalls; ++call) {
      for (std::size_t operand = 0; operand < values; ++operand) {
        program_.push_back({static_cast<Call>(call), operand});
        visit(calls);
        program_.pop_back();
      }
    }
  }

 protected:
  void check() {
    ++graphs_;
    const std::string wrong = disagreement(program_);
    if (wrong.empty()) return;
    ++wrong_;
    ADD_FAILURE() << wrong << "\n" << print_graph(build(program_).graph);
  }

  Program program_;
  std::size_t graphs_ = 0, wrong_ = 0;
};

TEST_F(EveryGraph, OfAFewCallsMayDoWhatSomeRunDoes) {
  visit(testing::at_night() ? kMostCalls : kMostCalls - 1);
  EXPECT_GT(graphs_, 290'000u);
}

}  // namespace fx::every_graph_test
