// Programs of fifty drawn operators on two inputs whose sizes are symbols: what is said of every value is what LibTorch
// makes of it at drawn sizes, and what a program asks of its sizes is what LibTorch refuses others for.
//
// FXGRAPH_SYMBOLIC_PROGRAMS=N draws as many, FXGRAPH_SYMBOLIC_SEED=S from S on. What is not drawn: operators that
// write, draw random numbers or give several tensors, more than four dimensions, quantized and complex tensors, sizes
// that data decide. Strides are not compared of what follows from a size that varies and is 1, or from windows over
// single points: the order of such dimensions counts for nothing, and kernels go by it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>
#include "tests/support/night.h"

namespace fx::symbolic_programs_test {

constexpr std::size_t kCalls = 50;
constexpr int kSizes = 20;  // at which each is run
constexpr std::int64_t kMostElements = 1 << 16;
const std::vector<std::string> kSymbols = {"a", "b", "c", "d"};

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed) {
    const std::int64_t least = below(3);
    for (const std::string& symbol : kSymbols) ranges_[symbol] = {least, std::nullopt};
    const auto symbol = [&] { return SizeExpr::symbol(kSymbols[below(kSymbols.size())]); };
    for (int i = 0; i < 2; ++i) {
      TensorType type{below(4) ? DType::float32 : below(2) ? DType::int64 : DType::boolean, {}, {}};
      for (std::size_t rank = 1 + below(4); rank > 0; --rank)
        type.sizes.push_back(below(4) ? symbol() : SizeExpr(static_cast<std::int64_t>(1 + below(4))));
      type.strides = contiguous_strides(type.sizes);
      inputs_.push_back(type);
      values_.emplace(&graph_.placeholder(i == 0 ? "x" : "y"), type);
    }
    for (const auto& [symbol, range] : ranges_) facts_.declare(symbol, range);
  }

  Graph make() {
    std::size_t calls = 0;
    for (int tries = 0; tries < 2000 && calls < kCalls; ++tries) {
      Node* made = draw();
      if (!made) continue;
      if (accepted(*made)) {
        ++calls;
        if (values_.at(made).tensor()) tensors_.push_back(made);
      } else {
        graph_.erase_node(*made);
      }
    }
    graph_.output(Argument::list(std::vector<Argument>(tensors_.begin(), tensors_.end())));
    return std::move(graph_);
  }

  const std::vector<AbstractValue>& inputs() const { return inputs_; }
  const SizeRanges& ranges() const { return ranges_; }

 private:
  template <typename Number>
  std::size_t below(Number end) {
    return static_cast<std::size_t>(random_() % static_cast<std::uint64_t>(end));
  }

  /// Known, without asking more of sizes, or now and then with.
  bool accepted(const Node& made) {
    const Call call = call_of(made);
    AbstractValue::List arguments;
    const auto value_of_node = [this](const Node& node) { return values_.at(&node); };
    for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
      const Argument* argument = call.argument(i);
      arguments.push_back(argument ? AbstractValue::of(*argument, value_of_node) : AbstractValue::literal(Argument()));
    }
    SizeFacts facts = facts_;
    InferredCall said = infer(call.schema(), arguments, facts, fresh_);
    if (said.outcome != InferredCall::Outcome::known || said.results.size() != 1) return false;
    const AbstractValue& value = said.results[0];
    const bool is_tensor = value.tensor() && value.tensor()->sizes.size() <= 4;
    if (!(is_tensor || value.number()) || said.conditions.size() > below(8) / 7) return false;
    facts_ = std::move(facts);
    values_.emplace(&made, value);
    return true;
  }

  Node& any() {
    const std::vector<Node*> placeholders = graph_.placeholders();
    const std::size_t at = below(tensors_.size() + 2);
    return at < 2 ? *placeholders[at] : *tensors_[at - 2];
  }
  std::int64_t dim() { return static_cast<std::int64_t>(below(6)) - 3; }
  Argument number(std::int64_t least, std::int64_t most) {
    return Argument(least + static_cast<std::int64_t>(below(most - least + 1)));
  }
  Argument pair(std::int64_t least, std::int64_t most) {
    return Argument::list({number(least, most), number(least, most)});
  }

  Node* draw() {
    const auto call = [&](const char* target, std::vector<Argument> args) {
      return &graph_.call_function(std::string("aten::") + target, std::move(args));
    };
    Node& x = any();
    switch (below(44)) {
      case 0: return call("relu", {x});
      case 1: return call("neg", {x});
      case 2: return call("exp", {x});
      case 3: return call("add.Tensor", {x, any()});
      case 4: return call("mul.Tensor", {x, any()});
      case 5: return call("sub.Scalar", {x, 2});
      case 6: return call("div.Tensor", {x, any()});
      case 7: return call("eq.Tensor", {x, any()});
      case 8: return call("matmul", {x, any()});
      case 9: return call("mm", {x, any()});
      case 10: return call("bmm", {x, any()});
      case 11: return call("transpose.int", {x, dim(), dim()});
      case 12: return call("permute", {x, Argument::list({1, 0})});
      case 13: return call("permute", {x, Argument::list({2, 0, 1})});
      case 14: return call("reshape", {x, Argument::list({-1})});
      case 15: return call("reshape", {x, Argument::list({-1, number(1, 3)})});
      case 16: return call("flatten.using_ints", {x, dim(), dim()});
      case 17: return call("unsqueeze", {x, dim()});
      case 18: return call("squeeze.dim", {x, dim()});
      case 19: return call("cat", {Argument::list({x, any()}), dim()});
      case 20: return call("stack", {Argument::list({x, any()}), dim()});
      case 21: return call("slice.Tensor", {x, dim(), number(0, 2), number(-2, 9), number(1, 3)});
      case 22: return call("select.int", {x, dim(), number(-1, 1)});
      case 23: return call("sum.dim_IntList", {x, Argument::list({dim()}), below(2) == 1});
      case 24: return call("mean.dim", {x, Argument::list({dim()}), below(2) == 1});
      case 25: return call("softmax.int", {x, dim()});
      case 26: return call("cumsum", {x, dim()});
      case 27: return call("argmax", {x, dim(), below(2) == 1});
      case 28: return call("constant_pad_nd", {x, pair(-1, 2), 0});
      case 29: return call("repeat", {x, Argument::list({2, 1, number(0, 3)})});
      case 30: return call("roll", {x, Argument::list({1}), Argument::list({dim()})});
      case 31: return call("flip", {x, Argument::list({dim()})});
      case 32: return call("triu", {x, number(-1, 1)});
      case 33: return call("diagonal", {x, number(-1, 1), 0, 1});
      case 34: return call("where.self", {x, any(), any()});
      case 35: return call("max_pool2d", {x, pair(1, 3), pair(1, 2), pair(0, 1)});
      case 36: return call("avg_pool2d", {x, pair(1, 3), pair(1, 2)});
      case 37: return call("upsample_nearest2d.vec", {x, Argument(), Argument::list({2.0, 2.0})});
      case 38: return call("to.dtype", {x, below(2) ? DType::float32 : DType::int64});
      case 39: return call("linear", {x, any()});
      case 40: return call("conv2d", {x, any(), Argument(), pair(1, 2), pair(0, 1)});
      case 41: return call("expand_as", {x, any()});
      case 42: return call("contiguous", {x});
      default: return call("unfold", {x, dim(), number(1, 3), number(1, 2)});
    }
  }

  std::mt19937_64 random_;
  SizeRanges ranges_;
  Graph graph_;
  std::vector<AbstractValue> inputs_;
  std::vector<Node*> tensors_;
  std::map<const Node*, AbstractValue> values_;  // asked only, not gone through
  SizeFacts facts_;
  FreshSymbols fresh_;
};

