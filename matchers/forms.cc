#include <fxgraph/matchers/forms.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/search.h>
#include <fxgraph/ops/schema_registry.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

void Forms::add(Form form) {
  if (!form.row->has_parts) {
    for (const Node* node : form.covers) {
      if (node != form.of) part_[*node] = true;
    }
  }
  std::uint32_t& list = list_of_[*form.of];
  if (list == 0) {
    lists_.emplace_back();
    list = static_cast<std::uint32_t>(lists_.size());
  }
  lists_[list - 1].push_back(form.root);
  const Node& root = *form.root;
  forms_.push_back(std::move(form));
  form_of_[root] = static_cast<std::uint32_t>(forms_.size());
}

namespace {

/// Operators without their overloads, by their symbols' ids: membership only.
using Operators = std::unordered_set<std::uint32_t>;

}  // namespace

/// A text of a definition: as it is found, and, where it says one thing, as it is made.
struct FormMaker::Side {
  const Definition* row;
  Pattern pattern;
  std::shared_ptr<const Graph> made;  ///< null: it is only found
  bool is_call;
  Operators operators{};            ///< that it calls
  bool is_nested = false;           ///< has calls of calls
  std::vector<std::string> said{};  ///< names in it that the call has not, where it is a body as it is made
  std::uint32_t root = 0;           ///< what is made calls it last
};

/// Where `find` fits, each of `make` is the same.
struct FormMaker::Step {
  const Side* find;
  std::vector<const Side*> make;
};

namespace {

std::uint32_t packet(Symbol target) { return Symbol(packet_of(target.view())).id(); }

bool calls_function(const PatternNode& node) {
  return node.kind == PatternKind::call && is_function_or_method(node.op);
}

/// Visits the operators that a call of a pattern means; false when that is no finite list.
template <typename Visit>
bool for_each_operator(const PatternNode& call, Visit&& visit) {
  for (const Symbol name : call.names()) visit(packet(name));
  for (const Symbol name : call.targets.names()) visit(packet(name));
  if (!call.meaning.empty()) visit(packet(call.meaning));
  return call.targets.is_finite();
}

/// Adds those of all its calls.
bool add_operators(const Pattern& pattern, Operators& operators) {
  bool finite = true;
  for (const PatternNode& node : PatternAccess::of(pattern).nodes) {
    const auto add = [&](std::uint32_t name) { operators.insert(name); };
    finite = (!calls_function(node) || for_each_operator(node, add)) && finite;
  }
  return finite;
}

/// False where a call that a match must have is of none of the operators that `has(name)` has.
template <typename Has>
bool may_fit(const Pattern& pattern, Has&& has) {
  const PatternData& data = PatternAccess::of(pattern);
  std::vector<bool> fits(data.nodes.size(), true);
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const PatternNode& node = data.nodes[i];
    if (node.kind == PatternKind::negation) continue;
    if (node.kind == PatternKind::one_of) {
      fits[i] = std::ranges::any_of(node.args, [&](std::uint32_t arg) { return fits[arg]; });
      continue;
    }
    bool is_there = !calls_function(node);
    if (!is_there)
      is_there = !for_each_operator(node, [&](std::uint32_t name) { is_there = is_there || has(name); }) || is_there;
    node.for_each_child([&](std::uint32_t child) { is_there = is_there && fits[child]; });
    fits[i] = is_there;
  }
  return std::ranges::all_of(data.roots, [&](std::uint32_t root) { return fits[root]; });
}

/// What the calls of a graph may be.
Operators operators_of(const Graph& graph) {
  Operators names;
  for (const TargetKey& key : PresentCalls(graph).keys) {
    names.insert(packet(key.target));
    if (key.op == Op::call_function) names.insert(packet(target_info(key.target).name));
    for (const OperatorSchema* schema : candidate_overloads(key.op, key.target)) names.insert(packet(schema->target));
  }
  return names;
}

std::size_t hash_of(Symbol target, std::span<const Argument> args) {
  std::size_t hash = target.id();
  for (const Argument& argument : args) hash = hash * 31 + argument.hash();
  return hash;
}

bool is_call(const Node& node, Symbol target, std::span<const Argument> args, std::span<const NamedArgument> kwargs) {
  return node.target() == target && std::ranges::equal(node.args(), args) && node.kwargs().size() == kwargs.size() &&
         std::ranges::all_of(kwargs, [&](const NamedArgument& each) {
           const Argument* value = node.kwarg(each.name);
           return value && *value == each.value;
         });
}

