#include <fxgraph/rewriter/legality.h>

#include <algorithm>

#include <fxgraph/ir/convexity.h>
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/matchers/pattern_access.h>

namespace fx::internal {

Site::Site(const Match& match) : match(match), nodes(match.nodes()) {
  const std::vector<std::uint32_t>& outputs = PatternAccess::of(match).outputs;
  for (const std::uint32_t output : outputs) {
    Node* node = match.values()[output].node_or_null();
    if (!node || !contains(*node)) continue;
    exit_ = node;
    if (outputs.size() > 1 && std::find(several_.begin(), several_.end(), node) == several_.end())
      several_.push_back(node);
  }
  if (several_.empty()) {
    exits = {&exit_, exit_ ? 1u : 0u};
  } else {
    std::sort(several_.begin(), several_.end(), GraphOrder{});
    exits = several_;
  }
}

const Node* Site::exit_among_several(const Node& value) const {
  std::vector<const Node*> open = {&value};
  for (std::size_t next = 0; next < open.size(); ++next) {
    const Node& one = *open[next];
    if (is_exit(one)) return &one;
    if (!contains(one)) continue;
    one.for_each_input([&](const Node& input) {
      if (std::find(open.begin(), open.end(), &input) == open.end()) open.push_back(&input);
    });
  }
  return nullptr;
}

Verdict check_alive(const Site& site) {
  for (const Node* node : site.nodes) {
    if (node->is_erased())
      return Objection{&site.match.anchor(), "an earlier rewrite replaced " + node->name() + ", a part of it"};
  }
  return {};
}

Verdict check_contained(const Site& site) {
  for (const Node* node : site.nodes) {
    if (site.is_exit(*node)) continue;
    for (const Node& user : node->users()) {
      if (!site.contains(user)) return Objection{node, "its value is also used by " + user.name()};
    }
  }
  return {};
}

Verdict check_convex(const Site& site) {
  if (site.exits.size() < 2) return {};
  const std::optional<ConvexityViolation> way = convexity_violation(site.nodes, site.exits);
  if (!way) return {};
  return Objection{way->exit,
                   "its value comes back into the match, through " + way->through->name() + " to " + way->user->name()};
}

// ── Place ────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

/// The first node outside the match, and before its last exit, that uses a result; null when there is none.
Node* first_early_user(const Site& site) {
  Node* first = nullptr;
  for (const Node* exit : site.exits) {
    if (exit == site.exits.back()) break;
    for (Node& user : exit->users()) {
      if (site.contains(user) || site.exits.back()->is_before(user)) continue;
      if (!first || user.is_before(*first)) first = &user;
    }
  }
  return first;
}

/// Collects `input` and what it needs that lies after `at`, to be moved up. At most kMostMoved nodes.
constexpr std::size_t kMostMoved = 64;

Verdict collect_moves(Node& input, Node& at, const Site& site, const TrackedEffects& effects,
                      std::vector<Node*>& moves) {
  const auto no_place = [&](const std::string& why) {
    return Objection{&site.match.anchor(), "no place for the replacement: it takes " + input.name() +
                                               ", which is computed after " + at.name() + " uses a result, and " + why};
  };
  std::vector<Node*> open = {&input};
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (node->is_before(at) || std::find(moves.begin(), moves.end(), node) != moves.end()) continue;
    if (effects.of(*node).is_one_of_its_own()) return no_place(node->name() + " may not be moved");
    if (moves.size() == kMostMoved) return no_place("too much would have to be moved with it");
    std::vector<Node*> writers = effects.between(at, *node);
    writers.push_back(&at);
    for (const Node* writer : writers) {
      bool writes_input = false;
      effects.for_each_written_cell(*writer, [&](Cell written) {
        const auto touch = [&](Cell cell) { writes_input |= cell == written; };
        effects.for_each_read_cell(*node, touch);
        effects.for_each_cell(*node, touch);
      });
      if (writes_input) return no_place(writer->name() + " writes between them what " + node->name() + " reads");
    }
    moves.push_back(node);
    node->for_each_input([&](Node& needed) { open.push_back(&needed); });
  }
  return {};
}

}  // namespace

Verdict find_place(Site& site, std::span<const std::uint32_t> captures, const TrackedEffects& effects) {
  Node* early = site.exits.size() > 1 ? first_early_user(site) : nullptr;
  // A pattern that returns only what it takes is there for its effects: the last of them is the place.
  site.at = early ? early : site.exits.empty() ? site.nodes.back() : site.exits.back();
  for (const std::uint32_t capture : captures) {
    const Argument& value = site.match.values()[capture];
    Verdict verdict;
    for_each_node(value, [&](Node& node) {
      if (verdict) return;
      if (site.exits.empty() && site.contains(node)) {
        verdict = Objection{&node, "the replacement would take it, and no result stands for it"};
        return;
      }
      if (const Node* exit = site.exit_behind(node)) {
        verdict = Objection{exit, "the replacement would take it and replace it at once"};
      } else if (!node.is_before(*site.at)) {
        verdict = collect_moves(node, *site.at, site, effects, site.to_move);
      }
    });
    if (verdict) return verdict;
  }
  std::sort(site.to_move.begin(), site.to_move.end(), GraphOrder{});
  return {};
}

}  // namespace fx::internal