using Sizes = std::map<std::string, std::int64_t>;

/// What a call takes: what is said, and what it is.
std::string operands_text(const Node& node, const SymbolicShapes& said, const Shapes& shapes) {
  std::string text;
  for (const Node* input : node.all_input_nodes()) {
    text += "  of %" + input->name() + ": " + (said[*input].tensor() ? said[*input].tensor()->str() : "a number");
    if (said[*input].tensor() && said[*input].tensor()->strides) {
      for (const SizeExpr& stride : *said[*input].tensor()->strides) text += " " + stride.str();
    }
    text += ", " + (shapes[*input].tensor() ? to_string(*shapes[*input].tensor()) : "a number");
    if (shapes[*input].tensor()) {
      for (const std::int64_t stride : shapes[*input].tensor()->strides) text += " " + std::to_string(stride);
    }
    text += "\n";
  }
  return text;
}

/// What is asked, where, and the sizes.
std::string asked_text(const Graph& graph, const SymbolicShapes& said, const Sizes& at) {
  std::string text;
  for (const auto& [symbol, value] : at) text += symbol + " = " + std::to_string(value) + ", ";
  for (const Node* input : graph.placeholders()) text += "\n%" + input->name() + ": " + said[*input].tensor()->str();
  for (const SymbolicShapes::Asked& each : said.conditions())
    text += "\n%" + each.node->name() + ": " + each.condition.str();
  return text + "\n";
}

