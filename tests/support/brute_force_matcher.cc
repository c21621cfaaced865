#include "tests/support/brute_force_matcher.h"

#include <algorithm>
#include <optional>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/ops/call.h>
#include "tests/support/meant_calls.h"

namespace fx::testing {

namespace {

using internal::HoleKind;
using internal::PatternData;
using internal::PatternKind;
using internal::PatternNode;

using Binding = std::optional<Argument>;

/// What the pattern's nodes are bound to, and the nodes that were seen through or lie on a path.
struct Bindings {
  explicit Bindings(std::size_t size) : values(size) {}
  Binding& operator[](std::size_t i) { return values[i]; }
  const Binding& operator[](std::size_t i) const { return values[i]; }

  std::vector<Binding> values;
  std::set<const Node*> interior;
};
using Ways = std::vector<Bindings>;

/// Seen through; the graphs of the tests have no other copies.
bool is_copy(const Node& node) { return node.is_call("aten::clone") || node.is_call("aten::detach"); }

bool equal(const Argument& a, const Argument& b, double tolerance, bool ignore) {
  if (a.is_sequence() && b.is_sequence()) {
    bool same = a.elements().size() == b.elements().size();
    for (std::size_t i = 0; same && i < a.elements().size(); ++i)
      same = equal(a.elements()[i], b.elements()[i], tolerance, ignore);
    return same;
  }
  if (ignore && !a.is_sequence() && !b.is_sequence()) return !names_nodes(b);
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
      : graph_(graph), data_(internal::PatternAccess::of(pattern)), options_(options) {}

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
      if (negations_hold(way) && (!options_.contained || contained(way))) texts.insert(text(way));
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
    if (p.tensor && !fits_tensor(p, *value, bound)) return {};
    switch (p.kind) {
      case PatternKind::transparent: return match_copies(p, *value, bound);
      case PatternKind::dominated: return value->is_node() ? match_dominated(p, value->node(), bound) : Ways{};
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
      case PatternKind::call: return value.is_node() && is_meant(data_, p, value.node());
      case PatternKind::attribute:
        return value.is_node() && value.node().is(Op::get_attr) && p.targets.contains(value.node().target());
      case PatternKind::constant: return value.is_node() && is_constant(value.node());
      case PatternKind::literal:
        return !value.is_node() && equal(p.literal, value, p.tolerance, options_.ignore_literals);
      case PatternKind::hole: return fits_hole(p.hole, value);
      case PatternKind::sequence: return value.is_sequence();
      default: return true;
    }
  }

  bool fits_tensor(const PatternNode& p, const Argument& value, Bindings& bound) {
    const TensorInfo* tensor = value.is_node() ? (*options_.shapes)[value.node()].tensor() : nullptr;
    if (!tensor || !(p.tensor->dtypes >> static_cast<unsigned>(tensor->dtype) & 1)) return false;
    if (!p.tensor->sized) return true;
    std::vector<std::int64_t> sizes = tensor->sizes;
    if (p.tensor->open >= 0 && sizes.size() >= p.dims.size()) {
      const auto open = sizes.begin() + p.tensor->open;
      sizes.erase(open, open + static_cast<std::ptrdiff_t>(sizes.size() - p.dims.size()));
    }
    if (sizes.size() != p.dims.size()) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Ways ways = match(p.dims[i], Argument(sizes[i]), bound);
      if (ways.empty()) return false;
      bound = ways[0];
    }
    return true;
  }

  bool is_constant(const Node& node) const {
    if (node.is(Op::get_attr)) return !changes(node.target());
    if (node.is(Op::placeholder) || effects_of(node).impure()) return false;
    bool constant = true;
    node.for_each_input([&](const Node& input) { constant = constant && is_constant(input); });
    return constant;
  }

  /// The attribute, or what may share its storage, is written to or returned to the caller, who may write to it.
  bool changes(Symbol path) const {
    std::set<const Node*> shared;
    bool found = false;
    for (int pass = 0; pass < 2; ++pass) {  // the first learns what is shared
      for (const Node& node : graph_.nodes()) {
        if (node.is(Op::get_attr) && node.target() == path) shared.insert(&node);
        const auto look = [&](const Node& value) { found |= shared.count(&value) > 0; };
        for_each_written(node, [&](const Argument& argument) { for_each_node(argument, look); });
        if (node.is(Op::output)) node.for_each_input(look);
        for_each_aliased_input(node, [&](Node& input) { shared.insert(shared.count(&input) ? &node : nullptr); });
      }
    }
    return found;
  }

