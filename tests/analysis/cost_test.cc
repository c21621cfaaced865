#include <fxgraph/analysis/cost.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random_graph.h"

namespace fx::cost_test {

using ::testing::ElementsAre;

TensorInfo tensor(std::vector<std::int64_t> sizes) { return {.dtype = DType::float32, .sizes = std::move(sizes)}; }

/// A graph under construction with its shapes.
struct Model {
  Graph graph;
  Shapes shapes;
  Node& shaped(Node& node, std::vector<std::int64_t> sizes) {
    shapes[node] = tensor(std::move(sizes));
    return node;
  }
};

TEST(Cost, Convolution) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {1, 3, 224, 224});
  Node& w = m.shaped(m.graph.get_attr("conv.weight"), {64, 3, 7, 7});
  Node& b = m.shaped(m.graph.get_attr("conv.bias"), {64});
  Node& y = m.shaped(m.graph.call_function("aten::conv2d", {x, w, b, 2, 3}), {1, 64, 112, 112});
  const Cost cost(m.graph, m.shapes);
  const double out = 64.0 * 112 * 112;
  EXPECT_EQ(cost.of(y).macs, out * 3 * 49);  // 118 013 952: the first layer of every resnet
  EXPECT_EQ(cost.of(y).flops, out * (2 * 3 * 49 + 1));
  EXPECT_EQ(cost.of(y).parameter_bytes, 4 * (64 * 3 * 49 + 64));
  EXPECT_EQ(cost.of(y).bytes_read, 4 * (3 * 224 * 224 + 64 * 3 * 49 + 64));
  EXPECT_EQ(cost.of(y).bytes_written, 4 * 64 * 112 * 112);
  EXPECT_TRUE(cost.of(y).known);
  EXPECT_EQ(cost.total().macs, cost.of(y).macs);
}

TEST(Cost, GroupedAndTransposedConvolution) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {1, 32, 8, 8});
  Node& depthwise = m.shaped(m.graph.get_attr("dw"), {32, 1, 3, 3});
  Node& up = m.shaped(m.graph.get_attr("up"), {32, 16, 2, 2});
  Node& a = m.shaped(m.graph.call_function("aten::conv2d", {x, depthwise, nullptr, 1, 1, 1, 32}), {1, 32, 8, 8});
  Node& b = m.shaped(m.graph.call_function("aten::conv_transpose2d.input", {x, up, nullptr, 2}), {1, 16, 16, 16});
  const Cost cost(m.graph, m.shapes);
  EXPECT_EQ(cost.of(a).macs, 32.0 * 64 * 9);
  EXPECT_EQ(cost.of(b).macs, 32.0 * 64 * 16 * 4);
}

TEST(Cost, MatrixProductsAndAttention) {
  Model m;
  Node& a = m.shaped(m.graph.placeholder("a"), {8, 10, 64});
  Node& b = m.shaped(m.graph.placeholder("b"), {8, 64, 20});
  Node& w = m.shaped(m.graph.get_attr("w"), {32, 64});
  Node& bias = m.shaped(m.graph.get_attr("b"), {32});
  Node& product = m.shaped(m.graph.call_function("aten::bmm", {a, b}), {8, 10, 20});
  Node& layer = m.shaped(m.graph.call_function("aten::linear", {a, w, bias}), {8, 10, 32});
  Node& q = m.shaped(m.graph.placeholder("q"), {2, 4, 16, 8});
  Node& attended = m.shaped(m.graph.call_function("aten::scaled_dot_product_attention", {q, q, q}), {2, 4, 16, 8});
  const Cost cost(m.graph, m.shapes);
  EXPECT_EQ(cost.of(product).macs, 8.0 * 10 * 20 * 64);
  EXPECT_EQ(cost.of(layer).macs, 80.0 * 32 * 64);
  EXPECT_EQ(cost.of(layer).flops, 80.0 * 32 * 129);
  EXPECT_EQ(cost.of(attended).macs, 2.0 * 2 * 4 * 16 * 16 * 8);
  EXPECT_EQ(cost.of(attended).bytes_read, 4 * 2 * 4 * 16 * 8);  // one tensor, read once
}

