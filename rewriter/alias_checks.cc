// The checks of legality.h that are about storage: who shares it, and who could tell.
#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/bounded_walk.h>
#include <fxgraph/rewriter/layout_checks.h>
#include <fxgraph/rewriter/legality.h>

namespace fx::internal {

namespace {

using Values = std::vector<const Node*>;

/// The older values whose storage a new one may share.
class AliasSources {
 public:
  AliasSources(std::span<Node* const> made, const TrackedEffects& effects) : made_(made), sources_(made.size()) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      const NodeEffects own = effects.of(*made[i]);
      if (const Node* known = made[i]->is(Op::get_attr) ? effects.attribute(made[i]->target()) : nullptr)
        sources_[i].push_back(known);
      if (!own.may_alias) continue;
      effects.for_each_source(*made[i], [&](Node& input) {
        const Values from = values_of(input);
        sources_[i].insert(sources_[i].end(), from.begin(), from.end());
      });
    }
  }

  Values values_of(const Node& node) const {
    const auto at = std::find(made_.begin(), made_.end(), &node);
    if (at == made_.end()) return {&node};
    return sources_[static_cast<std::size_t>(at - made_.begin())];
  }

 private:
  std::span<Node* const> made_;
  std::vector<Values> sources_;
};

/// A node outside the match that writes to the value after the match began, or null.
const Node* later_write(const Site& site, const Node& value, const TrackedEffects& effects) {
  const Node* last = effects.last_write(value);
  if (!last || last->is_before(*site.nodes.front())) return nullptr;
  if (!site.contains(*last)) return last;
  for (const Node* other : effects.between(*site.nodes.front(), *last)) {
    if (!site.contains(*other) && effects.may_write(*other, value)) return other;
  }
  return nullptr;
}

/// The new values beside those that they replace: the same storage, or each a storage of its own where there was one.
class Relations {
 public:
  Relations(const Site& site, std::span<const Argument> results, std::span<Node* const> made,
            const TrackedEffects& effects)
      : site_(site), made_(made), effects_(effects) {
    const std::vector<std::uint32_t>& outputs = PatternAccess::of(site.match).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Node* old = site.match.values()[outputs[i]].node_or_null();
      const Node* now = results[i].node_or_null();
      if (!old || !now) continue;
      pairs_.push_back({old, effects.origin_of(*old), effects.origin_of(*now), false});
      Pair& pair = pairs_.back();
      pair.own = pair.then == pair.now || (is_private(*old) && is_private(*now));
    }
  }

  /// True when nobody who writes, or asks, could tell `old` from what stands for it now by its storage.
  bool kept(const Node& old) const {
    for (const Pair& pair : pairs_) {
      if (pair.old != &old) continue;
      return pair.then == pair.now || (pair.own && std::all_of(pairs_.begin(), pairs_.end(), [&](const Pair& other) {
                                         return (other.then == pair.then) == (other.now == pair.now);
                                       }));
    }
    return false;
  }

  bool same_storage(const Node& old) const {
    return std::ranges::any_of(pairs_, [&](const Pair& pair) { return pair.old == &old && pair.then == pair.now; });
  }

 private:
  struct Pair {
    const Node* old;
    TrackedEffects::Origin then, now;
    bool own;
  };

  bool is_made(const Node& node) const { return std::find(made_.begin(), made_.end(), &node) != made_.end(); }

  /// True when the storage is one that the program makes, and nothing but the results, the match and what came before
  /// it uses it: how the results stand to each other is kept() to say.
  bool is_private(const Node& one) const {
    const auto has_other_users = [&](const Node& value) {
      if (effects_.is_outside(value)) return true;
      const bool result = site_.is_exit(value) || is_made(value);
      const auto is_other = [&](const Node& user) { return !is_inside(user) && !user.is_before(*site_.nodes.front()); };
      return !result && std::any_of(value.users().begin(), value.users().end(), is_other);
    };
    const auto sharing = [&](const Node& value, auto&& visit) {
      if (!effects_.is_fresh(value)) effects_.for_each_source(value, visit);
      const bool result = site_.is_exit(value) || is_made(value);
      for (const Node& user : value.users()) {
        if ((is_inside(user) || !result) && effects_.may_alias_input(user, value)) visit(user);
      }
    };
    return !any_reached(one, 256, has_other_users, sharing);
  }
  bool is_inside(const Node& user) const { return site_.contains(user) || is_made(user); }

  const Site& site_;
  std::span<Node* const> made_;
  const TrackedEffects& effects_;
  std::vector<Pair> pairs_;
};