  Ways match_copies(const PatternNode& p, const Argument& value, const Bindings& bound) {
    Ways result = match(p.args[0], value, bound);
    if (!value.is_node() || !is_copy(value.node())) return result;
    Bindings through = bound;
    through.interior.insert(&value.node());
    append(result, match_copies(p, value.node().arg(0), through));
    return result;
  }

  bool is_on_path(std::uint32_t path, const Node& node) const {
    const PatternNode& p = data_.nodes[path];
    if (p.kind == PatternKind::call) return is_meant(data_, p, node);
    return std::any_of(p.args.begin(), p.args.end(), [&](std::uint32_t arg) { return is_on_path(arg, node); });
  }

  /// Adds what lies above `node` and not above `base`; false when some way up does not end at `base`.
  bool collect_between(std::uint32_t path, const Node& node, const Node& base, std::set<const Node*>& between) const {
    if (&node == &base) return true;
    bool any = false;
    bool fits = is_on_path(path, node);
    between.insert(&node);
    node.for_each_input([&](const Node& input) {
      if (input.is(Op::get_attr)) return;
      any = true;
      fits = fits && collect_between(path, input, base, between);
    });
    return fits && any;
  }

  Ways match_dominated(const PatternNode& p, const Node& node, const Bindings& bound) {
    Ways result;
    for (Node& base : const_cast<Graph&>(graph_).nodes()) {
      std::set<const Node*> between;
      if (!collect_between(p.args[1], node, base, between)) continue;
      Bindings through = bound;
      through.interior.insert(between.begin(), between.end());
      append(result, match(p.args[0], Argument(base), through));
    }
    return result;
  }

  /// With all else bound, no way is left for what must not match; parts bound inside it are looked at too.
  bool negations_hold(const Bindings& way) { return negations_hold(way, way); }
  bool negations_hold(const Bindings& way, const Bindings& added) {
    for (std::size_t i = 0; i < data_.nodes.size(); ++i) {
      if (data_.nodes[i].kind != PatternKind::negation || !added[i]) continue;
      for (const Bindings& below : match(data_.nodes[i].args[0], *way[i], way)) {
        Bindings fresh = below;
        for (std::size_t k = 0; k < data_.nodes.size(); ++k) {
          if (way[k]) fresh[k].reset();
        }
        if (negations_hold(below, fresh)) return false;
      }
    }
    return true;
  }

  static bool fits_hole(HoleKind hole, const Argument& value) {
    if (names_nodes(value)) return false;
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
    if (p.unordered) return match_unordered(p, elements, 0, {}, bound);
    Ways ways = {bound};
    for (std::size_t i = 0; i < p.args.size(); ++i) {
      Ways next;
      for (const Bindings& way : ways) append(next, match(p.args[i], elements[i], way));
      ways = std::move(next);
    }
    return match_tail(p, {elements.begin(), elements.end()}, p.args.size(), ways);
  }