// Packed once, and run as what it computes.
TEST(Cost, KernelsWithPackedWeights) {
  struct Case {
    const char *operation, *pack, *run;
    std::vector<std::int64_t> x, weight, bias, result;
  };
  const std::vector<Case> cases = {
      {"aten::conv2d",
       "mkldnn_prepacked::conv2d_prepack",
       "mkldnn_prepacked::conv2d_run",
       {2, 8, 9, 9},
       {16, 8, 3, 3},
       {16},
       {2, 16, 7, 7}},
      {"aten::conv2d",
       "mkldnn_prepacked::conv2d_prepack",
       "mkldnn_prepacked::conv2d_run",
       {2, 8, 9, 9},
       {8, 1, 3, 3},
       {},
       {2, 8, 7, 7}},
      {"aten::conv2d",
       "prepacked::conv2d_clamp_prepack",
       "prepacked::conv2d_clamp_run",
       {2, 8, 9, 9},
       {16, 8, 3, 3},
       {16},
       {2, 16, 7, 7}},
      {"aten::conv_transpose2d",
       "prepacked::conv2d_transpose_clamp_prepack",
       "prepacked::conv2d_transpose_clamp_run",
       {2, 8, 9, 9},
       {8, 16, 3, 3},
       {16},
       {2, 16, 11, 11}},
      {"aten::linear",
       "prepacked::linear_clamp_prepack",
       "prepacked::linear_clamp_run",
       {5, 8},
       {16, 8},
       {16},
       {5, 16}},
  };
  for (const Case& c : cases) {
    Model m;
    Node& x = m.shaped(m.graph.placeholder("x"), c.x);
    Node& weight = m.shaped(m.graph.get_attr("net.weight"), c.weight);
    const Argument bias = c.bias.empty() ? Argument() : Argument(m.shaped(m.graph.get_attr("net.bias"), c.bias));
    Node& plain = m.shaped(m.graph.call_function(c.operation, {x, weight, bias}), c.result);
    Node& packed = m.graph.call_function(c.pack, {weight, bias});
    Node& run = m.shaped(m.graph.call_function(c.run, {x, packed}), c.result);
    const Cost cost(m.graph, m.shapes);
    EXPECT_GT(cost.of(run).macs, 0) << c.run;
    EXPECT_EQ(cost.of(run).macs, cost.of(plain).macs) << c.run;
    EXPECT_EQ(cost.of(run).bytes(), cost.of(plain).bytes()) << c.run;
    EXPECT_EQ(cost.of(run).parameter_bytes, cost.of(plain).parameter_bytes) << c.run;
    EXPECT_EQ(cost.of(packed).bytes(), 0) << c.run;
    EXPECT_EQ(cost.num_unknown(), 0u) << c.run;
    EXPECT_EQ(cost.total().parameter_bytes, cost.of(plain).parameter_bytes) << "counted once: " << c.run;
    // Packed elsewhere, which an import may leave: not known.
    Model other;
    Node& y = other.shaped(other.graph.placeholder("x"), c.x);
    Node& unknown = other.shaped(other.graph.call_function(c.run, {y, other.graph.get_attr("packed")}), c.result);
    Node& plainly =
        other.shaped(other.graph.call_function(c.run, {y, other.graph.call_function("aten::relu", {y})}), c.result);
    Node& method = other.shaped(other.graph.call_method(c.run, {y, other.graph.call_function(c.pack, {y})}), c.result);
    const Cost others(other.graph, other.shapes);
    for (const Node* node : {&unknown, &plainly, &method}) EXPECT_FALSE(others.of(*node).known) << c.run;
  }
}

// Too few tensors, or of ranks that such an operator does not take.
TEST(Cost, OfWhatCannotBeIsNotKnown) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {2, 4, 8});
  Node& scalar = m.shaped(m.graph.placeholder("scalar"), {});
  Node& flag = m.graph.placeholder("flag");
  Node& w = m.shaped(m.graph.get_attr("w"), {4, 4, 3});
  const Argument none, states = Argument::list({x, x}), pair = Argument::list({1});
  for (Node* call :
       {&m.graph.call_function("aten::linear", {x, flag}), &m.graph.call_function("aten::matmul", {x}),
        &m.graph.call_function("aten::matmul", {scalar, x}), &m.graph.call_function("aten::add", {"x"}),
        &m.graph.call_function("aten::scaled_dot_product_attention", {x, x, scalar}),
        &m.graph.call_function("aten::scaled_dot_product_attention", {x, x, x}),
        &m.graph.call_function("aten::lstm.input", {x, states, Argument::list({}), true, 1, 0.0, false, false, false}),
        &m.graph.call_function("aten::einsum", {"ab...c,bc", Argument::list({scalar, x})})}) {
    m.shaped(*call, {2, 4, 8});
    EXPECT_EQ(Cost(m.graph, m.shapes).of(*call).known, call->args().size() == 3 && call->arg(2) == Argument(x))
        << *call;
  }
  Node& either =
      m.shaped(m.graph.call_function("aten::convolution", {x, w, none, pair, pair, pair, flag, pair, 1}), {2, 4, 8});
  EXPECT_EQ(Cost(m.graph, m.shapes).of(either).macs, 64.0 * 12) << "transposed or not: it is not told";
}

