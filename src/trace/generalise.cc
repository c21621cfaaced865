#include <fxgraph/trace/generaliser.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/trace/raised_calls.h>
#include <fxgraph/trace/same_program.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestConstant = 64;  // elements of a tensor that is written number by number
constexpr std::size_t kMostSamples = 10;       // to agree on other expressions

constexpr std::int64_t kFarthest = 1024;  // where rules are told apart

// Where it does not go on as before when this symbol alone grows, as next to the steps of a division, a remainder or a
// bound: another divisor has its steps elsewhere. The first such sizes, and the last.
std::vector<std::int64_t> bends_of(const SizeExpr& size, const std::string& symbol,
                                   std::map<std::string, std::int64_t> at) {
  constexpr std::ptrdiff_t kFirst = 4, kLast = 2;
  const auto value = [&](std::int64_t n) {
    at[symbol] = n;
    return size.evaluate(at).value_or(0);
  };
  std::vector<std::int64_t> bends;
  std::int64_t before = value(1), now = value(2), steps = now - before;
  for (std::int64_t n = 2; n <= kFarthest; ++n) {
    before = std::exchange(now, value(n + 1));
    if (std::exchange(steps, now - before) != now - before) bends.push_back(n);
  }
  const bool is_one = bends.size() == 1;  // a bound: beyond it there is another number, too
  if (is_one) bends.push_back(bends.front() + 1);
  if (static_cast<std::ptrdiff_t>(bends.size()) > kFirst + kLast)
    bends.erase(bends.begin() + kFirst, bends.end() - kLast);
  return bends;
}

[[noreturn]] void refuse_example(std::size_t nth, const std::string& why) {
  throw Error(ErrorKind::trace, "symbolic_trace: the program does something else at more_examples[" +
                                    std::to_string(nth) + "] than at the examples: " + why);
}

}  // namespace

void Generaliser::take_example(std::size_t nth, const std::vector<at::Tensor>& example) {
  const std::optional<GroupSizes> sizes = groups_.sizes_of(example);
  if (!sizes || *sizes == groups_.examples()) return;
  const std::string difference = search_.take(*sizes);
  if (!difference.empty()) refuse_example(nth, difference);
}

void Generaliser::check_example(std::size_t nth, const std::vector<at::Tensor>& example) const {
  const std::optional<GroupSizes> sizes = groups_.sizes_of(example);
  if (!sizes) refuse_example(nth, "sizes that belong together are not equal");
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const SizeGroup& group = groups_.groups[i];
    if (group.dimensions.empty() || group.takes((*sizes)[i])) continue;
    const SizeDimension& dimension = groups_.dimensions[group.dimensions.front()];
    refuse_example(nth, dimension_name(inputs_[dimension.input], dimension.dim) + " cannot be " +
                            std::to_string((*sizes)[i]) + (group.why.empty() ? "" : ": " + group.why));
  }
  Probe sample(program_);
  if (!sample.run(groups_.stand_ins(*sizes)) || !agrees(sample)) refuse_example(nth, "its numbers follow no rule");
}

bool Generaliser::run(const AtFoundSizes& at_found_sizes) {
  const auto same_numbers = [this](const Probe& sample) { return agrees(sample); };
  if (!retrace_.examples.empty()) search_.add_probe(*groups_.sizes_of(retrace_.given));
  for (std::size_t tries = 0; tries < kMostSamples; ++tries) {
    find_expressions();
    if (slices_more()) return false;
    if (!asks_for_sizes() || !search_.check_orders(same_numbers)) break;
  }
  if (asks_for_sizes()) {
    while (search_.check_far(same_numbers)) find_expressions();
    search_.check_beyond();
    std::optional<GroupSizes> others;
    search_.check_ones(same_numbers, &others);
    if (others && search_.add_probe(*others)) {
      find_expressions();
      search_.check_ones(same_numbers, nullptr);
    }
    search_.check_corners(same_numbers, explainer_.guessed());
  } else if (program_.session.asks_layout()) {
    search_.check_ones(same_numbers, nullptr);  // what has one of something lies in several ways
  }
  if (!runs_as_given()) return false;
  if (std::string leaf = find_unlike_leaf(program_.raised, program_, search_.samples()); !leaf.empty()) {
    retrace_.not_leaves.insert(std::move(leaf));
    return false;
  }
  groups_.fix_followers();
  at_found_sizes(groups_, same_numbers);
  write();
  return true;
}

