// What the analyses find on random graphs: on record. Oracles say what is right of most of it; of estimates, findings
// and their reasons there is none.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/analysis/dead_code.h>
#include <fxgraph/analysis/effects.h>
#include <fxgraph/analysis/legalize.h>
#include <fxgraph/analysis/liveness.h>
#include <fxgraph/analysis/memory_plan.h>
#include <fxgraph/analysis/no_ops.h>
#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/analysis/regions.h>
#include <fxgraph/analysis/schedule.h>
#include <fxgraph/analysis/use_def.h>
#include <fxgraph/ir/subgraph.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/text/operator_counts.h>
#include <fxgraph/text/print.h>
#include "tests/support/any_operators.h"
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/record.h"

namespace fx::recorded_analyses_test {

using testing::Random;
using testing::Recorded;

/// Tensors of all ranks and a few types; some values are several tensors, some none.
Shapes shapes_of(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (random.chance(8)) continue;
    const std::size_t count = random.chance(10) ? 1 + random.below(3) : 1;
    for (std::size_t i = 0; i < count; ++i) {
      TensorInfo tensor;
      tensor.dtype = random.chance(70) ? DType::float32 : random.chance(50) ? DType::int64 : DType::float64;
      for (std::size_t rank = random.below(5); rank > 0; --rank)
        tensor.sizes.push_back(random.between(random.chance(5) ? 0 : 1, 6));
      if (random.chance(5)) tensor.storage_bytes = 4096;
      shapes[node].tensors.push_back(tensor);
    }
  }
  return shapes;
}

const std::vector<testing::OperatorForm>& vocabulary(std::uint64_t seed) {
  static const std::vector<testing::OperatorForm> kAll = [] {
    std::vector<testing::OperatorForm> all = testing::default_vocabulary();
    for (const testing::OperatorForm& form : testing::mutating_vocabulary()) all.push_back(form);
    all.insert(all.end(), {{Op::call_function, "aten::relu_"},
                           {Op::call_function, "aten::t_"},
                           {Op::call_function, "aten::add.Scalar", "t0"},
                           {Op::call_function, "aten::mul.Scalar", "t1"},
                           {Op::call_function, "aten::reshape", "tI"},
                           {Op::call_function, "aten::expand", "tI"},
                           {Op::call_function, "aten::dropout", "tfb"},
                           {Op::call_function, "aten::contiguous"},
                           {Op::call_function, "aten::_assert_async", "t"},
                           {Op::call_function, "operator.getitem", "t0"},
                           {Op::call_function, "operator.getitem", "t1"},
                           {Op::call_function, "mine.f", "tt"}});
    return all;
  }();
  return seed % 2 ? kAll : testing::default_vocabulary();
}

Graph graph_at(std::uint64_t seed) {
  testing::RandomGraphOptions options = testing::random_options(seed, 30);
  options.vocabulary = &vocabulary(seed);
  return testing::random_graph(seed, options);
}

std::string text_of(const std::vector<Node*>& nodes) {
  std::string text;
  for (const Node* node : nodes) text += " " + node->name();
  return text + "\n";
}

TEST(RecordedAnalyses, DeadCode) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Graph graph = graph_at(seed);
    const Shapes shapes = shapes_of(graph, seed);
    EffectsOptions how;
    if (seed % 3 == 0) how.modules.effects = [](const Node&) { return NodeEffects{.writes = true}; };
    how.inputs_may_alias = seed % 5 == 0;
    const Effects effects(graph, how);
    DeadCodeOptions options;
    if (seed % 4 != 0) options.effects = &effects;
    if (seed % 3 != 0) options.shapes = &shapes;
    for (const char* path :
         {"bias", "buffer", "features.0.bias", "features.0.weight", "features.1.weight", "head.weight"})
      options.attributes.push_back({path, 8});
    for (const Node* input : graph.placeholders()) options.attributes.push_back({input->target().str(), 8});
    const DeadCode dead(graph, options);
    std::string found;
    for (const DeadFinding& finding : dead.findings()) found += dead.explain(finding) + "\n";
    for (const Node& node : graph.nodes()) found += dead.why(node) + (dead.is_dead_store(node) ? " store\n" : "\n");
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("dead_code", all);
}