std::int64_t value_of(const SizeExpr& expr, const Sizes& at) { return expr.evaluate(at).value_or(-1); }

/// Nothing is known of a condition on a size that broadcasting leaves open.
Answer holds(const SizeCondition& condition, const Sizes& at) {
  const auto value = [&](const SizeExpr& symbol) {
    const auto known = at.find(symbol.name());
    return known == at.end() ? symbol : SizeExpr(known->second);
  };
  return SizeFacts().holds({condition.relation, condition.left.substituted(value), condition.right.substituted(value)});
}

/// In sizes of 1, or of nothing.
bool lies_otherwise(const TensorType& said, const TensorInfo& made, const Sizes& at) {
  if (!said.strides) return false;
  for (std::size_t i = 0; i < made.sizes.size(); ++i) {
    if ((*said.strides)[i].evaluate(at) != made.strides[i]) return true;
  }
  return false;
}
bool is_point(const TensorInfo& image) { return image.sizes.back() == 1 && image.sizes.end()[-2] == 1; }

/// Empty when what is said is what LibTorch makes.
std::string differs(const TensorType& said, const TensorInfo& made, const Sizes& at, bool counts_strides) {
  std::string text;
  if (said.dtype != made.dtype || said.sizes.size() != made.sizes.size()) return "another type or rank";
  for (std::size_t i = 0; i < made.sizes.size(); ++i) {
    if (value_of(said.sizes[i], at) != made.sizes[i]) text += "size " + std::to_string(i) + " ";
    // A stride may be of a size that broadcasting leaves open, and that is no longer there.
    const std::optional<std::int64_t> stride =
        said.strides && counts_strides ? (*said.strides)[i].evaluate(at) : std::nullopt;
    if (stride && made.sizes[i] > 1 && made.numel() > 0 && stride != made.strides[i])
      text += "stride " + std::to_string(i) + ", " + (*said.strides)[i].str() + " for " +
              std::to_string(made.strides[i]) + " ";
  }
  return text;
}

