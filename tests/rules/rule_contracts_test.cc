// What a rule went by is in the program's contract: of drawn programs that a rule changed for one example, every other
// input gives what it gave before, or is refused by a line that names the rule. FXGRAPH_CONTRACT_PROGRAMS draws more.
//
// Not drawn: values that passes look at, which program_facts_test.cc and the hostile programs have.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cstdlib>
#include <random>
#include <sstream>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/pattern_examples.h>
#include <fxgraph/testing/silent_failures.h>

namespace fx::rule_contracts_test {

using Random = std::mt19937_64;
using Sizes = std::vector<std::int64_t>;

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

struct Form {
  Sizes sizes;
  at::ScalarType type = at::kFloat;
};

constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kBool};

std::vector<Form> draw_forms(Random& random, std::size_t count) {
  std::vector<Form> forms(count);
  Sizes sizes(4);
  for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(below(random, 4));
  const bool square = below(random, 2) == 0;
  if (square) sizes.assign(4, sizes[0]);
  const at::ScalarType type = below(random, 3) ? at::kFloat : kTypes[below(random, kTypes.size())];
  const std::size_t rank = below(random, 5);
  for (Form& form : forms) {
    const std::size_t own = below(random, 3) ? rank : below(random, 5);
    form = {Sizes(sizes.end() - static_cast<std::ptrdiff_t>(own), sizes.end()), type};
  }
  return forms;
}

void change(Random& random, Form& form, std::size_t how) {
  switch (how) {
    case 0: form.type = kTypes[below(random, kTypes.size())]; return;
    case 1: form.sizes.insert(form.sizes.begin(), 1 + static_cast<std::int64_t>(below(random, 3))); return;
    case 2: form.sizes.push_back(1 + static_cast<std::int64_t>(below(random, 3))); return;
    case 3:
      if (!form.sizes.empty()) form.sizes.erase(form.sizes.begin());
      return;
    case 4:
      if (!form.sizes.empty()) form.sizes.pop_back();
      return;
    default:
      if (!form.sizes.empty())
        form.sizes[below(random, form.sizes.size())] = static_cast<std::int64_t>(below(random, 6));
  }
}

/// One input is changed, or all likewise.
std::vector<Form> other_forms(Random& random, const std::vector<Form>& forms) {
  std::vector<Form> others = forms;
  const std::size_t how = below(random, 8);
  if (below(random, 2)) {
    change(random, others[below(random, others.size())], how);
    return others;
  }
  const std::uint64_t seed = random();
  for (Form& form : others) {
    Random same(seed);
    change(same, form, how);
  }
  return others;
}

std::vector<c10::IValue> tensors_of(const std::vector<Form>& forms) {
  std::vector<c10::IValue> tensors;
  for (const Form& form : forms) {
    const at::Tensor numbers = at::rand(form.sizes, at::kDouble) * 2 + 0.25;
    tensors.emplace_back(form.type == at::kBool ? numbers > 1 : numbers.to(form.type));
  }
  return tensors;
}

/// What a placeholder may go through first, so that facts are of values inside.
Node& through(Graph& graph, Node& input, std::size_t which) {
  switch (which) {
    case 0: return graph.call_function("aten::neg", {input});
    case 1: return graph.call_function("aten::unsqueeze", {input, 0});
    case 2: return graph.call_function("aten::squeeze", {input});
    case 3: return graph.call_function("aten::flatten.using_ints", {input});
    case 4: return graph.call_function("aten::cumsum", {input, -1});
    case 5:
      return graph.call_function("aten::sum.dim_IntList", {input, Argument::list(std::vector<Argument>{0}), true});
    case 6: return graph.call_function("aten::to.dtype", {input, Argument(DType::float32)});
    default: return input;
  }
}

void put_before(Random& random, Graph& graph) {
  for (Node* input : graph.placeholders()) {
    if (below(random, 3)) continue;
    const std::vector<Node*> users = input->users().to_vector();
    const auto at = graph.inserting_before(*graph.placeholders().back()->next());
    Node& value = through(graph, *input, below(random, 7));
    for (Node* user : users) user->replace_input_with(*input, value);
  }
}

struct Count {
  std::size_t changed = 0, compared = 0, refused = 0;
};

class RuleContract {
 public:
  RuleContract(const rules::OptimizeRule& rule, std::uint64_t seed) : rule_(rule), random_(seed) {
    for (const Rule& rewrite : rule.rules()) {
      sources_.push_back(rewrite.pattern);
      for (const std::string& text : rewrite.examples) sources_.emplace_back(text);
    }
  }

  Count run(std::size_t programs) {
    for (std::size_t tries = 0; count_.changed < programs && tries < 20 * programs; ++tries) try_one();
    return count_;
  }

