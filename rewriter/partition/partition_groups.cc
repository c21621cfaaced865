// Two sets can be one unless a way leads from the first through others into the second. Only sets between them in the
// order of execution can be on it: one walk over those finds whether there is one and which of them depend on the first
// set; when the two are joined, those that do not go before it and those that do behind.
//
// Of three sets of one colour the first and the last cannot be one when neither can be joined with the middle one: the
// ways make one way. So each set is tried with the one before it alone, unless pairs are kept apart.
#include <fxgraph/rewriter/partition/partition_groups.h>

namespace fx {

void PartitionGroups::connect() {
  waiting_.assign(size(), 0);
  starts_.reserve(size() + 1);
  for (Group group = 0; group < size(); ++group) {
    starts_.push_back(static_cast<std::uint32_t>(before_.size()));
    const auto add_edge = [&](const Node& from) {
      const Group other = group_of_[from];
      if (other == kNone || other == group) return;
      before_.push_back(other);
      ++waiting_[other];
    };
    for (const Node* node : nodes_[group]) {
      node->for_each_input(add_edge);
      if (!order_) continue;
      for (const Node* before : order_->before(*node)) add_edge(*before);
    }
  }
  starts_.push_back(static_cast<std::uint32_t>(before_.size()));
}

const std::vector<std::vector<Group>>& PartitionGroups::in_order_of_execution() {
  if (!turned_) std::ranges::reverse(sets_);
  turned_ = true;
  return sets_;
}

bool PartitionGroups::has_rival_in(const std::vector<Group>& groups, Set set, const Rivals& rivals) const {
  return std::ranges::any_of(groups, [&](Group group) {
    return std::ranges::any_of(rivals.of(group), [&](Group rival) { return set_of_[rival] == set; });
  });
}

bool PartitionGroups::try_join(std::size_t first, std::size_t second) {
  const Set from = sequence_[first], to = sequence_[second];
  std::vector<bool> depends(second - first + 1);
  depends[0] = true;
  bool way = false;
  for (std::size_t at = first + 1; at <= second; ++at) {
    for (const Group group : sets_[sequence_[at]]) {
      for (const Group before : this->before(group)) {
        const std::size_t rank = rank_[set_of_[before]];
        if (rank < first || rank >= at || !depends[rank - first]) continue;
        depends[at - first] = true;
        way |= at == second && rank != first;
      }
    }
  }
  if (way) return false;
  std::vector<Set> window;
  const auto append = [&](bool dependent) {
    for (std::size_t at = first + 1; at < second; ++at) {
      if (depends[at - first] == dependent) window.push_back(sequence_[at]);
    }
  };
  append(false);
  window.push_back(from);
  append(true);
  for (const Group group : sets_[to]) set_of_[group] = from;
  sets_[from].insert(sets_[from].end(), sets_[to].begin(), sets_[to].end());
  sets_[to].clear();
  window.push_back(to);  // empty now
  for (std::size_t i = 0; i < window.size(); ++i) {
    sequence_[first + i] = window[i];
    rank_[window[i]] = first + i;
  }
  return true;
}

void PartitionGroups::join_where_possible(const Rivals& rivals) {
  in_order_of_execution();
  set_of_.assign(size(), 0);
  rank_.resize(sets_.size());
  for (Set set = 0; set < sets_.size(); ++set) {
    sequence_.push_back(set);
    rank_[set] = set;
    for (const Group group : sets_[set]) set_of_[group] = set;
  }
  std::map<std::uint32_t, std::vector<Set>> by_colour;
  for (Set set = 0; set < sets_.size(); ++set) {
    if (const std::uint32_t colour = colours_[sets_[set].front()]) by_colour[colour].push_back(set);
  }
  for (auto& [colour, sets] : by_colour) {
    for (bool again = true; again;) {
      again = false;
      std::ranges::sort(sets, {}, [&](Set set) { return rank_[set]; });
      for (std::size_t j = 1; j < sets.size(); ++j) {
        for (std::size_t i = j; i-- > 0;) {
          if (sets_[sets[i]].empty() || sets_[sets[j]].empty()) continue;
          if (!has_rival_in(sets_[sets[j]], sets[i], rivals) && rank_[sets[i]] < rank_[sets[j]] &&
              try_join(rank_[sets[i]], rank_[sets[j]])) {
            again = true;
            break;
          }
          if (rivals.empty()) break;
        }
      }
      std::erase_if(sets, [&](Set set) { return sets_[set].empty(); });
    }
  }
  std::vector<std::vector<Group>> ordered;
  for (const Set set : sequence_) {
    if (!sets_[set].empty()) ordered.push_back(std::move(sets_[set]));
  }
  sets_ = std::move(ordered);
}

}  // namespace fx