constexpr int kMostRounds = 8;  // rows build on each other: a product, scores, attention

}  // namespace

/// The texts whose operators this LibTorch has.
const std::vector<FormMaker::Side>& FormMaker::sides() {
  static const std::vector<Side>& all = *[] {
    auto* sides = new std::vector<Side>;
    // Of another LibTorch are those that it has no operators for.
    const auto add = [&](const Definition& row, const std::string& text, bool is_made, bool is_call) {
      try {
        std::shared_ptr<const Graph> made;
        if (is_made) made = std::make_shared<const Graph>(graph_of_pattern(parse_expression(text)));
        Pattern pattern(text);
        if (!pattern.problems().empty()) return;
        Side& side = sides->emplace_back(Side{&row, std::move(pattern), std::move(made), is_call});
        add_operators(side.pattern, side.operators);
        if (is_made && !is_call) {
          for (const Node* input : side.made->placeholders()) {
            const std::string name = input->target().str();
            const bool is_of_call = PatternAccess::of(Pattern(row.call)).find(Symbol(name)) >= 0;
            if (!is_of_call) side.said.push_back(name);
          }
        }
        side.is_nested = std::ranges::count_if(PatternAccess::of(side.pattern).nodes, calls_function) > 1;
        if (side.made) side.root = packet(side.made->output_node()->arg(0).node().target());
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::syntax) throw;
      }
    };
    for (const Definition& row : definitions()) {
      add(row, row.call, true, true);
      for (const std::string& text : row.calls) add(row, text, false, true);
      for (const std::string& text : row.bodies) add(row, text, true, false);
      for (const std::string& text : row.found) add(row, text, false, false);
    }
    return sides;
  }();
  return all;
}

/// Which texts may fit somewhere, by the operators that the graph has and that rows make of these; and which of
/// `patterns`. What a row has made it finds again in vain, unless there are other bodies, or other rows change a part.
std::vector<bool> FormMaker::possible_sides(const Graph& graph, std::span<const Pattern> patterns,
                                            std::vector<const Pattern*>& possible_patterns) {
  const std::vector<Side>& all = sides();
  const Operators present = operators_of(graph);
  std::unordered_map<const Definition*, int> bodies;                         // look-up only
  std::unordered_map<std::uint32_t, std::vector<const Definition*>> makers;  // look-up only
  for (const Side& side : all) bodies[side.row] += !side.is_call;
  const auto has = [&](std::uint32_t name, const Definition* but) {
    const auto made = makers.find(name);
    return present.contains(name) ||
           (made != makers.end() && std::ranges::any_of(made->second, [&](const auto* row) { return row != but; }));
  };
  std::vector<bool> possible(all.size());
  for (bool more = true; std::exchange(more, false);) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Side& find = all[i];
      const bool tells_more = find.is_call ? bodies[find.row] > 1 : find.is_nested;
      const Definition* but = tells_more ? nullptr : find.row;
      if (possible[i] || !may_fit(find.pattern, [&](std::uint32_t name) { return has(name, but); })) continue;
      possible[i] = more = true;
      for (const Side& side : all) {
        if (side.row != find.row || !side.made || side.is_call == find.is_call) continue;
        for (const std::uint32_t name : side.operators) makers[name].push_back(side.row);
      }
    }
  }
  for (const Pattern& pattern : patterns) {
    if (may_fit(pattern, [&](std::uint32_t name) { return has(name, nullptr); })) possible_patterns.push_back(&pattern);
  }
  return possible;
}

