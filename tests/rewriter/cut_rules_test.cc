// Rules that are cut out of the graphs they run on, so that each fits somewhere: what is put there is right or not, and
// the checks decide. A part in place of itself keeps every output and every write; what the checks say of the others is
// on record.
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/any_operators.h"
#include "tests/support/cut_rule.h"
#include "tests/support/error_of.h"
#include "tests/support/module_info.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/record.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"

namespace fx::cut_rules_test {

using testing::CutRule;
using testing::Random;
using testing::Recorded;

/// Views, copies, writes, and whatever a check knows by name.
const std::vector<testing::OperatorForm>& vocabulary() {
  static const std::vector<testing::OperatorForm> kForms = [] {
    std::vector<testing::OperatorForm> forms = testing::mutating_vocabulary();
    const auto add = [&](const char* target, const char* args, const char* kwargs = "", int results = 1) {
      forms.push_back({Op::call_function, target, args, kwargs, results});
    };
    for (const char* unary :
         {"aten::t", "aten::t_", "aten::contiguous", "aten::detach", "aten::squeeze", "aten::alias", "aten::one_hot",
          "aten::bernoulli", "aten::flatten.using_ints", "aten::sum", "aten::is_contiguous", "aten::view_as_complex"})
      add(unary, "t");
    for (const char* binary : {"aten::matmul", "aten::mm", "aten::view_as", "aten::reshape_as", "aten::expand_as",
                               "aten::outer", "aten::bmm", "aten::masked_select", "mine.f", "aten::set_.source_Tensor"})
      add(binary, "tt");
    for (const char* shaped : {"aten::reshape", "aten::expand", "aten::repeat", "aten::resize_", "aten::_unsafe_view",
                               "aten::broadcast_to", "aten::permute"})
      add(shaped, "tI");
    add("aten::as_strided", "tII");
    add("aten::unfold", "t021");
    add("aten::clone", "t", "memory_format:m");
    add("aten::contiguous", "t", "memory_format:m");
    add("aten::dropout", "tfb");
    add("aten::dropout_", "tfb");
    add("aten::add.Tensor", "tt", "alpha:i");
    add("aten::cat", "T");
    add("aten::stack", "T");
    add("aten::addmm", "ttt");
    add("aten::masked_scatter", "ttt");
    add("aten::masked_scatter_", "ttt");
    add("aten::layer_norm", "tI");
    add("aten::embedding", "tt");
    add("aten::softmax.int", "ti");
    add("aten::to.dtype", "td");
    add("aten::broadcast_tensors", "T", "", 2);
    add("aten::max.dim", "ti", "", 2);
    add("aten::manual_seed", "i");
    add("higher_order::wrap_with_set_grad_enabled", "btt");
    add("torch.relu", "t", "inplace:b");
    add("operator.getitem", "tS");
    forms.push_back({Op::call_method, "t"});
    forms.push_back({Op::call_method, "zero_"});
    forms.push_back({Op::call_module, "layer", "t"});
    forms.push_back({Op::call_module, "layer.inner", "t"});
    forms.push_back({Op::get_attr, "layer.weight", ""});
    forms.push_back({Op::get_attr, "layer.inner.scale", ""});
    return forms;
  }();
  return kForms;
}

Graph graph_at(std::uint64_t seed, const std::vector<testing::OperatorForm>& forms) {
  testing::RandomGraphOptions options;
  options.nodes = 3 + seed % 14;
  options.inputs = 1 + seed % 3;
  options.shape = static_cast<testing::Shape>(seed / 5 % 4);
  options.vocabulary = &forms;
  options.typed_percent = seed % 4 == 0 ? 30 : 0;
  options.all_live = seed % 3 == 0;
  return testing::random_graph(seed, options);
}

ModuleInfo modules_at(std::uint64_t seed) {
  std::optional<NodeEffects> call;
  if (seed % 5 == 1) call = NodeEffects{.writes = true};
  if (seed % 5 == 2) call = NodeEffects{.random = true, .may_alias = true, .may_alias_state = true};
  if (seed % 5 == 3) call = NodeEffects{};
  return testing::module_info(call, seed % 4 == 3, seed % 4 == 2);
}

std::string told(const RewriteReport& report) {
  std::ostringstream text;
  text << to_string(report.stop) << " applied " << report.applied << "\n";
  for (const RuleReport& rule : report.rules)
    text << rule.tried << " " << rule.matched << " " << rule.refused << " " << rule.filtered << "\n";
  for (const Refusal& refusal : report.refused) text << refusal.node << ": " << refusal.reason << "\n";
  return text.str();
}

/// The same nodes, made by a function: what it is going to make is not known beforehand.
Replacement as_function(const Graph& graph, const Graph& pattern) {
  return Replacement([&graph, &pattern](const Match& match, Rewriter& rewriter) {
    Graph::ValueMap values(graph);
    auto at = pattern.nodes().begin();
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::placeholder)) break;
      values[node] = match[(*at++).name()];
    }
    std::vector<Argument> results;
    for (const Node& node : graph.nodes()) {
      const auto map = [&](Node& input) { return values[input]; };
      if (node.is(Op::output)) {
        node.for_each_input([&](const Node& result) { results.push_back(values[result]); });
      } else if (!node.is(Op::placeholder)) {
        std::vector<Argument> args;
        std::vector<NamedArgument> kwargs;
        for (const Argument& arg : node.args()) args.push_back(map_nodes(arg, map));
        for (const auto& [name, value] : node.kwargs()) kwargs.push_back({name, map_nodes(value, map)});
        values[node] = rewriter.create_node(node.op(), node.target(), args, kwargs);
      }
    }
    return results;
  });
}

