#include "tests/support/workloads.h"

#include <array>
#include <cstddef>

#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::testing {

namespace {

// What stands in an operator's place in a chain is what the next one stands on.
constexpr std::array<const char*, 3> kChain = {"aten::add.Tensor", "aten::relu", "aten::mul.Tensor"};

// About the shares that operators and modules have in the ResNet, DenseNet, GoogLeNet and transformer of tests/corpus.
const std::vector<OperatorForm>& model_vocabulary() {
  static const std::vector<OperatorForm> forms = [] {
    struct Share {
      OperatorForm form;
      int percent;
    };
    const Share shares[] = {
        {{Op::call_module, "features.conv", "t"}, 24},
        {{Op::call_module, "features.norm", "t"}, 23},
        {{Op::call_function, "aten::relu"}, 24},
        {{Op::call_function, "aten::cat", "Ti"}, 8},
        {{Op::call_function, "aten::add.Tensor", "tt"}, 6},
        {{Op::call_function, "aten::linear", "tto"}, 4},
        {{Op::call_method, "view", "tii"}, 3},
        {{Op::call_function, "aten::transpose.int", "t01"}, 3},
        {{Op::call_function, "aten::matmul", "tt"}, 2},
        {{Op::call_function, "aten::layer_norm", "tI"}, 2},
        {{Op::call_function, "aten::softmax.int", "ti", "dtype:d"}, 1},
    };
    std::vector<OperatorForm> made;
    for (const Share& share : shares) made.insert(made.end(), static_cast<std::size_t>(share.percent), share.form);
    return made;
  }();
  return forms;
}

Graph nest(std::size_t count, Symbol target, ArgumentSpan rest) {
  Graph graph;
  Node* t = &graph.placeholder("x");
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Argument> args = {*t};
    args.insert(args.end(), rest.begin(), rest.end());
    t = &graph.call_function(target, args);
  }
  graph.output(*t);
  return graph;
}

}  // namespace

Graph near_misses(std::size_t blocks) {
  Graph graph = chain(blocks);
  for (Node* add : graph.find_nodes(Op::call_function, "aten::add.Tensor")) add->update_kwarg("alpha", 2);
  return graph;
}

Graph nested_transposes(std::size_t count) { return nest(count, "aten::transpose.int", {0, 1}); }
Graph nested_relus(std::size_t count) { return nest(count, "aten::relu", {}); }

Graph model_mix(std::size_t nodes) {
  return random_graph(7, {.nodes = nodes, .shape = Shape::ladder, .vocabulary = &model_vocabulary(), .all_live = true});
}

Graph corpus_graph(const std::string& name) { return load_graph_text("tests/corpus/" + name + ".fx"); }

Graph with_dead_calls(const Graph& graph, std::size_t& dead) {
  Graph copy = graph.clone();
  std::vector<Node*> calls;
  for (Node& node : copy.nodes()) {
    if (node.is(Op::call_function)) calls.push_back(&node);
  }
  dead = 0;
  for (std::size_t i = 1; i < calls.size(); i += 3, ++dead) {
    const auto scope = copy.inserting_after(*calls[i]);
    copy.call_function("aten::neg", {calls[i]});
  }
  return copy;
}

Graph with_twin_relus(const Graph& graph, std::size_t& twins) {
  Graph copy = graph.clone();
  const std::vector<Node*> relus = copy.find_nodes(Op::call_function, "aten::relu");
  for (Node* relu : relus) {
    const auto scope = copy.inserting_after(*relu);
    Node& twin = copy.call_function("aten::relu", relu->args());
    for (Node* user : relu->users().to_vector()) {
      if (user != &twin) user->replace_input_with(*relu, twin);
    }
    copy.call_function("aten::sub.Tensor", {relu, twin});
  }
  twins = relus.size();
  return copy;
}

// Every sequence of four operators (of five, for more than the 78 that there are) but those in the chain's own order.
std::vector<std::vector<std::string>> operators_not_in_chain(std::size_t count) {
  const std::size_t kinds = kChain.size(), depth = count <= 78 ? 4 : 5;
  std::vector<std::vector<std::string>> found;
  for (std::size_t code = 0; found.size() < count; ++code) {
    std::vector<std::size_t> at(depth);
    for (std::size_t i = 0, rest = code; i < depth; ++i, rest /= kinds) at[i] = rest % kinds;
    bool in_chain = true;
    for (std::size_t i = 1; i < depth; ++i) in_chain &= at[i] == (at[i - 1] + kinds - 1) % kinds;
    if (in_chain) continue;
    std::vector<std::string>& operators = found.emplace_back();
    for (const std::size_t kind : at) operators.emplace_back(kChain[kind]);
  }
  return found;
}

std::vector<std::string> patterns_not_in_chain(std::size_t count) {
  std::vector<std::string> patterns;
  for (const std::vector<std::string>& operators : operators_not_in_chain(count)) {
    std::string text = "x";
    for (std::size_t i = operators.size(); i-- > 0;) {
      const bool unary = operators[i] == "aten::relu";
      text = operators[i] + "(" + text + (unary ? ")" : ", y" + std::to_string(i) + ")");
    }
    patterns.push_back(text);
  }
  return patterns;
}

}  // namespace fx::testing