Verdict check_later_writes(const Site& site, const Node& old, const Values& now, const TrackedEffects& effects) {
  Values concerned = {&old};
  concerned.insert(concerned.end(), now.begin(), now.end());
  for (const Node* one : concerned) {
    if (const Node* write = later_write(site, *one, effects)) {
      const std::string does = effects.of(*write).unknown
                                   ? " may write to it: nothing is known of " + write->target().str()
                                   : " writes to it";
      return Objection{&old, "its replacement would share storage differently, and " + write->name() + does};
    }
  }
  return {};
}

/// `reshape` and the like: a view where the strides allow it.
bool may_copy(const Node& node) {
  const Call call = call_of(node);
  return call && call.schema().traits.may_copy;
}

bool is_detach(const Node& node) {
  const Call call = call_of(node);
  return call && packet_of(call.schema().target.view()) == "aten::detach";
}

bool writes_to(const Node& call, const Node& value, const TrackedEffects& effects) {
  bool writes = false;
  const auto look_at = [&](const Argument& written) {
    for_each_node(written, [&](const Node& one) { writes |= &one == &value; });
  };
  for_each_written(call, look_at, effects.modules());
  return writes;
}

/// A call that writes to a tensor and takes it a second time, under whatever name, may want two: a view of it, and no
/// other, is one. What lies between may forward the very tensor, as dropout in evaluation does. And autograd refuses to
/// write to what is trained, but by way of `detach`.
Verdict check_writers(const Node& old, const Node& now, const TrackedEffects& effects) {
  constexpr std::size_t kMost = 64;
  const bool detaches = is_detach(old);
  std::vector<const Node*> same = {&old};
  for (std::size_t next = 0; next < same.size(); ++next) {
    if (next == kMost) return Objection{&old, "too many values may be it, or a view of it, to look at"};
    for (const Node& user : same[next]->users()) {
      const NodeEffects does = effects.of(user);
      if (does.may_alias && std::ranges::find(same, &user) == same.end()) same.push_back(&user);
      if (!does.writes) continue;
      bool takes = false;
      user.for_each_input([&](const Node& input) {
        takes |= std::ranges::find(same, &input) == same.end() && effects.may_alias(input, now);
      });
      if (takes) return Objection{&old, user.name() + " writes, and would take " + now.name() + " twice"};
      if (detaches && writes_to(user, *same[next], effects))
        return Objection{&old, user.name() + " writes to it, which autograd allows where it is detached"};
    }
  }
  return {};
}

/// A new write to older storage: the match wrote there too, or nobody reads it any more.
Verdict check_new_write(const Site& site, const Node& writer, const AliasSources& sources,
                        const TrackedEffects& effects) {
  Verdict verdict;
  std::vector<Cell> written_before;
  for (const Node* node : site.nodes) {
    effects.for_each_written_cell(*node, [&](Cell written) { written_before.push_back(written); });
  }
  for_each_written(
      writer,
      [&](const Argument& written) {
        for_each_node(written, [&](const Node& value) {
          for (const Node* source : sources.values_of(value)) {
            if (verdict || effects.is_within(*source, written_before)) continue;
            const auto observer = find_observer(site, *site.at, *source, effects);
            if (observer.first)
              verdict = Objection{&site.match.anchor(),
                                  "the replacement's " + writer.name() + " writes to " + seen_by(observer)};
          }
        });
      },
      effects.modules());
  return verdict;
}

