// The parts of a Generaliser that look at sizes which its samples do not have: far ones, small ones, those at which
// another rule would give other numbers.
#include <fxgraph/trace/generaliser.h>

#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

namespace fx::internal {
namespace {

constexpr int kMostLessons = 6;  // that may still be explained

}  // namespace

// Few samples may follow a rule that is not the program's: at sizes where that shows, more are taken. False when the
// program does what the graph does wherever it was looked at, or when nothing was guessed.
bool Generaliser::learn_from_other_sizes(const Agrees& same_numbers) {
  bool all_do = true;
  for (int i = 0; terms_.guessed() || has_no_rule_; ++i) {
    OddInputs others(program_, inputs_, groups_);
    others.add_sizes(/*is_guess=*/true);
    others.add_telling(terms_, terms_in_use(), search_.may_go_far());
    others.run(same_numbers);
    all_do = others.all_do();
    const std::vector<GroupSizes> sizes = others.other_numbers();
    if (sizes.empty()) break;
    if (i < kMostLessons) {
      bool any = false;
      for (const GroupSizes& each : sizes) any |= search_.add_sample(each);
      if (!any) break;
    } else {
      give_up();
    }
    find_expressions();
  }
  return !all_do;
}

// The same far away, where nothing is computed: no bound makes a rule right that was guessed and that other numbers
// there belie. False where nothing can be tried there.
bool Generaliser::learn_from_far(const Agrees& same_numbers) {
  if (is_far_seen_) return true;
  for (int i = 0;; ++i) {
    const std::vector<SizeTerms::Id> terms = terms_in_use();
    const bool guesses = std::any_of(terms.begin(), terms.end(), [this](auto term) { return terms_.is_guess(term); });
    std::optional<GroupSizes> others;
    if (!search_.check_far(same_numbers, &others)) return false;
    if (!others) return true;
    if (!guesses) {
      if (!may_learn({*others, groups_.part_of_the_way(*others)}, same_numbers))
        search_.check_far(same_numbers, nullptr);
      return true;
    }
    if (i == kMostLessons || !search_.add_sample(*others)) give_up();
    find_expressions();
  }
}

// Where nothing was guessed but numbers are others at these sizes, there may be a rule for those, too (`min(n, 100)`).
// False when none is found; then nothing has changed, and bounds make right what there is.
bool Generaliser::may_learn(std::vector<GroupSizes> sizes, const Agrees& same_numbers) {
  const std::size_t count = search_.samples().size();
  const std::vector<SizeGroup> before = groups_.groups;
  for (int i = 0; i < kMostLessons; ++i) {
    const bool are_there =
        std::all_of(sizes.begin(), sizes.end(), [&](const GroupSizes& each) { return search_.add_sample(each); });
    if (!are_there || !find_changes() || !explain()) break;
    OddInputs others(program_, inputs_, groups_);
    others.add_sizes(/*is_guess=*/true);
    others.add_telling(terms_, terms_in_use(), search_.may_go_far());
    others.run(same_numbers);
    sizes = others.other_numbers();
    std::optional<GroupSizes> far;
    if (sizes.empty()) search_.check_far(same_numbers, &far);
    if (far) sizes.push_back(std::move(*far));
    if (sizes.empty()) return true;
  }
  search_.drop_behind(count);
  groups_.groups = before;
  if (!find_changes() || !explain()) {
    explained_.clear();
    constants_.clear();
  }
  return false;
}

// From which size on `chunk` makes as many parts as it is asked for, of what has a size that varies, and a little more,
// for what is shortened before: below there may be fewer at any, of 9 three instead of 4, but of 8 all. Zero where the
// program asks for two at most.
std::int64_t Generaliser::where_all_parts_are() const {
  static const Symbol kChunk("aten::chunk"), kUnsafeChunk("aten::unsafe_chunk");
  constexpr std::int64_t kLittle = 8;
  std::int64_t most = 0;
  for (std::uint32_t call = 0; call < program_.log.size(); ++call) {
    const TraceLog::Call& each = program_.log[call];
    if (each.list_length == 0 || (each.target != kChunk && each.target != kUnsafeChunk)) continue;
    const ArgumentSpan arguments = program_.log.arguments(call);
    const std::uint32_t of = program_.log.index_of(arguments[0].node());
    const at::IntArrayRef before = program_.session.value_of(*program_.log[of].node).sizes();
    const auto dim =
        static_cast<std::size_t>(c10::maybe_wrap_dim(arguments[2].as_int(), static_cast<std::int64_t>(before.size())));
    const bool varies = std::any_of(search_.samples().begin(), search_.samples().end(), [&](const auto& sample) {
      return sample->sizes_of(of).size() > dim && sample->sizes_of(of)[dim] != before[dim];
    });
    if (varies) most = std::max(most, arguments[1].as_int());
  }
  return most > 2 ? (most - 1) * (most - 1) + kLittle : 0;
}

void Generaliser::try_odd_inputs(const Agrees& same_numbers) {
  bool is_guess = asks_for_sizes() && learn_from_other_sizes(same_numbers);
  const bool is_far = asks_for_sizes() && learn_from_far(same_numbers);
  for (bool is_first = true;; is_first = false) {
    odd_.emplace(program_, inputs_, groups_);
    if (asks_for_sizes()) {
      odd_->add_beyond();
      if (!is_far) odd_->add_large();
      odd_->add_empty();
      odd_->add_ones();
      if (!is_guess) odd_->add_small();
      odd_->add_sizes(is_guess);
      odd_->add_up_to(where_all_parts_are());
      if (is_guess) odd_->add_telling(terms_, terms_in_use(), is_far);
      odd_->add_multiples();
      odd_->add_corners();
      odd_->add_spare();
    } else if (program_.session.asks_layout()) {
      odd_->add_ones();  // what lies in several ways
    }
    if (program_.log.asks_rank()) odd_->add_ranks();
    odd_->run(same_numbers);
    if (!is_first) break;
    const std::vector<GroupSizes> others = odd_->other_numbers();
    if (is_guess || others.empty() || !may_learn(others, same_numbers)) break;
    is_guess = true;
  }
  odd_->judge(same_numbers);
}

}  // namespace fx::internal
