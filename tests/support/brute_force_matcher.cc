#include "tests/support/brute_force_matcher.h"

#include <algorithm>
#include <optional>

#include "matchers/pattern_data.h"
#include "ops/schema.h"

namespace fx::testing {

namespace {

using internal::HoleKind;
using internal::PatternData;
using internal::PatternKind;
using internal::PatternNode;

using Binding = std::optional<Argument>;
using Bindings = std::vector<Binding>;
using Ways = std::vector<Bindings>;

bool has_nodes(const Argument& argument) {
  bool found = false;
  for_each_node(argument, [&](const Node&) { found = true; });
  return found;
}

bool equal(const Argument& a, const Argument& b, double tolerance, bool ignore) {
  if (a.is_sequence() && b.is_sequence()) {
    bool same = a.elements().size() == b.elements().size();
    for (std::size_t i = 0; same && i < a.elements().size(); ++i)
      same = equal(a.elements()[i], b.elements()[i], tolerance, ignore);
    return same;
  }
  if (ignore && !a.is_sequence() && !b.is_sequence()) return !has_nodes(b);
  if (tolerance >= 0 && (b.is_int() || b.is_float())) {
    const double x = a.as_float();
    const double y = b.as_float();
    return x == y || std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y));
  }
  return a == b;
}

class BruteForce {
 public:
  BruteForce(const Graph& graph, const Pattern& pattern, const FindOptions& options)
      : graph_(graph), data_(pattern.data()), options_(options) {}

  std::set<std::string> run() {
    Ways ways = {Bindings(data_.nodes.size())};
    for (const std::uint32_t root : data_.roots) {
      if (!internal::only_calls(data_, root)) continue;
      Ways next;
      for (const Bindings& way : ways) {
        for (Node& node : const_cast<Graph&>(graph_).nodes()) append(next, match(root, Argument(node), way));
      }
      ways = std::move(next);
    }
    std::set<std::string> texts;
    for (const Bindings& way : ways) {
      if (!options_.contained || contained(way)) texts.insert(text(way));
    }
    return texts;
  }

 private:
  static void append(Ways& to, Ways from) { std::move(from.begin(), from.end(), std::back_inserter(to)); }

  Ways match(std::uint32_t index, const Binding& value, const Bindings& way) {
    const PatternNode& p = data_.nodes[index];
    if (p.kind == PatternKind::absent) return !value || value->is_none() ? Ways{way} : Ways{};
    if (!value && p.kind != PatternKind::one_of) return {};
    if (way[index]) return *way[index] == value.value_or(Argument()) ? Ways{way} : Ways{};
    if (!fits(p, value.value_or(Argument()))) return {};
    Bindings bound = way;
    bound[index] = value.value_or(Argument());
    switch (p.kind) {
      case PatternKind::one_of: {
        Ways result;
        for (const std::uint32_t alternative : p.args) append(result, match(alternative, value, bound));
        return result;
      }
      case PatternKind::sequence: return match_elements(p, *value, bound);
      case PatternKind::call: return match_call(p, value->node(), bound);
      default: return {bound};
    }
  }

  bool fits(const PatternNode& p, const Argument& value) const {
    if (const Node* node = value.node_or_null()) {
      if (node->num_users() < p.min_uses || node->num_users() > p.max_uses) return false;
    }
    for (const internal::Condition& condition : p.conditions) {
      if (!condition.test(value)) return false;
    }
    switch (p.kind) {
      case PatternKind::value: return value.is_node();
      case PatternKind::call:
        return value.is_node() && value.node().op() == p.op && p.targets.contains(value.node().target());
      case PatternKind::attribute:
        return value.is_node() && value.node().is(Op::get_attr) && p.targets.contains(value.node().target());
      case PatternKind::literal:
        return !value.is_node() && equal(p.literal, value, p.tolerance, options_.ignore_literals);
      case PatternKind::hole: return fits_hole(p.hole, value);
      case PatternKind::sequence: return value.is_sequence();
      default: return true;
    }
  }

  static bool fits_hole(HoleKind hole, const Argument& value) {
    if (has_nodes(value)) return false;
    switch (hole) {
      case HoleKind::any: return true;
      case HoleKind::integer: return value.is_int();
      case HoleKind::floating: return value.is_int() || value.is_float();
      case HoleKind::boolean: return value.is_bool();
      case HoleKind::string: return value.is_string();
    }
    return false;
  }

  Ways match_elements(const PatternNode& p, const Argument& value, const Bindings& bound) {
    const ArgumentSpan elements = value.elements();
    if (p.open ? elements.size() < p.args.size() : elements.size() != p.args.size()) return {};
    Ways ways = {bound};
    for (std::size_t i = 0; i < p.args.size(); ++i) {
      Ways next;
      for (const Bindings& way : ways) append(next, match(p.args[i], elements[i], way));
      ways = std::move(next);
    }
    return ways;
  }