TEST(RecordedAnalyses, Memory) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Graph graph = graph_at(seed);
    const Shapes shapes = shapes_of(graph, seed);
    const Effects effects(graph);
    LivenessOptions options;
    options.count_inputs = seed % 2;
    options.count_attributes = seed % 3 == 0;
    options.alignment = seed % 5 ? 64 : 1;
    if (seed % 4) options.effects = &effects;
    const Liveness live(graph, shapes, options);
    const MemoryPlan plan = plan_memory(live);
    std::ostringstream found;
    found << "peak " << live.peak().bytes << " of " << live.peak_live() << " at " << *live.peak_live_node()
          << " planned " << plan.bytes << " from " << plan.lower_bound << "\n";
    for (std::size_t i = 0; i < live.storages().size(); ++i) {
      const Storage& storage = live.storages()[i];
      found << storage.base->name() << " " << storage.bytes << " " << storage.interval.begin << "-"
            << storage.interval.end << " " << static_cast<int>(storage.kind) << storage.counted << " at "
            << plan.offsets[i] << "\n";
    }
    for (const std::int64_t bytes : live.bytes()) found << bytes << " ";
    if (graph.check().empty()) {
      const Schedule schedule = lower_peak(live, effects);
      found << "\norder " << schedule.peak_before << " " << schedule.peak_after << text_of(schedule.order);
    }
    all.push_back({std::to_string(seed), found.str()});
  }
  testing::expect_as_recorded("memory", all);
}

TEST(RecordedAnalyses, EffectsAndOrder) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Graph graph = graph_at(2 * seed + 1);
    EffectsOptions how;
    if (seed % 3 == 1) how.modules.effects = [](const Node&) { return NodeEffects{.writes = true}; };
    if (seed % 3 == 2) how.modules.effects = [](const Node&) { return NodeEffects{.random = true, .may_alias = true}; };
    if (seed % 4 == 0) how.modules.storage = [](Symbol path) { return path == "bias" ? Symbol("buffer") : path; };
    how.inputs_may_alias = seed % 5 == 0;
    const Effects effects(graph, how);
    const OrderEdges edges = effects.order_edges();
    std::ostringstream found;
    for (const Node& node : graph.nodes()) {
      found << edges.after(node).size() << " " << edges.before(node).size() << " ";
      found << node.name() << (effects.writes(node) ? " writes" : "") << (effects.impure(node) ? " impure" : "")
            << " sets";
      for (const Effects::Set set : effects.sets(node)) found << " " << set << (effects.is_external(set) ? "!" : "");
      if (effects.writes(node)) found << " read by" << text_of(effects.readers(node));
      const Node* write = effects.last_write_before(node, *graph.output_node());
      found << " written " << (write ? write->name() : "never") << " " << effects.version(node, *graph.output_node())
            << "\n";
    }
    all.push_back({std::to_string(seed), found.str()});
    Random random(seed);
    std::vector<Node*> nodes;
    for (Node& node : graph.nodes()) nodes.push_back(&node);
    for (int i = 0; i < 6 && nodes.size() > 2; ++i) random.pick(nodes)->append(*random.pick(nodes));
    std::string moved;
    const std::string error = testing::error_of([&] { moved = std::to_string(legalize_graph(graph, how)); });
    all.push_back(
        {std::to_string(seed) + " in another order", moved.empty() ? error : moved + "\n" + print_graph(graph)});
  }
  testing::expect_as_recorded("effects", all);
}

TEST(RecordedAnalyses, Pieces) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Graph graph = graph_at(seed);
    Random random(seed);
    std::vector<Node*> nodes;
    for (const Node& node : graph.nodes()) {
      const bool fits = node.is_callable() || node.is(Op::get_attr);
      if (random.chance(fits ? 40 : 3)) nodes.push_back(graph.node_by_id(node.id()));
    }
    if (random.chance(5) && !nodes.empty()) nodes.push_back(nodes.front());
    std::string found;
    const std::string error = testing::error_of([&] {
      const Subgraph piece = extract_subgraph(graph, nodes, {.copy_attributes = seed % 2 == 0});
      found = print_graph(piece.graph) + text_of(piece.inputs) + text_of(piece.outputs);
    });
    if (found.empty()) found = error + "\n";
    found += testing::error_of([&] {
      if (const auto path = find_path_outside(graph, nodes)) found += text_of(*path);
    });
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("pieces", all);
}