constexpr const char* kPermission = "; ReplaceOptions::allow_output_aliases (--allow-output-aliases) permits it";

/// The caller gets a result, or a view of it, that it could write to: it may not come to share other storage.
Verdict check_returned(const Node& old, const Node& result, const TrackedEffects& effects) {
  if (!effects.escapes(old)) return {};
  const TrackedEffects::Origin now = effects.origin_of(result);
  const bool known = now.fresh || now.node->is(Op::placeholder) || now.node->is(Op::get_attr);
  const bool state = !now.fresh && effects.is_outside(*now.node) && !known;
  const std::string what = now.node->is(Op::placeholder)   ? ", an input"
                           : now.node->is(Op::get_attr)    ? ", an attribute"
                           : known && is_result(*now.node) ? ", returned too"
                                                           : "";
  return Objection{&old, "it is returned, and its replacement " +
                             (known   ? "would share storage with " + now.node->name() + what
                              : state ? "may share storage with what the module of " + now.node->name() + " holds"
                                      : "may share storage with what " + now.node->name() + " takes") +
                             kPermission};
}

/// Whether what it gives may be its argument itself: `contiguous`, dropout in evaluation, what is written in place.
bool may_forward(const Node& node, const TrackedEffects& effects) {
  constexpr std::array<std::string_view, 3> kNewTensors = {"aten::ravel", "aten::reshape", "aten::reshape_as"};
  const Call call = call_of(node);
  if (!call || effects.of(node).writes || std::ranges::any_of(call.schema().arguments, &SchemaArgument::hidden_alias))
    return effects.of(node).may_alias;
  return call.schema().traits.may_copy &&
         std::ranges::find(kNewTensors, packet_of(call.schema().target.view())) == kNewTensors.end();
}

/// A view is a tensor of its own, whose sizes the caller may change (`unsqueeze_`): it does not become an input, a
/// parameter or another result.
Verdict check_own_tensor(const Node& old, const Node& result, std::span<Node* const> made,
                         const TrackedEffects& effects) {
  const Call call = call_of(old);
  if (!call || !call.schema().traits.view || may_forward(old, effects)) return {};
  if (std::ranges::find(made, &result) != made.end() && !may_forward(result, effects)) return {};
  const auto readers = [&](const Node& value, auto&& visit) {
    for (const Node& user : value.users()) {
      if (may_forward(user, effects) && effects.may_alias_input(user, value)) visit(user);
    }
  };
  constexpr std::size_t kMost = 64;
  if (!any_reached(old, kMost, is_result, readers)) return {};
  const auto arguments = [&](const Node& value, auto&& visit) {
    if (may_forward(value, effects)) effects.for_each_source(value, visit);
  };
  const auto is_seen = [&](const Node& value) { return effects.is_outside(value) || is_result(value); };
  if (!any_reached(result, kMost, is_seen, arguments)) return {};
  return Objection{&old, "it is returned, a tensor of its own whose sizes the caller may change, and its replacement " +
                             result.name() + " is not" + kPermission};
}

/// The view through which several elements of `value` may be one in memory, null when there is none: what is computed
/// has each by itself. `unknown` when there are too many places to look at.
const Node* overlapping_view(const Node& value, const TrackedEffects& effects, const Node* unknown) {
  static constexpr std::array<std::string_view, 7> kOverlapping = {
      "aten::as_strided", "aten::broadcast_tensors", "aten::broadcast_to", "aten::expand",
      "aten::expand_as",  "aten::meshgrid",          "aten::unfold"};
  const Node* found = unknown;
  const auto overlaps = [&](const Node& one) {
    const Call call = call_of(one);
    if (!call || std::ranges::find(kOverlapping, packet_of(call.schema().target.view())) == kOverlapping.end())
      return false;
    found = &one;
    return true;
  };
  const auto looks_at = [&](const Node& one, auto&& visit) {
    if (!effects.is_fresh(one)) effects.for_each_source(one, visit);
  };
  return any_reached(value, 256, overlaps, looks_at) ? found : nullptr;
}

