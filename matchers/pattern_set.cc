#include <fxgraph/matchers/pattern_set.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include <fxgraph/matchers/anchor_sweep.h>
#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/reading.h>
#include <fxgraph/matchers/search.h>
#include <fxgraph/matchers/write_order.h>

namespace fx {

namespace {

using internal::Search;

/// Puts the matches of all patterns together in graph order, and resolves overlaps that the sweep did not.
std::vector<SetMatch> collect(std::vector<std::unique_ptr<Search>>& searches, const std::vector<std::size_t>& patterns,
                              const FindOptions& options, const Graph& graph) {
  std::vector<Match> matches;
  std::unordered_map<const internal::PatternData*, std::size_t> position;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    position.emplace(&searches[i]->program().pattern(), patterns[i]);
    std::move(searches[i]->matches.begin(), searches[i]->matches.end(), std::back_inserter(matches));
  }
  internal::apply_overlap(matches, options, graph);
  std::vector<SetMatch> result;
  result.reserve(matches.size());
  for (Match& match : matches) {
    const std::size_t pattern = position.at(&internal::PatternAccess::of(match));
    result.push_back({pattern, std::move(match)});
  }
  return result;
}

void sum(FindStats& total, const FindStats& one) {
  if (one.stop != SearchStop::complete) total.stop = one.stop;
  total.candidates += one.candidates;
  total.nodes_visited += one.nodes_visited;
  total.matches += one.matches;
  total.escaped += one.escaped;
}

}  // namespace

std::vector<SetMatch> PatternSet::find(const Graph& program, const FindOptions& given) const {
  const internal::Searched searched(program, patterns_, given);
  const auto& [reading, graph, options] = searched;
  internal::WriteOrder order(searched);
  std::vector<bool> claimed;
  std::vector<std::unique_ptr<Search>> searches;
  internal::AnchorIndex index;
  std::vector<std::size_t> patterns;  // of the searches
  if (reading) index.see_forms(reading->forms());
  const internal::PresentCalls present(graph);
  for (std::uint32_t i = 0; i < patterns_.size(); ++i) {
    auto facts = internal::PatternAccess::facts(patterns_[i], options);
    facts->check(options);
    internal::SearchPlan plan = facts->plan(present);
    if (plan.impossible) continue;
    index.add(static_cast<std::uint32_t>(searches.size()), *facts, plan);
    searches.push_back(
        std::make_unique<Search>(patterns_[i], std::move(facts), std::move(plan), graph, options, claimed));
    searches.back()->order = &order;
    if (reading) searches.back()->see_forms(reading->forms(), /*results=*/true);
    patterns.push_back(i);
  }
  if (!searches.empty()) {
    internal::AnchorSweep sweep(index, graph);
    const auto try_at = [&](Node& node, const std::vector<std::uint32_t>& candidates) {
      for (const std::uint32_t id : candidates) {
        Search& search = *searches[id];
        if (search.program().may_be(search.plan().anchor, node)) search.try_at(node);
      }
    };
    std::vector<std::pair<Node*, std::vector<std::uint32_t>>> made;  // what else the node that comes next is
    for (Node& node : const_cast<Graph&>(graph).nodes()) {
      if (reading && reading->forms().is_of_form(node)) {
        made.emplace_back(&node, sweep.candidates(node));
        continue;
      }
      try_at(node, sweep.candidates(node));
      for (const auto& [form, candidates] : made) try_at(*form, candidates);
      made.clear();
    }
  }
  if (given.stats) {
    *given.stats = {};
    for (const auto& search : searches) sum(*given.stats, search->stats());
  }
  std::vector<SetMatch> found = collect(searches, patterns, options, graph);
  if (reading) {
    for (SetMatch& one : found) internal::Reading::translate(reading, one.match);
  }
  return found;
}

}  // namespace fx