// A storage that several share counts once, as far as it is known.
TEST(Cost, ParametersOfOneStorage) {
  struct Case {
    std::int64_t storage, whole, expected;
  };
  for (const Case& c : {Case{-1, -1, 128}, Case{3, -1, 128}, Case{0, -1, 128}, Case{0, 64, 64}, Case{3, 64, 64},
                        Case{3, 100, 100}, Case{3, 1000, 128}, Case{3, 0, 0}, Case{-1, 64, 128}}) {
    Model m;
    Node& x = m.shaped(m.graph.placeholder("x"), {4, 4});
    for (const char* path : {"net.a", "net.b"}) {
      TensorInfo& weight = m.shapes[m.graph.get_attr(path)].tensors.emplace_back(tensor({4, 4}));
      weight.storage = c.storage;
      weight.storage_bytes = c.whole;
    }
    m.graph.output(x);
    EXPECT_EQ(Cost(m.graph, m.shapes).modules()[0].cost.parameter_bytes, c.expected) << c.storage << " " << c.whole;
  }
}

TEST(Cost, Einsum) {
  Model m;
  Node& a = m.shaped(m.graph.placeholder("a"), {8, 10, 64});
  Node& b = m.shaped(m.graph.placeholder("b"), {8, 64, 20});
  Node& c = m.shaped(m.graph.placeholder("c"), {20, 5});
  const auto einsum = [&](const char* equation, std::vector<Argument> tensors,
                          std::vector<std::int64_t> sizes) -> Node& {
    return m.shaped(m.graph.call_function("aten::einsum", {equation, Argument::list(tensors)}), std::move(sizes));
  };
  Node& batched = einsum("bij,bjk->bik", {a, b}, {8, 10, 20});
  Node& dots = einsum("...ij, ...jk -> ...ik", {a, b}, {8, 10, 20});
  Node& chain = einsum("bij,bjk,kl->bil", {a, b, c}, {8, 10, 5});
  Node& implicit = einsum("bij,bjk", {a, b}, {10, 20});
  Node& implicit_chain = einsum("bij,bjk,kl", {a, b, c}, {10, 5});
  Node& sum = einsum("bij->b", {a}, {8});
  Node& wrong = einsum("ij,jk->ik", {a, b}, {10, 20});
  const Cost cost(m.graph, m.shapes);
  EXPECT_EQ(cost.of(batched).macs, 8.0 * 10 * 64 * 20);
  EXPECT_EQ(cost.of(dots).macs, cost.of(batched).macs);
  EXPECT_EQ(cost.of(chain).macs, 8.0 * 10 * 64 * 20 + 8.0 * 10 * 20 * 5);
  EXPECT_EQ(cost.of(implicit).macs, cost.of(batched).macs);
  EXPECT_EQ(cost.of(implicit_chain).macs, 8.0 * 10 * 64 * 20 + 10 * 20 * 5) << "i is kept until the end";
  EXPECT_EQ(cost.of(sum).macs, 0);
  EXPECT_EQ(cost.of(sum).flops, 8.0 * 10 * 64);
  EXPECT_FALSE(cost.of(wrong).known) << "the tensors have three dimensions";
}