// What the program kept of larger sizes, it has at those of the examples from now on: it is traced again, and not tried
// at any that are larger still.
bool Generaliser::is_same_at_examples() {
  constexpr int kDraws = 4;  // what follows no size may be another number each time, one of few
  for (int i = 0; i < (has_no_rule_ ? kDraws : 1) && program_.is_compared; ++i) {
    const std::string difference = search_.difference_at_examples();
    if (difference.empty()) continue;
    if (!program_.keeps_constants() || retrace_.is_bounded) SizeSearch::refuse_state(difference);
    retrace_.is_bounded = true;
    retrace_.largest = search_.largest_tried();
    return false;
  }
  return true;
}

// For each dimension one size at which another rule gives another number.
std::optional<GroupSizes> Generaliser::distinguishing_sizes() const {
  const auto group_of = [this](const SizePlace& place) -> std::optional<std::uint32_t> {
    for (const SizeDimension& dimension : groups_.dimensions) {
      if (dimension.dim == place.second && program_.log.index_of(*inputs_[dimension.input].node) == place.first)
        return dimension.group;
    }
    return std::nullopt;
  };
  std::map<std::string, std::int64_t> at;
  for (const auto& [symbol, place] : places_)
    at.emplace(symbol, program_.session.value_of(*program_.log[place.first].node).size(place.second));
  std::set<std::pair<std::uint32_t, std::int64_t>> found;
  std::set<SizeExpr> seen;
  std::vector<SizeExpr> open;
  for (const SizeExpr& size : explanation()) {
    if (explainer_.is_guess(size)) open.push_back(size);
  }
  while (!open.empty()) {
    const SizeExpr size = std::move(open.back());
    open.pop_back();
    if (!seen.insert(size).second) continue;
    if (size.is_real()) {  // of whole numbers
      open.insert(open.end(), size.operands().begin(), size.operands().end());
      continue;
    }
    size.for_each_symbol([&](const std::string& symbol) {
      const std::optional<std::uint32_t> group = group_of(places_.at(symbol));
      if (!group || groups_.groups[*group].fixed || groups_.groups[*group].follows) return;
      for (const std::int64_t bend : bends_of(size, symbol, at)) {
        if (groups_.groups[*group].may_be(bend)) found.emplace(*group, bend);
      }
    });
  }
  GroupSizes sizes = groups_.examples();
  const GroupSizes before = sizes;
  const auto take = [&](const std::pair<std::uint32_t, std::int64_t>& each) {
    const auto& [group, size] = each;
    if (sizes[group] == before[group] && !search_.has_seen(group, size)) sizes[group] = size;
  };
  // Of one dimension by turns the nearest and the farthest, where another divisor is furthest off.
  if (groups_.free().size() == 1 && search_.samples().size() % 2 == 1) {
    std::for_each(found.rbegin(), found.rend(), take);
  } else {
    std::for_each(found.begin(), found.end(), take);
  }
  return sizes == before ? std::nullopt : std::optional(groups_.with_derived(std::move(sizes)));
}

bool Generaliser::slices_more() {
  if (retrace_.is_refused || !retrace_.examples.empty()) return false;
  const std::optional<GroupSizes> sizes = search_.where_it_slices_more();
  if (!sizes) return false;
  for (const BoundTensor& input : inputs_) retrace_.given.push_back(input.example);
  retrace_.examples = groups_.stand_ins(*sizes);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    // It has no contents, perhaps no memory; an input of the same sizes is the example itself.
    at::Tensor& other = retrace_.examples[i];
    if (!other.is_same(retrace_.given[i]))
      other = at::empty_strided(other.sizes(), other.strides(), other.options()).zero_();
  }
  return true;
}

