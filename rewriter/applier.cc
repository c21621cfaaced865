#include <fxgraph/rewriter/applier.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/search.h>

namespace fx::internal {

namespace {

/// The matched values that a replacement graph writes to.
std::vector<Node*> written_captures(const Site& site, const ReplacementPlan& replacement) {
  std::vector<Node*> written;
  for (const std::uint32_t capture : replacement.written_captures()) {
    for_each_node(site.match.values()[capture], [&](Node& node) { written.push_back(&node); });
  }
  return written;
}

/// Copies the notes that say where in the program a value belongs, unless they are there.
void inherit(Meta& meta, const Meta& from) {
  static const Symbol kInherited[] = {meta_key::kStackTrace, meta_key::kModuleStack};
  for (const Symbol key : kInherited) {
    const std::string* note = from.get<std::string>(key);
    if (note && !meta.get<std::string>(key)) meta.set(key, *note);
  }
}

/// True when something uses a result that the match has, and comes before `node`.
bool is_used_before(const Site& site, const Node& node) {
  for (const Node* exit : site.exits) {
    for (const Node& user : exit->users()) {
      if (user.is_before(node) && !site.contains(user)) return true;
    }
  }
  return false;
}

}  // namespace

bool Applier::is_made(const Node* node) const { return std::find(made_.begin(), made_.end(), node) != made_.end(); }

ApplyResult Applier::refuse(Verdict& verdict) {
  objection_ = std::move(*verdict);
  return ApplyResult::refused;
}

namespace {

/// True for places of a pattern where any value will do, or any node.
bool takes_any(const PatternNode& pattern, const Argument& value) {
  if (pattern.has_conditions() || pattern.tensor) return false;
  if (pattern.kind == PatternKind::value) return value.is_node();
  return pattern.kind == PatternKind::any || pattern.kind == PatternKind::rest ||
         pattern.kind == PatternKind::sequence || pattern.kind == PatternKind::one_of;
}

}  // namespace

/// Brings the values of a match up to date; what replaced one must fit the pattern at its place by being a value.
Verdict Applier::update(Match& match, bool& changed) {
  Verdict verdict;
  std::size_t place = 0;
  MatchBuilder::for_each_value(match, [&](Argument& value) {
    const std::size_t at = place++;
    if (!rewriter_.is_replaced(value)) return;
    Argument now = rewriter_.forwarded(value);
    changed = true;
    const Node* old = value.node_or_null();
    const bool replaced = old && old->is_erased() && match.contains(*old);  // check_alive says so
    if (!verdict && !replaced && !takes_any(PatternAccess::of(match).nodes[at], now))
      verdict = Objection{&match.anchor(), "an earlier rewrite replaced " + to_string(value, NodeStyle::plain) +
                                               ", of which the pattern wants more than that it is there"};
    value = std::move(now);
  });
  return verdict;
}

/// What can be said before anything is made.
Verdict Applier::check(Site& site) const {
  if (Verdict verdict = check_contained(site)) return verdict;
  if (Verdict verdict = check_convex(site)) return verdict;
  if (Verdict verdict = find_place(site, replacement_.captures(), effects_)) return verdict;
  if (!effects_.any_impure()) return {};
  if (Verdict verdict = check_order(site, replacement_.draws_random(), replacement_.has_side_effects(), effects_))
    return verdict;
  if (Verdict verdict = check_forms(site, effects_)) return verdict;
  if (replacement_.is_function()) return {};
  if (Verdict verdict = check_taken(site, replacement_.captures(), effects_)) return verdict;
  return check_owned(site, written_captures(site, replacement_), effects_);
}

/// An operator without a schema is taken at the word of who wrote it into the pattern.
void Applier::trust_named(const Site& site) {
  for (Node* node : site.nodes) {
    if (!effects_.of(*node).unknown || runs_graphs(*node) || !is_named(site, *node)) continue;
    trust(*node);
    effects_.changed(*node);
    named_.push_back(node);
  }
}

/// Where the match was refused, and of what went with it, nothing is noted.
void Applier::forget_named(bool refused) {
  for (Node* node : std::exchange(named_, {})) {
    if (!refused && !node->is_erased()) continue;
    node->meta().erase(meta_key::kTrusted);
    if (refused) effects_.changed(*node);
  }
}

ApplyResult Applier::apply(Match& match, const std::function<bool(const Match&)>& accepts) {
  try {
    const ApplyResult result = try_to_apply(match, accepts);
    if (!named_.empty()) forget_named(result != ApplyResult::applied);
    return result;
  } catch (...) {
    forget_named(true);
    throw;
  }
}

ApplyResult Applier::try_to_apply(Match& match, const std::function<bool(const Match&)>& accepts) {
  made_.clear();
  results_.clear();
  bool changed = false;
  if (Verdict verdict = update(match, changed)) return refuse(verdict);
  Site site(match);
  if (Verdict verdict = check_alive(site)) return refuse(verdict);
  if (changed && accepts && !accepts(match)) return ApplyResult::declined;
  if (effects_.any_impure()) trust_named(site);
  if (Verdict verdict = check(site)) return refuse(verdict);

  if (guard_ && (replacement_.is_function() || !MatchBuilder::asked(match).facts().empty())) guard_->prepare();
  const Rewriter::Mark mark = rewriter_.mark();
  build(site);
  if (results_.empty()) {
    rewriter_.rollback(mark);
    return ApplyResult::declined;
  }
  Verdict verdict = check_built(site);
  if (!verdict) verdict = check_facts(site);
  if (verdict) {
    rewriter_.rollback(mark);
    return refuse(verdict);
  }
  annotate(site);
  make_known();
  redirect(site);
  erase(site);
  return ApplyResult::applied;
}

void Applier::build(const Site& site) {
  for (Node* input : site.to_move) rewriter_.move_before(*input, *site.at);
  const std::uint32_t first_id = rewriter_.graph().id_bound();
  {
    const auto scope = rewriter_.inserting_before(*site.at);
    replacement_.build(site.match, rewriter_, nodes_, made_, results_);
  }
  if (replacement_.has_trusted_nodes()) {
    for (Node* node : made_) trust(*node);
  }
  if (!replacement_.is_function() || results_.empty()) return;
  for (std::uint32_t id = first_id; id < rewriter_.graph().id_bound(); ++id) {
    Node* node = rewriter_.graph().node_by_id(id);
    if (!node) continue;
    trust(*node);
    made_.push_back(node);
  }
  std::sort(made_.begin(), made_.end(), GraphOrder{});
  const std::size_t wanted = PatternAccess::of(site.match).outputs.size();
  if (results_.size() != wanted) {
    throw Error(ErrorKind::invalid_argument, "the pattern of " + rule_.str() + " returns " + std::to_string(wanted) +
                                                 " values, its replacement function " +
                                                 std::to_string(results_.size()));
  }
}

/// What a replacement graph promises by its form, a function shows only by what it made.
Verdict Applier::check_function(const Site& site) const {
  for (const Node* node : made_) {
    if (node->is_callable() || node->is(Op::get_attr)) continue;
    return Objection{&site.match.anchor(), "the replacement makes " + node->name() + ", an " +
                                               (node->is(Op::placeholder) ? "input" : "output") +
                                               " of the whole graph; it may make calls and get_attr only"};
  }
  std::vector<Node*> written;
  for (const Node* node : made_) {
    for_each_written(
        *node, [&](const Argument& value) { for_each_node(value, [&](Node& one) { written.push_back(&one); }); },
        effects_.modules());
  }
  if (Verdict verdict = check_owned(site, written, effects_)) return verdict;
  std::vector<std::uint32_t> taken;
  for (const std::uint32_t input : PatternAccess::of(site.match).inputs) {
    const Node* value = site.match.values()[input].node_or_null();
    const auto takes = [&](const Node* node) { return std::ranges::count(node->all_input_nodes(), value) != 0; };
    if (std::ranges::any_of(made_, takes)) taken.push_back(input);
  }
  if (Verdict verdict = check_taken(site, taken, effects_)) return verdict;
  bool draws = false, acts = false;
  for (const Node* node : made_) {
    const NodeEffects own = effects_.of(*node);
    draws |= own.random;
    acts |= own.side_effect;
  }
  if (draws || acts) {
    if (Verdict verdict = check_order(site, draws, acts, effects_)) return verdict;
  }
  for (const Node* node : made_) {
    for (const Node* input : node->all_input_nodes()) {
      if (!input->is_before(*node)) {
        return Objection{&site.match.anchor(), "no place for the replacement: its " + node->name() + " takes " +
                                                   input->name() + ", which comes later"};
      }
      if (const Node* exit = site.exit_behind(*input))
        return Objection{exit, "the replacement takes it and replaces it at once"};
    }
  }
  std::vector<const Node*> returned;
  for (const Argument& result : results_) for_each_node(result, [&](const Node& node) { returned.push_back(&node); });
  for (const Node* node : returned) {
    if (const Node* exit = site.exit_behind(*node)) return Objection{exit, "the replacement returns what it replaces"};
    if (site.at->is_before(*node) && (!is_made(node) || is_used_before(site, *node)))
      return Objection{&site.match.anchor(), "the replacement returns " + node->name() + ", which comes later"};
  }
  return check_reads(site, made_, results_, effects_);
}

Verdict Applier::check_built(const Site& site) {
  if (replacement_.is_function()) {
    if (Verdict verdict = check_function(site)) return verdict;
  }
  const bool plain = !replacement_.may_change_layout() && !replacement_.may_reorder_operands() &&
                     !replacement_.may_alias() && !replacement_.has_impure_nodes() && !effects_.any_writes();
  if (plain && std::none_of(site.exits.begin(), site.exits.end(),
                            [&](const Node* exit) { return effects_.of(*exit).may_alias; }))
    return {};
  if (!effects_.any_writes() &&
      std::ranges::any_of(made_, [&](const Node* node) { return effects_.of(*node).writes; })) {
    effects_.expect_writes();
    for (std::size_t i = made_.size(); i-- > 0;) effects_.remove(*made_[i]);  // not known yet, as in later rewrites
  }
  return check_aliases(site, results_, made_, effects_,
                       {replacement_.may_change_layout(), replacement_.may_reorder_operands()}, allow_output_aliases_);
}

/// Last: nothing is answered for that does not come about.
Verdict Applier::check_facts(const Site& site) {
  if (!guard_) return {};
  const std::vector<Fact>& asked = MatchBuilder::asked(site.match).facts();
  if (asked.empty()) return {};
  std::string reason = guard_->require(rule_.view(), asked);
  if (reason.empty()) return {};
  return Objection{&site.match.anchor(), std::move(reason)};
}

void Applier::annotate(const Site& site) {
  if (made_.empty()) return;
  static const Symbol kProvenance(meta_key::kProvenance);
  static const Symbol kType(meta_key::kType);
  provenance_.add(site.nodes);
  const Meta* notes = site.match.anchor().find_meta();
  for (Node* node : made_) {
    Meta& meta = node->meta();
    meta.set(kProvenance, provenance_.last());
    if (notes) inherit(meta, *notes);
  }
  const std::vector<std::uint32_t>& outputs = PatternAccess::of(site.match).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node* old = site.match.values()[outputs[i]].node_or_null();
    Node* result = results_[i].node_or_null();
    if (!old || !is_made(result)) continue;
    if (shapes_) note_shape(*old, *result);
    const Meta* meta = old->find_meta();
    const std::string* type = meta ? meta->get<std::string>(kType) : nullptr;
    if (type && !result->meta().get<std::string>(kType)) result->meta().set(kType, *type);
  }
}