TEST(Cost, RecurrentLayers) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {5, 2, 8});  // 5 steps of 2 sequences
  Node& h = m.shaped(m.graph.placeholder("h"), {1, 2, 16});
  Node& c = m.shaped(m.graph.placeholder("c"), {1, 2, 16});
  const auto weight = [&](const char* name, std::vector<std::int64_t> sizes) -> Node& {
    return m.shaped(m.graph.get_attr(name), std::move(sizes));
  };
  Node &wi = weight("wi", {64, 8}), &wh = weight("wh", {64, 16}), &bi = weight("bi", {64}), &bh = weight("bh", {64});
  Node& lstm =
      m.shaped(m.graph.call_function("aten::lstm.input", {x, Argument::list({h, c}), Argument::list({wi, wh, bi, bh}),
                                                          true, 1, 0.0, false, false, false}),
               {5, 2, 16});
  Node &ui = weight("ui", {48, 8}), &uh = weight("uh", {48, 16});
  Node& gru = m.shaped(
      m.graph.call_function("aten::gru.input", {x, h, Argument::list({ui, uh}), false, 1, 0.0, false, false, false}),
      {5, 2, 16});
  Node& x1 = m.shaped(m.graph.placeholder("x1"), {2, 8});
  Node& h1 = m.shaped(m.graph.placeholder("h1"), {2, 16});
  Node& cell = m.shaped(m.graph.call_function("aten::gru_cell", {x1, h1, ui, uh}), {2, 16});
  Node& module = m.shaped(m.graph.call_module("rnn", {x}), {5, 2, 16});
  const Cost cost(m.graph, m.shapes, {.cost = [](const Node&) {
                    return ModuleCall{"aten::lstm", {tensor({64, 8}), tensor({64, 16}), tensor({64}), tensor({64})}};
                  }});
  EXPECT_EQ(cost.of(lstm).macs, 10.0 * 64 * (8 + 16));
  EXPECT_EQ(cost.of(lstm).flops, 2 * cost.of(lstm).macs + 2 * 10.0 * 128);
  EXPECT_EQ(cost.of(gru).macs, 10.0 * 48 * (8 + 16));
  EXPECT_EQ(cost.of(cell).macs, 2.0 * 48 * (8 + 16));
  EXPECT_EQ(cost.of(module).macs, cost.of(lstm).macs);
  EXPECT_EQ(cost.num_unknown(), 0u);
}

TEST(Cost, MultiHeadAttention) {
  Model m;
  Node& q = m.shaped(m.graph.placeholder("q"), {7, 2, 16});  // 7 queries, 5 keys, 2 sequences
  Node& k = m.shaped(m.graph.placeholder("k"), {5, 2, 16});
  Node& attention = m.graph.call_module("attention", {q, k, k});
  m.shapes[attention] = ValueInfo(std::vector<TensorInfo>{tensor({7, 2, 16}), tensor({2, 7, 5})});
  Node& without_weights = m.shaped(m.graph.call_module("attention", {q, k, k}), {7, 2, 16});
  const Cost cost(m.graph, m.shapes, {.cost = [](const Node&) {
                    return ModuleCall{"torch.nn.functional.multi_head_attention_forward",
                                      {tensor({48, 16}), tensor({48}), tensor({16, 16}), tensor({16})}};
                  }});
  const double projections = 2.0 * (2 * 7 + 2 * 5) * 16 * 16, pairs = 2.0 * 7 * 5;
  EXPECT_EQ(cost.of(attention).macs, projections + 2 * pairs * 16);
  EXPECT_EQ(cost.of(without_weights).macs, cost.of(attention).macs);
}

TEST(Cost, ElementwiseReductionsPoolingAndViews) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {1, 4, 8, 8});
  Node& r = m.shaped(m.graph.call_function("aten::relu", {x}), {1, 4, 8, 8});
  Node& p = m.shaped(m.graph.call_function("aten::max_pool2d", {r, Argument::list({3, 3}), 2, 1}), {1, 4, 4, 4});
  Node& v = m.shaped(m.graph.call_function("aten::view", {p, Argument::list({4, 16})}), {4, 16});
  Node& s = m.shaped(m.graph.call_function("aten::sum.dim_IntList", {v, Argument::list({1})}), {4});
  Node& n = m.graph.call_function("my_library::mystery", {s});
  const Cost cost(m.graph, m.shapes);
  EXPECT_EQ(cost.of(r).flops, 256);
  EXPECT_EQ(cost.of(p).flops, 64 * 9);
  EXPECT_EQ(cost.of(v).flops, 0);
  EXPECT_EQ(cost.of(v).bytes(), 0);
  EXPECT_EQ(cost.of(s).flops, 64);
  EXPECT_FALSE(cost.of(n).known);
  EXPECT_EQ(cost.num_unknown(), 1u);
  EXPECT_DOUBLE_EQ(cost.of(r).intensity(), 256.0 / 2048);
}

TEST(Cost, LookUpsReadRowsOnly) {
  Model m;
  Node& table = m.shaped(m.graph.get_attr("embedding.weight"), {50000, 64});
  Node& ids = m.shaped(m.graph.placeholder("ids"), {2, 8});
  m.shapes[ids].tensors[0].dtype = DType::int64;
  Node& rows = m.shaped(m.graph.call_function("aten::embedding", {table, ids}), {2, 8, 64});
  const Cost cost(m.graph, m.shapes);
  EXPECT_EQ(cost.of(rows).bytes_read, 4 * 16 * 64 + 8 * 16);
}