bool Generaliser::runs_as_given() {
  if (retrace_.examples.empty()) return true;
  const std::optional<GroupSizes> sizes = groups_.sizes_of(retrace_.given);
  given_ = std::make_unique<Probe>(program_);
  const bool runs = sizes && groups_.allow(*sizes) && groups_.are_within_bounds(*sizes) &&
                    given_->run(retrace_.given) && agrees(*given_);
  if (!runs) retrace_.refuse();
  return runs;
}

void Generaliser::take_values(Session& session) const {
  if (!given_) return;
  for (std::uint32_t call = 0; call < program_.log.size(); ++call) {
    const Node* node = session.standing_for(*program_.log[call].node);
    if (const at::Tensor value = given_->value_of(call); node && value.defined()) session.set_value(*node, value);
  }
}

void Generaliser::find_expressions() {
  constexpr std::size_t kMore = 3;
  constexpr int kTimes = 3;
  int times = 0;
  const std::size_t most = std::max(kMostSamples, search_.samples().size() + kMore);
  std::optional<std::vector<SizeExpr>> before;
  for (std::size_t wanted = search_.enough_samples();;) {
    search_.find(wanted);
    const std::size_t taken = search_.samples().size();
    if (!find_changes()) {
      explained_.clear();
      constants_.clear();
      break;
    }
    if (!program_.log.asks_rank()) {
      if (!search_.drop_far()) refuse_untold();
      continue;
    }
    if (!explain()) {
      before.reset();
      const bool more_may_tell = explainer_.reaches_bound() && !search_.has_far() && wanted <= taken;
      if (more_may_tell && taken < kMostSamples && search_.may_go_on()) {
        wanted = taken + 1;
      } else {
        fix_unexplained();
        wanted = search_.enough_samples();
      }
      continue;
    }
    // What is more than sizes and products has to be the same expression at some more choices of sizes.
    std::vector<SizeExpr> now = explanation();
    times = now == before && !explainer_.ambiguous() ? times + 1 : 0;
    if (!explainer_.guessed() || (times == kTimes && !search_.is_belied_far())) break;
    if (!search_.may_go_on() && taken >= search_.enough_samples() && !explainer_.ambiguous()) break;
    // No bound makes a rule right that was guessed, and that far sizes belie.
    if (taken >= most || !search_.may_go_on() || search_.is_belied_far()) {
      give_up();
      wanted = search_.enough_samples();
      before.reset();
      continue;
    }
    before = std::move(now);
    if (const std::optional<GroupSizes> sizes = distinguishing_sizes()) search_.add_probe(*sizes);
    wanted = taken + 1;
  }
}

// ── Explaining it ─────────────────────────────────────────────────────────────────────────────────────────────────

void Generaliser::add_size(std::uint32_t call) {
  Node* node = program_.session.standing_for(*program_.log[call].node);
  const at::Tensor value = program_.session.value_of(*program_.log[call].node);
  if (!node || !value.defined()) return;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    RunValues values = {value.size(dim)};
    for (const auto& sample : search_.samples()) {
      const at::IntArrayRef sizes = sample->sizes_of(call);
      if (sizes.size() != static_cast<std::size_t>(value.dim())) return;
      values.push_back(sizes[static_cast<std::size_t>(dim)]);
    }
    const SizePlace place(call, dim);
    if (explainer_.add_size(symbol_of(place), values)) places_.emplace(symbol_of(place), place);
  }
}

// The shapes for which the program has asked by then.
void Generaliser::add_questions(std::uint32_t until) {
  const auto& questions = program_.log.questions();
  for (; next_question_ < questions.size() && questions[next_question_].at <= until; ++next_question_)
    add_size(questions[next_question_].of);
}

bool Generaliser::explain() {
  explainer_ = SizeExplainer();
  places_.clear();
  explained_.clear();
  constants_.clear();
  next_question_ = 0;
  unexplained_.reset();
  unexplained_constant_.reset();
  for (const BoundTensor& input : inputs_) add_size(program_.log.index_of(*input.node));
  auto constant = constants_changed_.begin();
  for (const auto& [place, values] : changes_) {
    for (; constant != constants_changed_.end() && constant->first < place.first; ++constant) {
      if (!explain_constant(constant->first)) return false;
    }
    if (!explain_number(place)) return false;
  }
  for (; constant != constants_changed_.end(); ++constant) {
    if (!explain_constant(constant->first)) return false;
  }
  return true;
}

