#include <fxgraph/matchers/matcher.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <fxgraph/ir/convexity.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/reading.h>
#include <fxgraph/matchers/search.h>
#include <fxgraph/matchers/write_order.h>
#include <fxgraph/support/error.h>

namespace fx {

std::string_view to_string(SearchStop stop) {
  static constexpr std::array<std::string_view, 2> kNames = {"complete", "budget"};
  return kNames[static_cast<std::size_t>(stop)];
}

namespace internal {

Search::Search(const Pattern& pattern, std::shared_ptr<const PatternFacts> facts, SearchPlan plan, const Graph& graph,
               const FindOptions& options, std::vector<bool>& claimed)
    : graph_(graph),
      options_(options),
      program_(pattern, std::move(facts), options),
      plan_(std::move(plan)),
      engine_(program_, graph_, options, stats_),
      claimed_(claimed) {
  engine_.set_plan(plan_);
}

bool Search::is_claimed() const {
  for (const Node* node : const_cast<Engine&>(engine_).matched_nodes()) {
    if (node->id() < claimed_.size() && claimed_[node->id()]) return true;
  }
  return false;
}

/// True when a result is no value of the program, or is one only inside of what counts as one.
bool Search::ends_at_part() const {
  const PatternData& pattern = program_.pattern();
  return std::ranges::any_of(pattern.roots, [&](std::uint32_t root) {
    const Node* node = engine_.is_bound(root) ? engine_.value(root).node : nullptr;
    if (!node || !ends_->is_of_form(*node)) return false;
    const Form* form = ends_->form(*node);
    return !form || ends_->is_of_form(*form->of) || ends_->is_part(*form->of);
  });
}

/// Takes the engine's match; false when the same bindings are there already.
bool Search::keep() {
  if (options_.overlap == Overlap::first) {
    if (claimed_.empty()) claimed_.resize(graph_.id_bound());
    for (const Node* node : engine_.matched_nodes()) claimed_[node->id()] = true;
    if (pool) {
      pool->add(program_, engine_);
      return true;
    }
  }
  Match match = MatchBuilder::make(program_, engine_);
  if (options_.overlap == Overlap::all) {
    // Two orders of equal operands, or two alternatives that say the same, bind alike.
    std::size_t hash = 0;
    for (const Argument& value : match.values()) hash = hash * 31 + value.hash();
    const auto [from, to] = kept_here_.equal_range(hash);
    for (auto same = from; same != to; ++same) {
      if (matches[same->second] == match) return false;
    }
    kept_here_.emplace(hash, matches.size());
  }
  matches.push_back(std::move(match));
  return true;
}

/// The results are the exits.
static bool is_convex(const Match& match) {
  const std::vector<Argument> outputs = match.outputs();
  std::vector<Node*> exits;
  std::ranges::copy_if(match.nodes(), std::back_inserter(exits),
                       [&](Node* node) { return std::ranges::count(outputs, Argument(*node)) > 0; });
  return !convexity_violation(match.nodes(), exits);
}

bool Search::try_at(Node& anchor) {
  ++stats_.candidates;
  kept_here_.clear();
  bool kept = false;
  bool escaped = false;
  engine_.start(anchor);
  while (engine_.next()) {
    if (ends_ && ends_at_part()) continue;
    ++stats_.matches;
    if (options_.contained) {
      if (const auto [value, user] = engine_.escape(); value) {
        if (!escaped && want_escapes) escapes.push_back({MatchBuilder::make(program_, engine_), value, user});
        escaped = true;
        continue;
      }
    }
    if (options_.convex && !is_convex(MatchBuilder::make(program_, engine_))) continue;
    if (order && order->write_between(engine_.matched_nodes())) continue;
    if (options_.overlap == Overlap::first && is_claimed()) continue;
    kept |= keep();
    if (options_.overlap == Overlap::first) break;
  }
  stats_.escaped += escaped && !kept;
  if (escaped && kept && want_escapes) escapes.pop_back();
  if (engine_.exhausted()) stats_.stop = SearchStop::budget;
  return !engine_.exhausted();
}

void Search::try_all() {
  if (!ends_) return for_each_candidate(graph_, program_, plan_, [&](Node& node) { return try_at(node); });
  if (plan_.impossible) return;
  ends_->for_each_node(graph_, [&](Node& node) { return !program_.may_be(plan_.anchor, node) || try_at(node); });
}

namespace {

bool earlier(const Match& a, const Match& b) { return a.anchor().is_before(b.anchor()); }

[[noreturn]] void throw_overlap(const Node& node, const Match& a, const Match& b) {
  throw Error(ErrorKind::invalid_argument,
              "the matches at " + a.anchor().name() + " and " + b.anchor().name() + " share " + node.name() +
                  "; choose Overlap::first or Overlap::largest to keep one of them",
              node.name());
}

/// Two ways to match the same nodes with the same results, as a sum of x and x does in either order.
bool is_same_place(const Match& a, const Match& b) {
  const PatternData& pattern = PatternAccess::of(a);
  return &pattern == &PatternAccess::of(b) && std::ranges::equal(a.nodes(), b.nodes()) &&
         std::ranges::all_of(pattern.roots, [&](std::uint32_t root) { return a.values()[root] == b.values()[root]; });
}

/// The largest benefit first; each match is asked once.
void sort_by_benefit(std::vector<Match>& matches, const FindOptions& options) {
  std::vector<std::pair<double, Match>> valued;
  valued.reserve(matches.size());
  for (Match& match : matches) {
    const double benefit = options.benefit ? options.benefit(match) : static_cast<double>(match.nodes().size());
    valued.emplace_back(benefit, std::move(match));
  }
  std::stable_sort(valued.begin(), valued.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < matches.size(); ++i) matches[i] = std::move(valued[i].second);
}

}  // namespace

void apply_overlap(std::vector<Match>& matches, const FindOptions& options, const Graph& graph) {
  const Overlap overlap = options.overlap;
  if (!std::is_sorted(matches.begin(), matches.end(), earlier))
    std::stable_sort(matches.begin(), matches.end(), earlier);
  if (overlap == Overlap::all || overlap == Overlap::first || matches.empty()) return;
  if (overlap == Overlap::largest) {
    std::stable_sort(matches.begin(), matches.end(),
                     [](const Match& a, const Match& b) { return a.nodes().size() > b.nodes().size(); });
  }
  if (overlap == Overlap::best_benefit) sort_by_benefit(matches, options);
  NodeMap<const Match*> owner(graph, nullptr);
  std::vector<Match> kept;
  kept.reserve(matches.size());
  for (Match& match : matches) {
    const Node* shared = nullptr;
    for (const Node* node : match.nodes()) shared = owner[*node] ? node : shared;
    if (shared && overlap == Overlap::error && !is_same_place(*owner[*shared], match))
      throw_overlap(*shared, *owner[*shared], match);
    if (shared) continue;
    kept.push_back(std::move(match));
    for (const Node* node : kept.back().nodes()) owner[*node] = &kept.back();
  }
  matches = std::move(kept);
  std::stable_sort(matches.begin(), matches.end(), earlier);
}

}  // namespace internal

std::vector<Match> find(const Graph& graph, const Pattern& pattern, const FindOptions& options) {
  const internal::Searched searched(graph, {&pattern, 1}, options);
  std::vector<bool> claimed;
  internal::Search search(pattern, internal::PresentCalls(searched.graph), searched.options, claimed);
  if (searched.reading) search.see_forms(searched.reading->forms(), /*results=*/true);
  internal::WriteOrder order(searched);
  search.order = &order;
  search.try_all();
  if (options.stats) *options.stats = search.stats();
  internal::apply_overlap(search.matches, searched.options, searched.graph);
  if (searched.reading) {
    for (Match& match : search.matches) internal::Reading::translate(searched.reading, match);
  }
  return std::move(search.matches);
}

bool matches(const Graph& graph, const Pattern& pattern, const Node& node, const FindOptions& options) {
  const internal::Searched searched(graph, {&pattern, 1}, options);
  const Node* value = searched.value_of(node);
  if (!value) return false;
  NodeMatcher matcher(searched.graph, pattern, searched.options);
  if (searched.reading) matcher.see_forms(searched.reading->forms());
  internal::WriteOrder order(searched);
  const auto fits = [&](const Node& at) {
    const std::optional<Match> match = matcher.match(at);
    return match && !order.write_between(match->nodes());
  };
  const bool found =
      fits(*value) || std::ranges::any_of(searched.forms_of(*value), [&](const Node* form) { return fits(*form); });
  if (options.stats) *options.stats = matcher.stats();
  return found;
}

// ── One node after the other ─────────────────────────────────────────────────────────────────────────────────────────

struct NodeMatcher::State {
  State(const Graph& graph, const Pattern& pattern, const FindOptions& given)
      : options(given),
        program(pattern, options),
        plan(program.facts().plan(internal::PresentCalls(graph), internal::PatternAccess::of(pattern).anchor)),
        engine(program, graph, options, stats) {
    engine.set_plan(plan);
  }