TEST(CutRules, APartInPlaceOfItselfKeepsEverything) {
  std::size_t applied = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Graph original = graph_at(seed, testing::mutating_vocabulary());
    Random random(seed);
    const CutRule rule = testing::cut_rule(original, random);
    if (rule.pattern.size() == 0) continue;
    Graph graph = original.clone();
    ReplaceOptions options;
    options.allow_output_aliases = true;
    applied += replace_pattern(graph, rule.pattern,
                               seed % 2 ? Replacement(rule.pattern) : as_function(rule.pattern, rule.pattern), options)
                   .applied;
    ASSERT_TRUE(graph.check().empty()) << seed;
    ASSERT_EQ(testing::run_scalars(graph), testing::run_scalars(original))
        << seed << "\n"
        << print_graph(rule.pattern) << print_graph(original) << print_graph(graph);
  }
  EXPECT_GT(applied, 2000u);
}

TEST(CutRules, WhatTheChecksSay) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 8000; ++seed) {
    const Graph original =
        seed % 3 == 2 ? testing::graph_of_any_operators(seed, 3 + seed % 6) : graph_at(seed, vocabulary());
    Random random(seed);
    std::string found;
    for (int round = 0; round < 2; ++round) {
      const CutRule rule = testing::cut_rule(original, random);
      if (rule.pattern.size() == 0) continue;
      Graph graph = original.clone();
      ReplaceOptions options;
      options.find.modules = modules_at(seed);
      options.allow_output_aliases = seed % 2 == 0;
      options.find.ignore_literals = seed % 7 == 0;
      Shapes shapes(graph);
      if (seed % 6 == 0) options.shapes = &shapes;
      found += print_graph(rule.pattern) + print_graph(rule.replacement);
      found += testing::error_of([&] {
        found += told(replace_pattern(
            graph, rule.pattern,
            seed % 8 == 1 ? as_function(rule.replacement, rule.pattern) : Replacement(rule.replacement), options));
        found += print_graph(graph);
      });
    }
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found;
  }
  testing::expect_as_recorded("cut_rules", all);
}

/// Several rules at once, until none fits: then none does, unless one was refused for what stood around it then.
TEST(CutRules, TogetherUntilNothingFits) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 2500; ++seed) {
    const Graph original = graph_at(seed, seed % 2 ? vocabulary() : testing::pointwise_vocabulary());
    Random random(seed);
    RuleSet rules;
    for (int i = 0; i < 3; ++i) {
      CutRule rule = testing::cut_rule(original, random);
      if (rule.pattern.size() == 0 || rule.same || !call_problems(rule.replacement).empty()) continue;
      Rule made{.name = "rule" + std::to_string(i), .pattern = rule.pattern, .replacement = rule.replacement};
      made.may_repeat = random.chance(70);
      if (random.chance(20)) made.when = [](const Match& m) { return m.anchor().num_users() < 2; };
      if (random.chance(30)) {
        made.pattern =
            testing::random_pattern(3 * seed + static_cast<unsigned>(i), {.depth = 2, .several_results = false});
        made.replacement = [](const Match& match, Rewriter& rewriter) {
          return Argument(rewriter.call_function("aten::exp", {match.anchor().args()[0]}));
        };
      }
      rules.add(std::move(made));
    }
    DriverOptions options;
    options.find.modules = modules_at(seed);
    options.allow_output_aliases = true;
    options.max_rewrites = 30;
    Graph graph = original.clone();
    if (seed % 10 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += testing::error_of([&] {
      const RewriteReport report = rewrite_to_fixed_point(graph, rules, options);
      EXPECT_TRUE(graph.check().empty()) << seed << " " << report << print_graph(original) << print_graph(graph);
      if (report.stop == RewriteStop::fixed_point && report.refused.empty()) {
        Graph again = graph.clone();
        EXPECT_EQ(rewrite_once(again, rules, options).applied, 0u) << seed << "\n" << print_graph(graph);
      }
      all.back().found += told(report) + print_graph(graph);
    });
  }
  testing::expect_as_recorded("cut_rule_sets", all);
}

}  // namespace fx::cut_rules_test