  Ways match_call(const PatternNode& p, Node& node, const Bindings& bound) {
    if (p.bare) return {bound};
    Ways result = match_order(p, node, bound, false);
    const OperatorSchema* schema = node.is(Op::call_function) ? find_schema(node.target()) : nullptr;
    const bool commutes = p.commutative || (options_.commutative && schema && schema->traits.commutative);
    if (commutes && p.args.size() >= 2) append(result, match_order(p, node, bound, true));
    return result;
  }

  Ways match_order(const PatternNode& p, Node& node, const Bindings& bound, bool swapped) {
    const OperatorSchema* schema = node.is(Op::call_function) ? find_schema(node.target()) : nullptr;
    // What the call gives to each argument the pattern mentions; then what is left must be default, or absent.
    std::vector<std::pair<std::uint32_t, Binding>> wanted;
    std::set<std::size_t> mentioned;
    const auto given = [&](std::size_t i) -> Binding {
      if (schema) {
        if (i >= schema->arguments.size()) return std::nullopt;
        const Argument* argument = bound_argument(*schema, node, i);
        return argument ? Binding(*argument) : std::nullopt;
      }
      return i < node.args().size() ? Binding(node.args()[i]) : std::nullopt;
    };
    for (std::size_t i = 0; i < p.args.size(); ++i) {
      const std::size_t position = swapped && i < 2 ? 1 - i : i;
      wanted.emplace_back(p.args[i], given(position));
      mentioned.insert(position);
    }
    std::set<Symbol> keywords;
    for (const auto& [name, index] : p.kwargs) {
      keywords.insert(name);
      if (schema) {
        const int position = schema->index_of(name);
        if (position < 0) return {};
        wanted.emplace_back(index, given(static_cast<std::size_t>(position)));
        mentioned.insert(static_cast<std::size_t>(position));
      } else {
        const Argument* argument = node.kwarg(name);
        wanted.emplace_back(index, argument ? Binding(*argument) : std::nullopt);
      }
    }
    if (!rest_is_default(p, node, schema, mentioned, keywords, p.open && !swapped)) return {};
    Ways ways = {bound};
    for (const auto& [index, value] : wanted) {
      Ways next;
      for (const Bindings& way : ways) append(next, match(index, value, way));
      ways = std::move(next);
    }
    return ways;
  }

  bool rest_is_default(const PatternNode& p, const Node& node, const OperatorSchema* schema,
                       const std::set<std::size_t>& mentioned, const std::set<Symbol>& keywords, bool open) const {
    if (!schema) {
      if (p.open) return true;
      for (const auto& [name, value] : node.kwargs()) {
        if (!keywords.count(name)) return false;
      }
      return node.args().size() <= p.args.size();
    }
    for (const auto& [name, value] : node.kwargs()) {
      if (schema->index_of(name) < 0) return false;
    }
    if (node.args().size() > schema->arguments.size()) return false;
    for (std::size_t i = 0; i < schema->arguments.size() && !open; ++i) {
      if (mentioned.count(i)) continue;
      const Argument* argument = bound_argument(*schema, node, i);
      const std::optional<Argument>& standard = schema->arguments[i].default_value;
      if (!standard || (argument && !equal(*standard, *argument, -1, options_.ignore_literals))) return false;
    }
    return true;
  }

  bool contained(const Bindings& way) const {
    std::set<const Node*> matched;
    std::set<const Node*> returned;
    for (std::size_t i = 0; i < data_.nodes.size(); ++i) {
      if (data_.nodes[i].kind == PatternKind::call && way[i]) matched.insert(&way[i]->node());
    }
    for (const std::uint32_t output : data_.outputs) {
      if (way[output] && way[output]->is_node()) returned.insert(&way[output]->node());
    }
    for (const Node* node : matched) {
      if (returned.count(node)) continue;
      for (const Node& user : node->users()) {
        if (!matched.count(&user)) return false;
      }
    }
    return true;
  }

  std::string text(const Bindings& way) const {
    std::string out;
    for (const Binding& value : way) out += to_string(value.value_or(Argument())) + ";";
    return out;
  }

  const Graph& graph_;
  const PatternData& data_;
  const FindOptions& options_;
};

}  // namespace

std::set<std::string> brute_force_matches(const Graph& graph, const Pattern& pattern, const FindOptions& options) {
  return BruteForce(graph, pattern, options).run();
}

std::string match_text(const Match& match) {
  std::string out;
  for (const Argument& value : match.values()) out += to_string(value) + ";";
  return out;
}

}  // namespace fx::testing