// A program that asks for no size has no number from one.
void Generaliser::refuse_untold() const {
  if (const std::string difference = search_.difference_at_examples(); !difference.empty())
    SizeSearch::refuse_state(difference);
  const std::uint32_t call = changes_.empty() ? constants_changed_.begin()->first : changes_.begin()->first.first;
  SizeSearch::refuse_state("where nothing but sizes is another, and it asks for none: " + program_.log.describe(call) +
                           " has other numbers");
}

std::optional<SizeExpr> Generaliser::size_for(const std::vector<Argument>& values) {
  if (values.front().is_int()) {
    RunValues integers;
    for (const Argument& value : values) integers.push_back(value.as_int());
    return explainer_.explain(integers);
  }
  Reals reals;
  for (const Argument& value : values) reals.push_back(value.as_float());
  return explainer_.explain(reals);
}

bool Generaliser::explain_number(Place place) {
  add_questions(place.first);
  const std::vector<Argument>& values = changes_.at(place);
  if (std::optional<SizeExpr> size = size_for(values)) {
    explained_.emplace_back(place, *std::move(size));
    return true;
  }
  unexplained_ = place;
  return false;
}

std::string Generaliser::no_rule(Place place) const {
  const std::vector<Argument>& values = changes_.at(place);
  std::string why = program_.log.describe(place.first) + ": its argument " + to_string(values[0]) + " is";
  for (std::size_t i = 1; i < values.size(); ++i) why += (i == 1 ? " " : ", ") + to_string(values[i]);
  return why + " at other sizes, by no rule that was found";
}

bool Generaliser::explain_constant(std::uint32_t call) {
  add_questions(call);
  const std::vector<at::Tensor>& values = constants_changed_.at(call);
  SizedConstant constant{call, values.front(), {}};
  bool fits = values.front().layout() == at::kStrided && values.front().numel() <= kLargestConstant &&
              !values.front().is_complex() && !values.front().is_quantized() && values.front().device().is_cpu();
  for (const at::Tensor& value : values) {
    fits = fits && value.sizes() == values.front().sizes() && value.scalar_type() == values.front().scalar_type();
  }
  for (std::int64_t i = 0; fits && i < values.front().numel(); ++i) {
    std::vector<Argument> numbers;
    for (const at::Tensor& value : values) {
      const at::Scalar number = value.detach().flatten()[i].item();
      numbers.push_back(number.isFloatingPoint() ? Argument(number.toDouble()) : Argument(number.toLong()));
    }
    if (std::all_of(numbers.begin(), numbers.end(), [&](const Argument& each) { return each == numbers.front(); }))
      continue;
    std::optional<SizeExpr> size = size_for(numbers);
    fits = size.has_value();
    if (size) constant.elements.emplace_back(static_cast<std::size_t>(i), *std::move(size));
  }
  if (fits) {
    constants_.push_back(std::move(constant));
    return true;
  }
  unexplained_constant_ = call;
  return false;
}

void Generaliser::fix_unexplained() {
  if (search_.drop_far()) return;  // it may be a bound
  has_no_rule_ = true;
  if (unexplained_) return fix_number(*unexplained_);
  search_.fix_dependence_of_constant(*unexplained_constant_, program_.log[*unexplained_constant_].target.str() +
                                                                 ", a tensor that the program makes without operators, "
                                                                 "is another one at other sizes");
}

void Generaliser::fix_number(Place place) { search_.fix_dependence(place.first, place.second, no_rule(place)); }

// Each further sample has asked for another expression.
void Generaliser::give_up() {
  if (search_.drop_far()) return;
  has_no_rule_ = true;
  for (const auto& [place, size] : explained_) {
    if (explainer_.is_guess(size)) return fix_number(place);
  }
  // The next choice of sizes must be another one.
  if (constants_.empty()) {
    for (const auto& [place, size] : explained_) fix_number(place);
  }
  for (const SizedConstant& constant : constants_)
    search_.fix_dependence_of_constant(constant.call,
                                       program_.log[constant.call].target.str() + " follows no rule that was found");
}

}  // namespace fx::internal