/// Whether `old` is a view of `result`, by calls of the match alone.
bool is_view_of(const Node& old, const Node& result, const Site& site, const TrackedEffects& effects) {
  const auto looks_at = [&](const Node& one, auto&& visit) {
    if (site.contains(one) && !effects.is_fresh(one)) effects.for_each_source(one, visit);
  };
  bool found = false;
  const auto is_result_itself = [&](const Node& one) { return found = &one == &result; };
  any_reached(old, 256, is_result_itself, looks_at);
  return found;
}

/// A value that somebody writes to has each element by itself: so must what stands for it. Of what it was a view of all
/// along, it does as before.
Verdict check_overlap(const Site& site, const Node& old, const Node& result, const TrackedEffects& effects) {
  if (is_view_of(old, result, site, effects)) return {};
  const bool written = effects.any_writer(old, [&](const Node& writer) { return old.is_before(writer); });
  if ((!written && !effects.escapes(old)) || overlapping_view(old, effects, nullptr)) return {};
  const Node* view = overlapping_view(result, effects, &result);
  if (!view) return {};
  return Objection{&old, (written ? "it is written to" : "it is returned, and the caller may write to it") +
                             std::string(", and of its replacement several elements may be one in memory: ") +
                             view->name()};
}

}  // namespace

Verdict check_aliases(const Site& site, std::span<const Argument> results, std::span<Node* const> made,
                      const TrackedEffects& effects, MayChange change, bool allow_output_aliases) {
  const AliasSources sources(effects.any_writes() ? made : std::span<Node* const>(), effects);
  for (const Node* node : effects.any_writes() ? made : std::span<Node* const>()) {
    if (!effects.of(*node).writes) continue;
    if (Verdict verdict = check_new_write(site, *node, sources, effects)) return verdict;
  }
  const Relations relations(site, results, made, effects);
  const std::vector<std::uint32_t>& outputs = PatternAccess::of(site.match).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node* old = site.match.values()[outputs[i]].node_or_null();
    if (!old || !site.contains(*old)) continue;
    const Node* result = results[i].node_or_null();
    if (!result) {
      if (!effects.any_writes()) continue;
      if (Verdict verdict = check_later_writes(site, *old, Values(), effects)) return verdict;
      continue;
    }
    if (effects.any_writes()) {
      if (Verdict verdict = check_writers(*old, *result, effects)) return verdict;
    }
    if (Verdict verdict = check_overlap(site, *old, *result, effects)) return verdict;
    if (!allow_output_aliases) {
      if (Verdict verdict = check_own_tensor(*old, *result, made, effects)) return verdict;
    }
    const bool same = !change.operands || same_operands(*old, site.nodes, *result, made);
    if (relations.kept(*old)) {
      // Views of the same elements of one storage lie alike.
      const bool may_lie_otherwise = change.layout && !relations.same_storage(*old);
      const auto [then, now] =
          may_lie_otherwise ? layouts_of(*old, site.nodes, *result, made) : std::pair(Layout::taken, Layout::taken);
      // Two reshapes may have copied in between, and one may not.
      const bool one_view = std::ranges::find(made, result) != made.end() && may_copy(*old) && may_copy(*result);
      if (then == now && then != Layout::part && (same || then != Layout::taken) && !one_view) continue;
      if (Verdict verdict = check_layout(*old, true, effects, now == Layout::follows || now == Layout::contiguous))
        return verdict;
      continue;
    }
    if (effects.any_writes()) {
      if (Verdict verdict = check_later_writes(site, *old, sources.values_of(*result), effects)) return verdict;
    }
    if (Verdict verdict = check_layout(*old, !same || layout_of(*old, {}) != Layout::taken, effects)) return verdict;
    if (allow_output_aliases) continue;
    if (Verdict verdict = check_returned(*old, *result, effects)) return verdict;
  }
  return {};
}

}  // namespace fx::internal