TEST(Cost, Modules) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {1, 8});
  Node& a = m.shaped(m.graph.call_module("block.fc1", {x}), {1, 16});
  Node& b = m.shaped(m.graph.call_function("aten::relu", {a}), {1, 16});
  b.meta().set(meta_key::kModuleStack, std::string("block"));
  Node& c = m.shaped(m.graph.call_module("head", {b}), {1, 4});
  Node& again = m.shaped(m.graph.call_module("head", {b}), {1, 4});
  m.graph.output(Argument::tuple({c, again}));
  const auto modules = [](const Node& call) -> std::optional<ModuleCall> {
    if (call.target() == "head") return ModuleCall{"aten::linear", {tensor({4, 16}), tensor({4})}};
    return ModuleCall{"aten::linear", {tensor({16, 8}), tensor({16})}};
  };
  const Cost cost(m.graph, m.shapes, {.cost = modules});
  std::vector<std::string> paths;
  for (const ModuleCost& module : cost.modules()) paths.push_back(module.path);
  EXPECT_THAT(paths, ElementsAre("", "block", "block.fc1", "head"));
  EXPECT_EQ(cost.modules()[1].cost.macs, 128);
  EXPECT_EQ(cost.modules()[1].nodes, 2u);
  EXPECT_EQ(cost.modules()[2].depth, 2);
  EXPECT_EQ(cost.modules()[3].cost.macs, 2 * 64);
  EXPECT_EQ(cost.modules()[3].cost.parameter_bytes, 4 * 68);  // one module, called twice
  EXPECT_EQ(cost.total().parameter_bytes, 4 * (68 + 144));
  EXPECT_EQ(cost.total().macs, 256);
  EXPECT_EQ(Cost(m.graph, m.shapes).num_unknown(), 3u);
}

TEST(Cost, AParameterIsOfTheModulesAboveItOnce) {
  Model m;
  Node& x = m.shaped(m.graph.placeholder("x"), {1, 8});
  Node& w = m.shaped(m.graph.get_attr("block.fc.weight"), {8, 8});
  Node& again = m.shaped(m.graph.get_attr("block.fc.weight"), {8, 8});
  Node& b = m.shaped(m.graph.get_attr("block.scale"), {8});
  Node& a = m.shaped(m.graph.call_function("aten::linear", {x, w, b}), {1, 8});
  Node& c = m.shaped(m.graph.call_function("aten::linear", {a, again}), {1, 8});
  m.graph.output(c);
  const Cost cost(m.graph, m.shapes);
  std::vector<std::pair<std::string, double>> bytes;
  for (const ModuleCost& module : cost.modules()) bytes.emplace_back(module.path, module.cost.parameter_bytes);
  EXPECT_THAT(bytes,
              ElementsAre(std::pair("", 4.0 * 72), std::pair("block", 4.0 * 72), std::pair("block.fc", 4.0 * 64)));
}

TEST(Cost, ParametersOfOneStorageCountAtMostAsThat) {
  for (const std::int64_t storage : {-1, 0, 1}) {
    Model m;
    Node& a = m.shaped(m.graph.get_attr("a.weight"), {8});
    Node& b = m.shaped(m.graph.get_attr("b.weight"), {8});
    for (const Node* node : {&a, &b}) {
      m.shapes[*node].tensors[0].storage = storage;
      m.shapes[*node].tensors[0].storage_bytes = 32;
    }
    m.graph.output(m.shaped(m.graph.call_function("aten::add.Tensor", {a, b}), {8}));
    EXPECT_EQ(Cost(m.graph, m.shapes).modules()[0].cost.parameter_bytes, storage < 0 ? 64 : 32) << storage;
  }
}

TEST(Cost, Roofline) {
  const Machine machine{"m", 1e9, 1e8};
  NodeCost cost;
  cost.flops = 1000;
  cost.bytes_read = 1000;
  EXPECT_DOUBLE_EQ(roofline_seconds(cost, machine), 1e-5);
  EXPECT_TRUE(is_memory_bound(cost, machine));
  cost.flops = 1e6;
  EXPECT_DOUBLE_EQ(roofline_seconds(cost, machine), 1e-3);
  EXPECT_FALSE(is_memory_bound(cost, machine));
}

TEST(Cost, MillionNodeGraphs) {
  for (const Graph& graph : {testing::chain(333'333), testing::fan(1'000'000)}) {
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = tensor({2});
    EXPECT_GE(Cost(graph, shapes).total().flops, 1'999'998);
  }
}

}  // namespace fx::cost_test