  FindOptions options;
  FindStats stats;
  internal::CompiledPattern program;
  internal::SearchPlan plan;
  internal::Engine engine;
};

NodeMatcher::NodeMatcher(const Graph& graph, const Pattern& pattern, const FindOptions& options)
    : state_(std::make_unique<State>(graph, pattern, options)) {}
NodeMatcher::~NodeMatcher() = default;
NodeMatcher::NodeMatcher(NodeMatcher&&) noexcept = default;

const FindStats& NodeMatcher::stats() const { return state_->stats; }

bool NodeMatcher::search(const Node& node) {
  State& state = *state_;
  internal::Engine& engine = state.engine;
  if (!state.program.may_be(state.plan.anchor, node)) return false;
  ++state.stats.candidates;
  engine.forget_scans();
  engine.renew_budget();
  engine.start(const_cast<Node&>(node));
  while (engine.next()) {
    ++state.stats.matches;
    if (state.options.contained && engine.escape().first) continue;
    if (state.options.convex && !internal::is_convex(internal::MatchBuilder::make(state.program, engine))) continue;
    return true;
  }
  if (engine.exhausted()) state.stats.stop = SearchStop::budget;
  return false;
}

void NodeMatcher::see_forms(const internal::Forms& forms) { state_->engine.see_forms(forms); }

bool NodeMatcher::matches(const Node& node) { return search(node); }

std::optional<Match> NodeMatcher::match(const Node& node) {
  if (!search(node)) return std::nullopt;
  return internal::MatchBuilder::make(state_->program, state_->engine);
}

}  // namespace fx
