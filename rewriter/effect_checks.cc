// The checks of legality.h that are about effects: order, and writes kept or unseen.
#include <algorithm>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/ops/records/python_names.h>
#include <fxgraph/rewriter/legality.h>

namespace fx::internal {

namespace {

const Node* earlier(const Node* a, const Node* b) { return a->is_before(*b) ? a : b; }

}  // namespace

bool switches_mode(const Node& call) { return call.is(Op::call_function) && is_mode_switch(call.target()); }

// ── Effects ──────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

/// What the match as a whole reads, writes and draws.
struct MatchEffects {
  std::vector<Cell> touched;  ///< of inputs and values
  std::vector<Cell> written;
  const Node* writer = nullptr;
  const Node* random = nullptr;
  const Node* side_effect = nullptr;
  const Node* undescribed = nullptr;
};

bool has(const std::vector<Cell>& set, Cell value) { return std::find(set.begin(), set.end(), value) != set.end(); }

MatchEffects effects_in(const Site& site, const TrackedEffects& effects) {
  MatchEffects sum;
  for (const Node* node : site.nodes) {
    const NodeEffects own = effects.of(*node);
    if (own.random) sum.random = node;
    if (own.side_effect) sum.side_effect = node;
    if (own.undescribed) sum.undescribed = node;
    if (!effects.any_writes()) continue;
    const auto touch = [&](Cell cell) { sum.touched.push_back(cell); };
    effects.for_each_cell(*node, touch);
    effects.for_each_read_cell(*node, touch);
    if (!own.writes && !own.unknown) continue;
    sum.writer = node;
    effects.for_each_written_cell(*node, [&](Cell written) { sum.written.push_back(written); });
  }
  return sum;
}

Verdict check_passing(const Node& other, const MatchEffects& match, bool draws, bool acts,
                      const TrackedEffects& effects, const Site& site) {
  const NodeEffects own = effects.of(other);
  const Node* anchor = &site.match.anchor();
  if (switches_mode(other))
    return Objection{anchor, other.name() + " switches gradients or autocast on or off in between"};
  if (own.random && (match.random || draws)) {
    return Objection{anchor, "the order of random numbers would change: " + other.name() + " draws some in between"};
  }
  if (own.side_effect && (match.side_effect || acts)) {
    return Objection{anchor, "the order of side effects would change: " + other.name() + " lies in between"};
  }
  if (own.undescribed && (match.random || match.writer || match.side_effect || draws || acts))
    return Objection{anchor,
                     "nobody has described " + other.name() + ", which lies in between, and the match has effects"};
  if (own.impure() && match.undescribed)
    return Objection{match.undescribed, "nobody has described it, and " + other.name() + " has effects in between"};
  // A seed is a side effect that decides what is drawn after it.
  if ((own.side_effect && (match.random || draws)) || (own.random && (match.side_effect || acts))) {
    return Objection{anchor,
                     "a random draw and a side effect would change places: " + other.name() + " lies in between"};
  }
  Verdict verdict;
  effects.for_each_written_cell(other, [&](Cell written) {
    if (!verdict && has(match.touched, written)) {
      verdict = Objection{anchor, other.name() + " writes in between to what the match reads"};
    }
  });
  return verdict;
}

}  // namespace

Verdict check_order(const Site& site, bool draws, bool acts, const TrackedEffects& effects) {
  const Node* first = earlier(site.nodes.front(), site.at);
  const Node* last = earlier(site.nodes.back(), site.at) == site.at ? site.nodes.back() : site.at;
  const MatchEffects match = effects_in(site, effects);
  for (const Node* other : effects.between(*first, *last)) {
    if (site.contains(*other)) continue;
    if (Verdict verdict = check_passing(*other, match, draws, acts, effects, site)) return verdict;
  }
  if (!match.writer || first == last) return {};
  // The match's own writes move: nobody in the span may read what they write.
  for (const Node* other = first->next(); other && other != last; other = other->next()) {
    if (site.contains(*other)) continue;
    bool reads = false;
    effects.for_each_read_cell(*other, [&](Cell read) { reads |= has(match.written, read); });
    if (reads) return Objection{match.writer, "it writes what " + other->name() + " reads in between"};
  }
  return {};
}

namespace {

/// True when one of `values`, or what they are computed from, was computed from `read` before `write`; also when there
/// is too much to look at.
bool is_behind(const Node& read, const Node& write, std::vector<const Node*> values) {
  constexpr std::size_t kMost = 256;
  bool found = false;
  for (std::size_t next = 0; next < values.size() && !found; ++next) {
    if (values.size() > kMost) return true;
    values[next]->for_each_input([&](const Node& input) {
      found |= &input == &read && values[next]->is_before(write);
      if (read.is_before(input) && std::find(values.begin(), values.end(), &input) == values.end())
        values.push_back(&input);
    });
  }
  return found;
}

}  // namespace

Verdict check_reads(const Site& site, std::span<Node* const> made, std::span<const Argument> results,
                    const TrackedEffects& effects) {
  if (!effects.any_writes()) return {};
  Verdict verdict;
  // What the match took itself is as it was where the match stood; check_order has seen to that. Unless the function
  // went on from what the match took, and means what another call had read before.
  const auto is_known = [&](const Node& read, const Node& write) {
    if (site.contains(read)) return true;
    bool takes = false;
    std::vector<const Node*> others;
    for (const Node* node : site.nodes) {
      node->for_each_input([&](const Node& input) {
        takes |= &input == &read;
        if (&input != &read && !site.contains(input)) others.push_back(&input);
      });
    }
    return takes && !is_behind(read, write, std::move(others));
  };
  const auto check = [&](const Node& read) {
    if (verdict || !read.is_before(*site.at) || std::find(made.begin(), made.end(), &read) != made.end()) return;
    const Node* write = effects.write_between(read, read, *site.at);
    if (write && !is_known(read, *write))
      verdict = Objection{&site.match.anchor(),
                          "the replacement reads " + read.name() + ", to which " + write->name() + " writes before"};
  };
  for (const Node* node : made) node->for_each_input(check);
  for (const Argument& result : results) for_each_node(result, check);
  return verdict;
}

