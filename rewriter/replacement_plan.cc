#include <fxgraph/rewriter/replacement_plan.h>

#include <algorithm>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/rewriter/layout_checks.h>

namespace fx::internal {

namespace {

using Kind = TemplateArgument::Kind;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

std::string names_of(const PatternData& pattern) {
  std::string text;
  for (const PatternNode& node : pattern.nodes) {
    const auto index = static_cast<std::uint32_t>(&node - pattern.nodes.data());
    if (!node.name.empty() && is_bound(pattern, index)) text += (text.empty() ? "" : ", ") + node.name.str();
  }
  return text.empty() ? "nothing" : text;
}

void add_new(std::vector<std::uint32_t>& to, std::uint32_t value) {
  if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
}

}  // namespace

ReplacementPlan::ReplacementPlan(const PatternData& pattern, const Replacement& replacement, bool commutes)
    : pattern_(pattern), replacement_(replacement) {
  for (std::uint32_t i = 0; i < pattern.nodes.size(); ++i) {
    if (pattern.nodes[i].kind == PatternKind::attribute) parameters_.push_back(i);
  }
  if (is_function()) {
    may_alias_ = true;
    changes_layout_ = reorders_ = true;
    return;
  }
  read_graph();
  check_results();
  read_effects();
  read_layouts(commutes);
}

// Where all calls, of the pattern and of the replacement, give what lies as what they take, so do the results, if they
// take the same in the same order. Of calls in other spellings, and of sets that are not listed, only the match tells.
void ReplacementPlan::read_layouts(bool commutes) {
  for (const PatternNode& node : pattern_.nodes) {
    changes_layout_ |= node.kind == PatternKind::transparent || node.kind == PatternKind::dominated;
    if (node.kind != PatternKind::call) continue;
    changes_layout_ |= node.op != Op::call_function || !node.targets.is_finite() ||
                       !std::ranges::all_of(node.targets.names(), keeps_layout);
    commutes |= node.commutative;
  }
  for (const TemplateNode& node : nodes_)
    changes_layout_ |= !node.target.empty() && (node.op != Op::call_function || !keeps_layout(node.target));
  for (std::size_t i = 0; i < results_.size() && !reorders_; ++i) {
    const auto before = pattern_operands(pattern_.outputs[i]);
    reorders_ = !before || *before != replacement_operands(results_[i]) || (commutes && before->size() > 1);
  }
}

/// What a result of the pattern is computed of, each once, in the order in which its calls take it; nothing when the
/// match decides.
std::optional<std::vector<std::uint32_t>> ReplacementPlan::pattern_operands(std::uint32_t result) const {
  std::vector<std::uint32_t> operands, open = {result}, seen;
  while (!open.empty()) {
    const std::uint32_t index = open.back();
    open.pop_back();
    const PatternNode& node = pattern_.nodes[index];
    switch (node.kind) {
      case PatternKind::literal:
      case PatternKind::hole: break;
      case PatternKind::any:
      case PatternKind::attribute: add_new(operands, index); break;
      case PatternKind::sequence:
      case PatternKind::call:
        if (!node.kwargs.empty() || node.open || node.bare) return {};
        if (std::ranges::count(seen, index) != 0) break;
        seen.push_back(index);
        open.insert(open.end(), node.args.rbegin(), node.args.rend());
        break;
      default: return {};
    }
  }
  return operands;
}

std::vector<std::uint32_t> ReplacementPlan::replacement_operands(const TemplateArgument& result) const {
  std::vector<std::uint32_t> operands, seen;
  std::vector<TemplateArgument> open = {result};
  while (!open.empty()) {
    const TemplateArgument source = std::move(open.back());
    open.pop_back();
    std::vector<TemplateArgument> taken;
    if (source.kind == Kind::capture) {
      const PatternKind kind = pattern_.nodes[source.index].kind;
      if (kind != PatternKind::literal && kind != PatternKind::hole) add_new(operands, source.index);
    } else if (source.kind == Kind::container) {
      for_each_node(source.value, [&](const Node& node) { taken.push_back(by_id_[node.id()]); });
    } else if (source.kind == Kind::made && std::ranges::count(seen, source.index) == 0) {
      seen.push_back(source.index);
      for (const TemplateNode::Blank& blank : nodes_[source.index].blanks) taken.push_back(blank.source);
    }
    open.insert(open.end(), taken.rbegin(), taken.rend());
  }
  return operands;
}

void ReplacementPlan::read_graph() {
  const Graph& graph = *replacement_.graph();
  by_id_.resize(graph.id_bound());
  const std::size_t inputs = graph.placeholders().size();
  if (replacement_.is_positional() && pattern_.from_graph && inputs != pattern_.inputs.size()) {
    refuse("the pattern takes " + std::to_string(pattern_.inputs.size()) + " inputs, the replacement " +
           std::to_string(inputs));
  }
  std::size_t position = 0;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::placeholder)) {
      by_id_[node.id()] = {Kind::capture, capture_of(node, position++), {}};
      if (!node.has_users()) continue;
      if (!is_bound(pattern_, by_id_[node.id()].index)) refuse_unbound(node.target());
      add_new(captures_, by_id_[node.id()].index);
    } else if (node.is(Op::output)) {
      if (node.args().empty()) continue;
      const Argument& value = node.args()[0];
      if (value.is_sequence() && (names_nodes(value) || pattern_.outputs.size() > 1)) {
        for (const Argument& element : value.elements()) results_.push_back(source_of(element));
      } else {
        results_.push_back(source_of(value));
      }
    } else {
      by_id_[node.id()] = {Kind::made, static_cast<std::uint32_t>(nodes_.size()), {}};
      nodes_.push_back(template_of(node));
    }
  }
}

