// What calls cost, on record: of every operator, and of equations.
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/ops/schema.h>
#include "tests/support/any_operators.h"
#include "tests/support/random.h"
#include "tests/support/record.h"

namespace fx::recorded_costs_test {

using testing::Random;
using testing::Recorded;

/// Every operator, called on tensors of all ranks: the cost counts what it finds, and says when it cannot.
TEST(RecordedCosts, CostsOfEveryOperator) {
  std::vector<Recorded> all;
  std::uint64_t seed = 0;
  for (const Symbol target : builtin_targets()) {
    const OperatorSchema& schema = *find_overload(target);
    std::ostringstream found;
    for (int round = 0; round < 12; ++round) {
      Random random(++seed);
      Graph graph;
      std::vector<Node*> tensors;
      for (const char* name : {"x", "y", "z", "w"}) tensors.push_back(&graph.placeholder(name));
      std::vector<Argument> args;
      for (std::size_t i = 0; i < schema.num_positional(); ++i) {
        const std::optional<Argument> value = testing::value_for(schema.arguments[i].type, tensors, random);
        if (!value) break;
        args.push_back(*value);
      }
      Node& call = graph.call_function(target, args);
      graph.output(call);
      Shapes shapes(graph);
      const std::size_t rank = random.below(6);
      for (const Node& node : graph.nodes()) {
        if (node.is(Op::output)) continue;
        std::size_t count = std::max<std::size_t>(schema.returns.size(), 1);
        if (node.is(Op::placeholder)) count = random.chance(5) ? 0 : 1;
        for (std::size_t k = 0; k < count; ++k) {
          TensorInfo tensor;
          for (std::size_t i = random.chance(70) ? rank : random.below(6); i > 0; --i)
            tensor.sizes.push_back(random.between(random.chance(4) ? 0 : 2, 5));
          shapes[node].tensors.push_back(tensor);
        }
      }
      const NodeCost cost = Cost(graph, shapes).of(call);
      found << (cost.known ? "" : "unknown ") << cost.macs << " " << cost.flops << " " << cost.bytes_read << " "
            << cost.bytes_written << "\n";
    }
    const std::string packet(packet_of(target.view()));
    if (all.empty() || all.back().name != packet) all.push_back({packet, ""});
    all.back().found += target.str() + "\n" + found.str();
  }
  testing::expect_as_recorded("costs", all);
}

/// Equations of all letters and signs, right and wrong, for tensors of all ranks.
TEST(RecordedCosts, CostsOfEinsums) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed);
    Graph graph;
    Shapes shapes(graph);
    std::vector<Argument> tensors;
    std::string equation;
    for (std::size_t operands = 1 + random.below(4); operands > 0; --operands) {
      std::string part;
      TensorInfo tensor;
      for (std::size_t rank = random.below(4); rank > 0; --rank) {
        part += static_cast<char>('i' + random.below(4));
        tensor.sizes.push_back(part.back() - 'g');
      }
      if (random.chance(30)) {
        part.insert(random.below(part.size() + 1), "...");
        for (std::size_t more = random.below(3); more > 0; --more) tensor.sizes.push_back(random.chance(30) ? 1 : 2);
      }
      if (random.chance(10)) tensor.sizes.push_back(2);
      if (random.chance(10)) tensor.sizes.resize(tensor.sizes.size() / 2);
      equation += (equation.empty() ? "" : ",") + part;
      Node& operand = graph.placeholder("x");
      shapes[operand] = tensor;
      tensors.emplace_back(operand);
    }
    if (random.chance(60)) equation += random.chance(30) ? " -> ...i" : random.chance(50) ? "->ij" : "->";
    Node& call = graph.call_function("aten::einsum", {equation, Argument::list(tensors)});
    shapes[call] = TensorInfo{.sizes = {2, 3}};
    const NodeCost cost = Cost(graph, shapes).of(call);
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += equation + (cost.known ? " " : " unknown ") + std::to_string(cost.macs) + " " +
                        std::to_string(cost.flops) + "\n";
  }
  testing::expect_as_recorded("einsums", all);
}

}  // namespace fx::recorded_costs_test