TEST(SymbolicPrograms, AreWhatLibTorchMakesOfThem) {
  const char* asked = std::getenv("FXGRAPH_SYMBOLIC_PROGRAMS");
  const std::uint64_t programs = asked ? std::strtoull(asked, nullptr, 10) : testing::by_night(150);
  const at::NoGradGuard no_grad;
  const char* begins = std::getenv("FXGRAPH_SYMBOLIC_SEED");
  const std::uint64_t first = begins ? std::strtoull(begins, nullptr, 10) : 1;
  std::size_t runs = 0, refused = 0, with_conditions = 0;
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    Drawer drawer(seed);
    GraphModule module(drawer.make());
    const Graph& graph = module.graph();
    const SymbolicShapes said = propagate_shapes(module, drawer.inputs(), drawer.ranges());
    ASSERT_TRUE(said.unknown().empty()) << "seed " << seed << " " << said.unknown().front().why;
    with_conditions += !said.conditions().empty();
    std::mt19937_64 random(seed);
    for (int i = 0; i < kSizes; ++i) {
      Sizes at;
      const std::int64_t spread = i % 4 == 0 ? 2 : 7;
      for (const std::string& symbol : kSymbols)
        at[symbol] = *drawer.ranges().at(symbol).min + static_cast<std::int64_t>(random() % spread);
      // A size that broadcasting leaves open has no value here.
      const auto is_open = [&](const SizeExpr& size) { return !size.evaluate(at); };
      std::vector<c10::IValue> inputs;
      std::int64_t most = 0;
      for (const AbstractValue& input : drawer.inputs()) {
        std::vector<std::int64_t> sizes;
        for (const SizeExpr& size : input.tensor()->sizes) sizes.push_back(value_of(size, at));
        inputs.emplace_back(at::ones(sizes, to_scalar_type(input.tensor()->dtype)));
      }
      for (const Node& node : graph.nodes()) {
        if (const TensorType* type = said[node].tensor(); type && !is_open(type->numel()))
          most = std::max(most, value_of(type->numel(), at));
      }
      if (most > kMostElements) continue;
      const auto is = [&](Answer answer) {
        return [&, answer](const SymbolicShapes::Asked& each) { return holds(each.condition, at) == answer; };
      };
      const auto broken = std::ranges::find_if(said.conditions(), is(Answer::no));
      try {
        const Shapes shapes = propagate_shapes(module, inputs);
        ++runs;
        ASSERT_TRUE(broken == said.conditions().end())
            << "seed " << seed << ": LibTorch takes what " << *broken->node
            << " is said to refuse: " << broken->condition << print_graph(graph);
        NodeMap<char> is_apart(graph, false);
        for (const Node& node : graph.nodes()) {
          const TensorInfo* made = shapes[node].tensor();
          const TensorType* type = said[node].tensor();
          const bool has_window = node.is_call("aten::conv2d") || node.is_call("aten::upsample_nearest2d.vec");
          is_apart[node] = has_window && is_point(*made);
          for (const Node* input : node.all_input_nodes())
            is_apart[node] |= is_apart[*input] || (has_window && is_point(*shapes[*input].tensor()));
          if (!type || node.is(Op::output) || std::ranges::any_of(type->sizes, is_open)) continue;
          const std::string why = differs(*type, *made, at, !is_apart[node]);
          ASSERT_EQ(why, "") << "seed " << seed << ": " << node << ": " << type->str() << " and LibTorch "
                             << to_string(*made) << "\n"
                             << operands_text(node, said, shapes) << asked_text(graph, said, at) << print_graph(graph);
          is_apart[node] |= lies_otherwise(*type, *made, at);
        }
      } catch (const std::exception& error) {
        ++refused;
        ASSERT_TRUE(broken != said.conditions().end() || !said.unsaid().empty() ||
                    std::ranges::any_of(said.conditions(), is(Answer::unknown)))
            << "seed " << seed << ": LibTorch refuses what nothing is said of: " << error.what() << "\n"
            << asked_text(graph, said, at) << print_graph(graph);
      }
    }
  }
  std::cout << programs << " programs, " << with_conditions << " ask something of sizes; " << runs << " runs, and "
            << refused << " refused\n";
  EXPECT_GT(runs, programs * 3);
}

}  // namespace fx::symbolic_programs_test
