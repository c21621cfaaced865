// What the checks let through and what they say of the rest, on random graphs that write, alias and draw. Whether a
// rewrite is right the oracles say (random_effects_test.cc); that none is refused without need, and with which words,
// is on record.
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include "tests/support/any_operators.h"
#include "tests/support/error_of.h"
#include "tests/support/module_info.h"
#include "tests/support/random_graph.h"
#include "tests/support/record.h"
#include "tests/support/short_graph.h"

namespace fx::recorded_rewrites_test {

using testing::calls_of;
using testing::Recorded;

struct Pair {
  const char* pattern;
  const char* replacement;
};

constexpr Pair kPairs[] = {
    {"aten::relu(x)", "aten::clamp_min(x, 0)"},
    {"aten::clone(x)", "x"},
    {"aten::view(x, s)", "aten::reshape(x, s)"},
    {"aten::view(x, s)", "x"},
    {"aten::transpose.int(x, 0, 1)", "aten::t(x)"},
    {"aten::relu_(x)", "aten::relu(x)"},
    {"aten::relu(x)", "aten::relu_(x)"},
    {"aten::copy_(x, y)", "y"},
    {"aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)"},
    {"aten::add.Tensor(x, y)", "aten::add_.Tensor(x, y)"},
    {"aten::add.Tensor(aten::relu(x), y)", "aten::relu(aten::add.Tensor(x, y))"},
    {"aten::add.Tensor(aten::clone(x), y)", "aten::add.Tensor(x, y)"},
    {"aten::rand_like(x)", "aten::relu(x)"},
    {"aten::relu(aten::rand_like(x))", "aten::clamp_min(aten::rand_like(x), 0)"},
    {"aten::t_(x)", "aten::t(x)"},
    {"aten::t(x)", "x"},
    {"aten::to.dtype(x, d)", "x"},
    {"aten::contiguous(x)", "x"},
    {"aten::matmul(x, y)", "aten::mm(x, y)"},
    {"aten::add.Tensor(x, w: get_attr)", "aten::sub.Tensor(x, aten::neg(w))"},
    {"a = aten::relu(x)\nb = aten::add.Tensor(a, y)\nreturn a, b",
     "a = aten::clamp_min(x, 0)\nb = aten::add.Tensor(y, a)\nreturn a, b"},
    {"a = aten::view(x, s)\nb = aten::relu(a)\nreturn a, b", "a = aten::view(x, s)\nb = aten::relu(x)\nreturn b, a"},
    {"a = aten::relu(x)\nb = aten::relu_(y)\nreturn a, b", "a = aten::relu(x)\nb = aten::relu_(y)\nreturn a, b"},
    {"call_module(x)", "aten::relu(x)"},
    {"aten::relu(x)", "call_module[other](x)"},
    {"aten::add.Tensor(v: get_attr, w: get_attr)", "aten::mul.Scalar(v, 2)"},
    {"aten::cat([v: get_attr, ...])", "aten::clone(v)"},
    {"aten::relu({aten::clone, aten::view, aten::neg}(x, ...))", "aten::relu(x)"},
};

/// What mutating_vocabulary() has, and the other things that decide: forms in place, copies or views, layouts, modules,
/// graphs that are called, what nobody knows.
const std::vector<testing::OperatorForm>& vocabulary() {
  static const std::vector<testing::OperatorForm> kForms = [] {
    std::vector<testing::OperatorForm> forms = testing::mutating_vocabulary();
    forms.insert(forms.end(), {{Op::call_function, "aten::t"},
                               {Op::call_function, "aten::t_"},
                               {Op::call_function, "aten::reshape", "tI"},
                               {Op::call_function, "aten::contiguous", "t", "memory_format:m"},
                               {Op::call_function, "aten::to.dtype", "td"},
                               {Op::call_function, "aten::expand", "tI"},
                               {Op::call_function, "aten::as_strided", "tII"},
                               {Op::call_function, "aten::mul.Scalar", "tf"},
                               {Op::call_function, "aten::mul_.Scalar", "tf"},
                               {Op::call_function, "aten::add.Tensor", "tt", "alpha:i"},
                               {Op::call_function, "aten::cat", "T"},
                               {Op::call_function, "aten::clone", "t", "memory_format:m"},
                               {Op::call_function, "aten::dropout", "tfb"},
                               {Op::call_function, "aten::sum"},
                               {Op::call_function, "aten::resize_", "tI"},
                               {Op::call_function, "torch.relu", "t", "inplace:b"},
                               {Op::call_function, "mine.f", "tt"},
                               {Op::call_module, "layer", "t"},
                               {Op::get_attr, "layer.weight", ""}});
    return forms;
  }();
  return kForms;
}

Graph graph_at(std::uint64_t seed) {
  testing::RandomGraphOptions options;
  options.nodes = 5 + seed % 16;
  options.inputs = 1 + seed % 3;
  options.shape = static_cast<testing::Shape>(seed / 5 % 4);
  options.vocabulary = &vocabulary();
  options.typed_percent = 0;
  return testing::random_graph(seed, options);
}

ModuleInfo modules_at(std::uint64_t seed) {
  std::optional<NodeEffects> call;
  if (seed % 3 == 1) call = NodeEffects{.writes = true};
  if (seed % 3 == 2) call = NodeEffects{.random = true, .may_alias = true, .may_alias_state = true};
  return testing::module_info(call, seed % 4 == 3, false);
}

std::string told(const RewriteReport& report) {
  std::ostringstream text;
  text << to_string(report.stop) << " applied " << report.applied << "\n";
  for (const RuleReport& rule : report.rules) {
    text << rule.rule << " " << rule.tried << " " << rule.matched << " " << rule.refused << " " << rule.filtered << " "
         << rule.applied << "\n";
  }
  for (const Refusal& refusal : report.refused)
    text << refusal.rule << " " << refusal.node << ": " << refusal.reason << "\n";
  return text.str();
}

TEST(RecordedRewrites, OneRuleEach) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    const Graph original = graph_at(seed);
    std::string found;
    for (const Pair& pair : kPairs) {
      Graph graph = original.clone();
      ReplaceOptions options;
      options.find.modules = modules_at(seed);
      options.allow_output_aliases = seed % 2 == 0;
      found += std::string(pair.pattern) + "\n";
      found += told(replace_pattern(graph, pair.pattern, pair.replacement, options));
      found += calls_of(graph);
    }
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("rewrites", all);
}