Verdict check_forms(const Site& site, const TrackedEffects& effects) {
  if (!effects.any_writes()) return {};
  Verdict verdict;
  const auto check = [&](const Node& node, Cell cell) {
    if (!verdict && effects.has_inplace_view(cell))
      verdict = Objection{&node, "the program gives it, or what it reads, another shape in place"};
  };
  for (const Node* node : site.nodes) {
    const auto check_one = [&](Cell cell) { check(*node, cell); };
    effects.for_each_cell(*node, check_one);
    effects.for_each_read_cell(*node, check_one);
  }
  return verdict;
}

namespace {

/// How many calls of the pattern, which say its operator by name so that their writer knew what it does, stand for the
/// node.
std::size_t calls_that_name(const Site& site, const Node& node) {
  const PatternData& pattern = PatternAccess::of(site.match);
  std::size_t count = 0;
  for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
    const PatternNode& test = pattern.nodes[i];
    count += test.kind == PatternKind::call && site.match.values()[i].node_or_null() == &node &&
             (test.targets.is_finite() || test.op != Op::call_function);
  }
  return count;
}

/// True when the replacement writes to the value's storage too: it accounts for the write.
bool is_written_too(std::span<Node* const> also_written, const Node& value, const TrackedEffects& effects) {
  std::vector<Cell> written;
  for (const Node* node : also_written) effects.for_each_cell(*node, [&](Cell cell) { written.push_back(cell); });
  return effects.is_within(value, written);
}

/// The order in which a graph pattern lists its nodes is the order in which their effects must happen. Who writes may
/// not pass who reads either; draws and side effects keep their order among themselves.
Verdict check_pattern_order(const Site& site, bool writes, const TrackedEffects& effects) {
  const PatternData& pattern = PatternAccess::of(site.match);
  if (!pattern.from_graph) return {};
  const Node* last = nullptr;
  for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
    if (pattern.nodes[i].kind != PatternKind::call) continue;
    const Node* node = site.match.values()[i].node_or_null();
    if (!writes && !effects.of(*node).impure()) continue;
    if (last && node->is_before(*last))
      return Objection{node,
                       "it comes before " + last->name() + ", in the pattern after it, and the match has effects"};
    last = node;
  }
  return {};
}

}  // namespace

bool is_named(const Site& site, const Node& node) { return calls_that_name(site, node) > 0; }

std::pair<const Node*, const Node*> find_observer(const Site& site, const Node& from, const Node& value,
                                                  const TrackedEffects& effects) {
  for (const Node* member : effects.members(value)) {
    if (effects.is_outside(*member)) return {member, nullptr};
    if (site.contains(*member)) continue;
    for (const Node& user : member->users()) {
      if (!site.contains(user) && !user.is_before(from)) return {member, &user};
    }
  }
  return {nullptr, nullptr};
}

std::string seen_by(const std::pair<const Node*, const Node*>& observer) {
  return observer.first->name() +
         (observer.second ? ", which " + observer.second->name() + " reads later" : ", which the caller can see");
}

namespace {

/// True when the match itself made the storage, and hands it out by its last node alone: who shares it outside has it
/// from there, after all writes.
bool is_inner(const Site& site, const Node& value, const TrackedEffects& effects) {
  const TrackedEffects::Origin origin = effects.origin_of(value);
  return origin.fresh && site.contains(*origin.node) && site.exits.size() == 1 &&
         site.exits.front() == site.nodes.back();
}

}  // namespace

Verdict check_taken(const Site& site, std::span<const std::uint32_t> captures, const TrackedEffects& effects) {
  Verdict verdict;
  for (const std::uint32_t capture : captures) {
    const PatternNode& pattern = PatternAccess::of(site.match).nodes[capture];
    if (pattern.kind == PatternKind::call) continue;
    for_each_node(site.match.values()[capture], [&](const Node& node) {
      if (verdict || !site.contains(node) || !effects.of(node).impure()) return;
      verdict = Objection{&node, "it has effects, and the replacement takes it as '" + pattern.name.str() +
                                     "', so that it would stay beside what stands for it"};
    });
  }
  return verdict;
}

Verdict check_owned(const Site& site, std::span<Node* const> also_written, const TrackedEffects& effects) {
  bool impure = false, writes = false;
  for (const Node* node : site.nodes) {
    const NodeEffects own = effects.of(*node);
    if (!own.impure()) continue;
    impure = true;
    const std::size_t calls = calls_that_name(site, *node);
    if (calls == 0) return Objection{node, "it has effects, and the pattern does not name its operator"};
    if (calls > 1) return Objection{node, "it has effects once, and two calls of the pattern stand for it"};
    if (!own.writes) continue;
    writes = true;
    Verdict verdict;
    for_each_written(
        *node,
        [&](const Argument& written) {
          for_each_node(written, [&](const Node& value) {
            if (verdict || is_inner(site, value, effects) || is_written_too(also_written, value, effects)) return;
            const auto observer = find_observer(site, *node, value, effects);
            if (observer.first)
              verdict = Objection{node, "it writes to " + seen_by(observer) + ", and the replacement does not"};
          });
        },
        effects.modules());
    if (verdict) return verdict;
  }
  return impure ? check_pattern_order(site, writes, effects) : Verdict();
}

}  // namespace fx::internal