/// Every operator, with each of its arguments once of every kind, left out, or given by name.
TEST(RecordedAnalyses, NoOpsByTheirArguments) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Recorded> all;
  for (const Symbol target : builtin_targets()) {
    const OperatorSchema& schema = *find_overload(target);
    if (schema.arguments.empty() || !schema.arguments[0].type.is_tensor()) continue;
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& n = graph.call_method("size", {x, 0}, {}, "n");
    Node& relu = graph.call_function("aten::relu", {x}, {}, "relu");
    Node& relu6 = graph.call_function("aten::relu6", {x}, {}, "relu6");
    const std::vector<Argument> kinds = {Argument(),
                                         true,
                                         false,
                                         0,
                                         1,
                                         -1,
                                         2,
                                         INT64_MAX,
                                         0.0,
                                         -0.0,
                                         1.0,
                                         0.5,
                                         inf,
                                         nan,
                                         std::complex<double>(1, 0),
                                         "none",
                                         "contiguous_format",
                                         DType::float32,
                                         Device{"cpu"},
                                         Layout{"strided"},
                                         MemoryFormat{"contiguous_format"},
                                         MemoryFormat{"channels_last"},
                                         Argument::list({}),
                                         Argument::list({0, 1}),
                                         Argument::list({1, 0}),
                                         Argument::list({0, n}),
                                         Argument::tuple({0, 1}),
                                         n,
                                         x};
    const auto plain = [&](std::size_t i) -> Argument {
      const SchemaArgument& argument = schema.arguments[i];
      if (i == 0) return relu;
      if (argument.default_value) return *argument.default_value;
      return argument.type.is_tensor() ? Argument(1) : argument.type.list ? Argument::list({0, 1}) : Argument(0);
    };
    for (std::size_t varied = 1; varied < schema.arguments.size(); ++varied) {
      for (std::size_t also = varied; also < schema.arguments.size(); ++also) {
        for (const Argument& kind : kinds) {
          std::vector<Argument> args;
          std::vector<NamedArgument> kwargs;
          for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
            const Argument value = i == varied ? kind : i == also ? Argument(0) : plain(i);
            if (i < schema.num_positional()) {
              args.push_back(value);
            } else if (i == varied || i == also) {
              kwargs.push_back({schema.arguments[i].name, value});
            }
          }
          graph.call_function(target, args, kwargs);
        }
      }
    }
    for (std::size_t count = 1; count <= schema.num_positional(); ++count) {
      std::vector<Argument> args;
      for (std::size_t i = 0; i < count; ++i) args.push_back(plain(i));
      graph.call_function(target, args);
      graph.call_function(packet_of(target.view()), args);
      graph.call_function(target, {relu}, {{schema.arguments.back().name, plain(schema.arguments.size() - 1)}});
      for (Node* input : {&relu, &relu6, &x}) {
        args[0] = *input;
        graph.call_function(target, args);
        graph.call_method(target, args);
        graph.call_module(target.view(), args);
      }
    }
    graph.output(x);
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2, 2}};
    std::string found;
    for (const NoOp& no_op : find_no_ops(graph, &shapes)) {
      for (const Argument& arg : no_op.node->args()) found += to_string(arg) + ", ";
      for (const auto& [name, value] : no_op.node->kwargs()) found += name.str() + "=" + to_string(value) + ", ";
      found += std::string(no_op.reason) + "\n";
    }
    if (!found.empty()) all.push_back({target.str(), found});
  }
  testing::expect_as_recorded("no_ops", all);
}

/// All analyses, on graphs of whatever operators there are.
TEST(RecordedAnalyses, OfAnyOperators) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const Graph graph = testing::graph_of_any_operators(seed, 3 + seed % 6);
    const Shapes shapes = testing::any_shapes(graph, seed);
    const Effects effects(graph, {.inputs_may_alias = seed % 5 == 0});
    std::ostringstream found;
    for (const NoOp& no_op : find_no_ops(graph, seed % 4 ? &shapes : nullptr, seed % 3 ? &effects : nullptr))
      found << no_op.node->name() << " is " << no_op.same_as->name() << ": " << no_op.reason << "\n";
    const DeadCode dead(graph, {.effects = &effects, .shapes = &shapes});
    for (const DeadFinding& finding : dead.findings()) found << dead.explain(finding) << "\n";
    const Liveness live(graph, shapes, {.effects = &effects});
    found << live.peak().bytes << " " << plan_memory(live).bytes << "\n";
    const OrderEdges edges = effects.order_edges();
    const NodeMap<std::uint32_t> level = levels(graph, seed % 2 ? &edges : nullptr);
    const Cost cost(graph, shapes);
    for (const Node& node : graph.nodes()) {
      const NodeCost own = cost.of(node);
      found << node.name() << " " << level[node] << " " << own.known << own.macs << " " << own.bytes_read << " "
            << own.bytes_written << (effects.writes(node) ? " writes" : "") << (effects.impure(node) ? " impure" : "");
      for (const Effects::Set set : effects.sets(node)) found << " " << set;
      found << "\n";
    }
    found << operator_table(graph);
    for (const auto& group : fusion_groups(graph, [](const Node& node) { return node.is_callable(); }))
      found << text_of(group);
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found.str();
  }
  testing::expect_as_recorded("any_operators", all);
}

}  // namespace fx::recorded_analyses_test