// Where it lies may have changed, what it is may not.
void Applier::note_shape(const Node& old, const Node& made) {
  ValueInfo info = std::as_const(*shapes_)[old];
  for (TensorInfo& tensor : info.tensors) {
    tensor.strides.clear();
    tensor.storage = tensor.storage_bytes = -1;
  }
  (*shapes_)[made] = std::move(info);
  if (guard_) guard_->stands_for(made, old);
}

/// New nodes are known before uses move to them.
void Applier::make_known() {
  const bool all = effects_.any_impure() || effects_.any_writes();
  if (!all && !replacement_.is_function() && !replacement_.has_impure_nodes()) return;
  for (Node* node : made_) {
    if (all || effects_.of(*node).impure()) effects_.add(*node);
  }
}

void Applier::redirect(const Site& site) {
  const std::vector<std::uint32_t>& outputs = PatternAccess::of(site.match).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Node* old = site.match.values()[outputs[i]].node_or_null();
    if (!old || !site.contains(*old)) continue;
    const std::vector<Node*> users = effects_.any_writes() ? old->users().to_vector() : std::vector<Node*>();
    rewriter_.replace_all_uses_with(*old, results_[i]);
    // They look at, and write to, the new value now.
    for (Node* user : users) effects_.changed(*user);
  }
}

// Users come after what they use, so from the back. A value that the replacement still takes has users and stays.
void Applier::erase(const Site& site) {
  for (std::size_t i = site.nodes.size(); i-- > 0;) {
    Node* node = site.nodes[i];
    if (node->has_users()) continue;
    effects_.remove(*node);
    rewriter_.erase_node(*node);
  }
  // Parameters of the match that nothing else uses.
  for (const std::uint32_t parameter : replacement_.parameters()) {
    Node* node = site.match.values()[parameter].node_or_null();
    if (!node || node->is_erased() || node->has_users()) continue;
    effects_.remove(*node);
    rewriter_.erase_node(*node);
  }
}

}  // namespace fx::internal