TemplateNode ReplacementPlan::template_of(const Node& node) const {
  TemplateNode made{node.op(), node.target(), node.name(), {}, {}, {}, node.find_meta()};
  if (made.name == name_stem(node.target()).view()) made.name.clear();
  std::uint32_t at = 0;
  const auto constant = [&](const Argument& value) {
    TemplateArgument source = source_of(value);
    if (source.kind != Kind::literal) made.blanks.push_back({at, std::move(source)});
    ++at;
    return source.kind == Kind::literal ? value : Argument();
  };
  for (const Argument& arg : node.args()) made.args.push_back(constant(arg));
  for (const auto& [name, value] : node.kwargs()) made.kwargs.push_back({name, constant(value)});
  return made;
}

void ReplacementPlan::refuse_unbound(Symbol input) const {
  refuse("the replacement takes '" + input.str() + "', which the pattern does not bind; it binds " +
         names_of(pattern_));
}

std::uint32_t ReplacementPlan::capture_of(const Node& placeholder, std::size_t position) const {
  if (replacement_.is_positional() && pattern_.from_graph) return pattern_.inputs[position];
  const int index = pattern_.find(placeholder.target());
  if (index < 0) refuse_unbound(placeholder.target());
  const auto capture = static_cast<std::uint32_t>(index);
  const bool replaced = std::find(pattern_.outputs.begin(), pattern_.outputs.end(), capture) != pattern_.outputs.end();
  if (replaced && only_calls(pattern_, capture)) {
    refuse("the replacement takes '" + placeholder.target().str() + "', the result that it replaces");
  }
  return capture;
}

TemplateArgument ReplacementPlan::source_of(const Argument& value) const {
  if (const Node* node = value.node_or_null()) return by_id_[node->id()];
  return {names_nodes(value) ? Kind::container : Kind::literal, 0, value};
}

void ReplacementPlan::check_results() const {
  if (results_.size() != pattern_.outputs.size()) {
    refuse("the pattern returns " + std::to_string(pattern_.outputs.size()) + " values, the replacement " +
           std::to_string(results_.size()));
  }
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const std::uint32_t output = pattern_.outputs[i];
    if (!only_calls(pattern_, output) && !(results_[i].kind == Kind::capture && results_[i].index == output)) {
      refuse("the pattern returns its input '" + pattern_.nodes[output].name.str() +
             "'; the replacement must return it unchanged at that place");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (pattern_.outputs[j] != output || results_[j] == results_[i]) continue;
      refuse("the pattern returns one value as results " + std::to_string(j) + " and " + std::to_string(i) +
             ", the replacement two different ones");
    }
  }
}

void ReplacementPlan::read_effects() {
  for (const TemplateArgument& result : results_)
    may_alias_ |= result.kind == Kind::capture ||
                  (result.kind == Kind::made && nodes_[result.index].op == Op::get_attr);  // storage that is there
  for (const Node& node : replacement_.graph()->nodes()) {
    const NodeEffects effects = effects_of(node);
    // What a module does shows in the program that it joins; until then it may do anything.
    const bool module = node.is(Op::call_module);
    impure_ |= effects.impure() || module;
    trusted_ |= node.find_meta() && node.find_meta()->get<bool>(meta_key::kTrusted);
    random_ |= effects.random || module;
    side_effects_ |= effects.side_effect || module;
    may_alias_ |= effects.may_alias;
    for_each_written(node, [&](const Argument& written) {
      for_each_node(written, [&](const Node& value) {
        if (by_id_[value.id()].kind == Kind::capture) add_new(written_, by_id_[value.id()].index);
      });
    });
  }
}

void ReplacementPlan::fill(Argument& argument, const TemplateArgument& source, const Match& match,
                           const std::vector<Node*>& made) const {
  switch (source.kind) {
    case Kind::literal: argument = source.value; return;
    case Kind::capture: argument = match.values()[source.index]; return;
    case Kind::made: argument = made[source.index]; return;
    case Kind::container:
      argument = map_nodes(source.value, [&](Node& node) {
        Argument element;
        fill(element, by_id_[node.id()], match, made);
        return element;
      });
  }
}

void ReplacementPlan::build(const Match& match, Rewriter& rewriter, std::vector<TemplateNode>& nodes,
                            std::vector<Node*>& made, std::vector<Argument>& results) const {
  if (is_function()) {
    results = replacement_.builder()(match, rewriter);
    return;
  }
  for (TemplateNode& node : nodes) {
    for (const TemplateNode::Blank& blank : node.blanks) fill(node.argument(blank.at), blank.source, match, made);
    Node& fresh = rewriter.create_node(node.op, node.target, node.args, node.kwargs, node.name);
    if (node.meta) fresh.meta() = *node.meta;
    made.push_back(&fresh);
  }
  for (const TemplateArgument& result : results_) fill(results.emplace_back(), result, match, made);
}

}  // namespace fx::internal