  Ways match_tail(const PatternNode& p, std::vector<Argument> left, std::size_t skip, const Ways& ways) {
    if (p.tail == internal::kNoPattern) return ways;
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(skip));
    Ways result;
    for (const Bindings& way : ways) append(result, match(p.tail, Argument::list(left), way));
    return result;
  }

  Ways match_unordered(const PatternNode& p, ArgumentSpan elements, std::size_t i, const std::set<std::size_t>& taken,
                       const Bindings& bound) {
    if (i == p.args.size()) {
      std::vector<Argument> left;
      for (std::size_t k = 0; k < elements.size(); ++k) {
        if (!taken.count(k)) left.push_back(elements[k]);
      }
      return match_tail(p, left, 0, {bound});
    }
    Ways result;
    for (std::size_t k = 0; k < elements.size(); ++k) {
      if (taken.count(k)) continue;
      std::set<std::size_t> now = taken;
      now.insert(k);
      for (const Bindings& way : match(p.args[i], elements[k], bound))
        append(result, match_unordered(p, elements, i + 1, now, way));
    }
    return result;
  }

  Ways match_call(const PatternNode& p, Node& node, const Bindings& bound) {
    if (p.bare) return {bound};
    const Call call = call_of(node);
    const bool commutes = p.commutative || (options_.commutative && call && call.schema().traits.commutative);
    if (!commutes || p.args.size() < 2) return match_order(p, node, bound, false);
    const auto type = [&](std::size_t i) { return std::string_view(call.schema().arguments.at(i).type.text); };
    if (call && call.schema().arguments.size() > 1 && type(0) != type(1))
      return match_order(p, node, bound, p.commutative && is_number(data_, p.args[0]));  // as `add.Scalar` has it
    Ways result = match_order(p, node, bound, false);
    append(result, match_order(p, node, bound, true));
    return result;
  }

  Ways match_order(const PatternNode& p, Node& node, const Bindings& bound, bool swapped) {
    const Call call = call_of(node);
    // What the call gives to each argument the pattern mentions; then what is left must be default, or absent.
    std::vector<std::pair<std::uint32_t, Binding>> wanted;
    std::set<std::size_t> mentioned;
    const auto given = [&](std::size_t i) -> Binding {
      if (call) {
        if (i >= call.schema().arguments.size()) return std::nullopt;
        const Argument* argument = call.argument(i);
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
      if (call) {
        const int position = call.schema().index_of(name);
        if (position < 0) return {};
        wanted.emplace_back(index, given(static_cast<std::size_t>(position)));
        mentioned.insert(static_cast<std::size_t>(position));
      } else {
        const Argument* argument = node.kwarg(name);
        wanted.emplace_back(index, argument ? Binding(*argument) : std::nullopt);
      }
    }
    if (!rest_is_default(p, node, call, mentioned, keywords, p.open && !swapped)) return {};
    Ways ways = {bound};
    for (const auto& [index, value] : wanted) {
      Ways next;
      for (const Bindings& way : ways) append(next, match(index, value, way));
      ways = std::move(next);
    }
    const ArgumentSpan args = call ? call.args() : node.args();
    return match_tail(p, {args.begin(), args.end()}, std::min(p.args.size(), args.size()), ways);
  }

  bool rest_is_default(const PatternNode& p, const Node& node, const Call& call, const std::set<std::size_t>& mentioned,
                       const std::set<Symbol>& keywords, bool open) const {
    if (!call) {
      if (p.open) return true;
      for (const auto& [name, value] : node.kwargs()) {
        if (!keywords.count(name)) return false;
      }
      return node.args().size() <= p.args.size();
    }
    const OperatorSchema& schema = call.schema();
    for (const auto& [name, value] : call.kwargs()) {
      if (schema.index_of(name) < 0) return false;
    }
    if (call.args().size() > schema.arguments.size()) return false;
    for (std::size_t i = 0; i < schema.arguments.size() && !open; ++i) {
      if (mentioned.count(i)) continue;
      const Argument* argument = call.argument(i);
      const std::optional<Argument>& standard = schema.arguments[i].default_value;
      if (!standard || (argument && !equal(*standard, *argument, -1, options_.ignore_literals))) return false;
    }
    return true;
  }

  std::set<const Node*> nodes_of(const Bindings& way) const {
    std::set<const Node*> nodes = way.interior;
    for (std::size_t i = 0; i < data_.nodes.size(); ++i) {
      if (data_.nodes[i].kind == PatternKind::call && way[i]) nodes.insert(&way[i]->node());
    }
    return nodes;
  }

  bool contained(const Bindings& way) const {
    std::set<const Node*> matched = nodes_of(way);
    std::set<const Node*> returned;
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
    for (const Binding& value : way.values) out += to_string(value.value_or(Argument())) + ";";
    const std::set<const Node*> nodes = nodes_of(way);
    for (const Node& node : graph_.nodes()) out += nodes.count(&node) ? " " + node.name() : "";
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
  for (const Node* node : match.nodes()) out += " " + node->name();
  return out;
}

}  // namespace fx::testing