RuleSet rules() {
  return {{.name = "relu", .pattern = "aten::relu(aten::relu(x))", .replacement = "aten::relu(x)"},
          {.name = "clone", .pattern = "aten::clone(x)", .replacement = "x"},
          {.name = "view", .pattern = "aten::view(aten::view(x, s), t)", .replacement = "aten::view(x, t)"},
          {.name = "add", .pattern = "aten::add.Tensor(x, x)", .replacement = "aten::mul.Scalar(x, 2)"},
          {.name = "mul",
           .pattern = "aten::mul.Scalar(aten::mul.Scalar(x, a), b)",
           .replacement = "aten::mul.Scalar(x, b)"},
          {.name = "swap",
           .pattern = "commutative(aten::add.Tensor(aten::relu(x), y))",
           .replacement = "aten::sub.Tensor(aten::relu(x), aten::neg(y))"},
          {.name = "neg",
           .pattern = "aten::neg(v: node)",
           .when = [](const Match& m) -> Decision {
             if (m.called("v") == "aten::view") return refuse("it is a view");
             return m.called("v") != "aten::matmul";
           },
           .replacement = "aten::mul.Scalar(v, -1)"}};
}

TEST(RecordedRewrites, RulesTogether) {
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1001; seed <= 1400; ++seed) {
    const Graph original = graph_at(seed);
    DriverOptions options;
    options.find.modules = modules_at(seed);
    options.allow_output_aliases = seed % 2 == 0;
    if (seed % 7 == 0) options.max_rewrites = 1 + seed % 3;
    options.dry_run = seed % 11 == 0;
    Graph once = original.clone(), to_the_end = original.clone();
    std::string found = told(rewrite_once(once, rules(), options));
    found += calls_of(once);
    found += told(rewrite_to_fixed_point(to_the_end, rules(), options));
    found += calls_of(to_the_end);
    all.push_back({std::to_string(seed), found});
  }
  testing::expect_as_recorded("rule_sets", all);
}

TEST(RecordedRewrites, CommonSubexpressions) {
  static const std::vector<testing::OperatorForm> keywords = {
      {Op::call_module, "head", "t", "mask:t,other:t"},
      {Op::call_method, "relu"},
      {Op::call_function, "aten::add.Tensor", "tt", "alpha:2"},
      {Op::call_function, "aten::add.Tensor", "", "self:t,other:t,alpha:1"},
      {Op::call_function, "aten::mul.Tensor", "t", "other:t"},
      {Op::call_function, "aten::zeros", "I", "dtype:d"}};
  std::vector<Recorded> all;
  for (std::uint64_t seed = 1; seed <= 1600; ++seed) {
    testing::RandomGraphOptions options = testing::random_options(seed);
    const std::vector<testing::OperatorForm>* const kVocabularies[] = {
        seed % 3 ? &vocabulary() : &keywords, &testing::pointwise_vocabulary(), &testing::copying_vocabulary(),
        &testing::default_vocabulary()};
    options.vocabulary = kVocabularies[seed % 4];
    Graph graph =
        seed > 400 ? testing::graph_of_any_operators(seed, 4 + seed % 12) : testing::random_graph(seed, options);
    std::function<bool(const Node&)> banned;
    if (seed % 9 == 0) banned = [](const Node& node) { return node.is_call("aten::relu"); };
    const std::size_t merged = eliminate_common_subexpressions(graph, modules_at(seed), banned);
    all.push_back({std::to_string(seed), std::to_string(merged) + " merged\n" + calls_of(graph)});
  }
  testing::expect_as_recorded("common_subexpressions", all);
}

}  // namespace fx::recorded_rewrites_test