 private:
  void try_one() {
    const Pattern& source = sources_[below(random_, sources_.size())];
    std::optional<Graph> graph = internal::example_of(internal::PatternAccess::of(source), random_);
    if (!graph) return;
    put_before(random_, *graph);
    GraphModule::Attributes attributes;
    std::vector<std::string> paths;
    for (const Node& node : graph->nodes()) {
      if (node.is(Op::get_attr)) paths.push_back(node.target().str());
    }
    const std::size_t inputs = graph->placeholders().size();
    if (inputs == 0) return;
    std::vector<Form> forms = draw_forms(random_, inputs + paths.size());
    const std::vector<c10::IValue> weights =
        tensors_of({forms.begin() + static_cast<std::ptrdiff_t>(inputs), forms.end()});
    for (std::size_t i = 0; i < paths.size(); ++i) attributes.emplace_back(paths[i], weights[i].toTensor());
    forms.resize(inputs);
    GraphModule before(attributes, std::move(*graph));
    const std::vector<c10::IValue> example = tensors_of(forms);
    if (!result_of(before, example)) return;
    GraphModule after(before, before.graph().clone());
    std::vector<TensorInfo> infos;
    for (const c10::IValue& each : example) infos.push_back(tensor_info(each.toTensor()));
    if (optimize(after, {.rules = {std::string(rule_.name)}, .inputs = infos}).applied() == 0) return;
    ++count_.changed;
    example_.str({});
    for (const TensorInfo& info : infos) example_ << to_string(info) << " ";
    compare(before, after, example);
    for (int i = 0; i < 8; ++i) compare(before, after, tensors_of(other_forms(random_, forms)));
  }

  std::optional<c10::IValue> result_of(GraphModule& module, const std::vector<c10::IValue>& inputs) {
    try {
      return copy_of(module.run(copies_of(inputs)));
    } catch (const std::exception& error) {
      why_ = error.what();
      return {};
    }
  }

  void compare(GraphModule& before, GraphModule& after, const std::vector<c10::IValue>& inputs) {
    // Of nothing batch_norm asks nothing: whatever its statistics are.
    const auto is_empty = [](const c10::IValue& input) { return input.toTensor().numel() == 0; };
    if (rule_.name == "decompose-batch-norm" && std::ranges::any_of(inputs, is_empty)) return;
    const std::optional<c10::IValue> expected = result_of(before, inputs);
    if (!expected) return;
    const std::optional<c10::IValue> found = result_of(after, inputs);
    std::ostringstream where;
    where << rule_.name << " for " << example_.str() << "\n" << before.graph() << after.graph();
    for (const c10::IValue& input : inputs) where << input.toTensor().scalar_type() << input.toTensor().sizes() << " ";
    if (!found) {
      ++count_.refused;
      const bool says = why_.find("went by that") != why_.npos && why_.find(rule_.name) != why_.npos;
      EXPECT_TRUE(says) << where.str() << why_;
      return;
    }
    ++count_.compared;
    constexpr double kLargest =
        2.25;  // of what is drawn: where large numbers cancel, what is left is as wrong as they were
    EXPECT_LE(relative_difference(*expected, *found, kLargest), 2 * tolerance(*expected))
        << where.str() << *expected << *found;
  }

  static double tolerance(const c10::IValue& value) {
    double most = 0;
    const auto parts = value.isTensor()  ? std::vector<c10::IValue>{value}
                       : value.isTuple() ? value.toTupleRef().elements().vec()
                                         : std::vector<c10::IValue>();
    for (const c10::IValue& part : parts) {
      if (part.isTensor()) most = std::max(most, usual_tolerance(part.toTensor().scalar_type()));
    }
    return most;
  }

  const rules::OptimizeRule& rule_;
  Random random_;
  std::vector<Pattern> sources_;
  std::ostringstream example_;
  std::string why_;
  Count count_;
};

std::vector<const rules::OptimizeRule*> rules_of_rewrites() {
  std::vector<const rules::OptimizeRule*> found;
  for (const rules::OptimizeRule* rule : rules::all_rules()) {
    if (rule->group < rules::Group::lowering && !rule->rules().empty()) found.push_back(rule);
  }
  return found;
}

class RuleContracts : public ::testing::TestWithParam<const rules::OptimizeRule*> {};

TEST_P(RuleContracts, HoldWhatRulesWentBy) {
  const at::NoGradGuard no_grad;
  const internal::SilentFailures quiet;
  const char* more = std::getenv("FXGRAPH_CONTRACT_PROGRAMS");
  const Count count = RuleContract(*GetParam(), 1).run(more ? std::strtoul(more, nullptr, 10) : 25);
  std::cout << count.changed << " programs changed, " << count.compared << " inputs compared, " << count.refused
            << " refused\n";
}

INSTANTIATE_TEST_SUITE_P(Of, RuleContracts, ::testing::ValuesIn(rules_of_rewrites()), [](const auto& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace fx::rule_contracts_test