/// Steps whose results some pattern, or another step, can meet; in the order of the table.
std::vector<FormMaker::Step> FormMaker::steps_for(const Graph& graph, std::span<const Pattern> patterns) {
  std::vector<const Pattern*> searched;
  const std::vector<bool> possible = possible_sides(graph, patterns, searched);
  const auto is_possible = [&](const Side& side) { return possible[static_cast<std::size_t>(&side - sides().data())]; };
  Operators wanted;
  bool all = false;
  for (const Pattern* pattern : searched) all = !add_operators(*pattern, wanted) || all;
  const auto made_from = [&](const Side& find) {
    std::vector<const Side*> make;
    if (!is_possible(find)) return make;
    for (const Side& side : sides()) {
      const bool is_other = side.row == find.row && side.made && side.is_call != find.is_call;
      if (is_other && (all || wanted.contains(side.root))) make.push_back(&side);
    }
    return make;
  };
  const auto close = [&] {
    for (std::size_t before = 0; before != wanted.size();) {
      before = wanted.size();
      for (const Side& find : sides()) {
        if (!made_from(find).empty()) wanted.insert(find.operators.begin(), find.operators.end());
      }
    }
  };
  close();
  // What has a wanted call inside and counts as one hides it.
  const Operators inner = wanted;
  for (const Side& body : sides()) {
    if (body.is_call || body.row->has_parts || !is_possible(body)) continue;
    if (std::ranges::none_of(body.operators, [&](std::uint32_t name) { return inner.contains(name); })) continue;
    for (const Side& side : sides()) {
      if (side.row == body.row && side.is_call && side.made) wanted.insert(side.root);
    }
  }
  close();
  std::vector<Step> steps;
  for (const Side& find : sides()) {
    if (std::vector<const Side*> make = made_from(find); !make.empty()) steps.push_back({&find, std::move(make)});
  }
  return steps;
}

bool FormMaker::may_make_any(const Graph& graph, std::span<const Pattern> patterns) {
  return !steps_for(graph, patterns).empty();
}

void FormMaker::run(std::span<const Pattern> patterns) {
  const std::vector<Step> steps = steps_for(graph_, patterns);
  bool more = true;
  for (int round = 0; more && round < kMostRounds; ++round) {
    more = false;
    for (const Step& step : steps) more = take(step) || more;
  }
}

bool FormMaker::take(const Step& step) {
  FindOptions find = options_;
  find.overlap = Overlap::all;
  find.contained = true;
  find.stats = nullptr;
  std::vector<bool> claimed;
  Search search(step.find->pattern, PresentCalls(graph_), find, claimed);
  search.see_forms(forms_, /*results=*/false);
  search.try_all();
  bool any = false;
  for (const Match& match : search.matches) any = make(step, match) || any;
  return any;
}

bool FormMaker::make(const Step& step, const Match& match) {
  const Definition& row = *step.find->row;
  Node& of = forms_.standing(match.anchor());
  DefinitionSite site(match, info_);
  if (!row.of_any_type && !site.may_be_floating()) return false;
  if (row.holds && !(row.holds(site) && site.is_as_said())) return false;
  // What the call has no name for is the row's to say.
  const auto is_said = [&](const std::string& name) { return site.says(name); };
  if (!std::ranges::all_of(step.find->said, is_said)) return false;
  bool any = false;
  for (const Side* side : step.make) {
    Node* root = instantiate(*side->made, site, of);
    if (root) forms_.add({root, &of, &row, site.read(), {match.nodes().begin(), match.nodes().end()}});
    any = any || root;
  }
  return any;
}

/// Makes what is not there yet, before the node that stands there; null when that gives no new form.
Node* FormMaker::instantiate(const Graph& body, const DefinitionSite& site, Node& of) {
  NodeMap<Argument> values(body);
  const Node& result = body.output_node()->arg(0).node();
  const auto scope = graph_.inserting_before(of);
  for (const Node& node : body.nodes()) {
    if (node.is(Op::output)) break;
    if (node.is(Op::placeholder)) {
      const Argument* value = site.value(node.target().view());
      if (!value) return nullptr;
      values[node] = map_nodes(*value, [&](Node& bound) { return Argument(forms_.standing(bound)); });
      continue;
    }
    const auto value_of = [&](Node& input) { return values[input]; };
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    for (const Argument& argument : node.args()) args.push_back(map_nodes(argument, value_of));
    for (const auto& [name, argument] : node.kwargs()) kwargs.push_back({name, map_nodes(argument, value_of)});
    const auto is_same = [&](const Node* other) { return is_call(*other, node.target(), args, kwargs); };
    Node* known = nullptr;
    if (&node != &result) {
      const auto [from, to] = made_.equal_range(hash_of(node.target(), args));
      for (auto each = from; each != to && !known; ++each)
        known = is_same(each->second) && each->second->is_before(of) ? each->second : nullptr;
    } else if (is_same(&of) || std::ranges::any_of(forms_.forms_of(of), is_same)) {
      return nullptr;
    }
    if (!known) {
      known = &graph_.create_node(node.op(), node.target(), args, kwargs);
      made_.emplace(hash_of(node.target(), args), known);
      on_made_(*known, of);
    }
    values[node] = *known;
  }
  return values[result].node_or_null();
}

}  // namespace fx::internal
