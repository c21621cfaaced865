#include <fxgraph/trace/member_repair.h>

#include <algorithm>
#include <cstring>

#include <fxgraph/trace/left_over.h>
#include <fxgraph/trace/proxy_impl.h>

namespace fx::internal {
namespace {

// Whether the flag of an optional, which stands before or behind its value, went from one state to the other.
bool flag_went(const std::vector<Word>& before, const std::vector<Word>& now, std::size_t at, Word from, Word to) {
  return at < now.size() && (before[at] & 0xff) == from && (now[at] & 0xff) == to;
}

bool flag_was_cleared(const std::vector<Word>& before, const std::vector<Word>& now, std::size_t i, std::size_t size) {
  return flag_went(before, now, i - 1, 1, 0) || flag_went(before, now, i + size, 1, 0);
}

// The flag of an optional that was empty, beside the word or the tensors around it; nothing when there is none.
std::optional<std::size_t> engaged_flag(const std::vector<Word>& before, const std::vector<Word>& now, std::size_t at) {
  const auto is_tensor = [&](std::size_t i) { return now[i] != before[i] && tensors_at({now[i]})[0].defined(); };
  std::size_t end = at + 1;
  while (end < now.size() && is_tensor(end)) ++end;
  if (flag_went(before, now, end, 0, 1)) return end;
  std::size_t begin = at;
  while (begin > 0 && is_tensor(begin - 1)) --begin;
  return begin > 0 && flag_went(before, now, begin - 1, 0, 1) ? std::optional(begin - 1) : std::nullopt;
}

bool is_traced(const at::Tensor& tensor) { return tensor.defined() && tensor.key_set().has(kProxyKey); }

}  // namespace

MemberState::Repair::Repair(MemberState& state) : state_(state) {
  for (const Region& region : state.regions_) {
    now_.push_back({words_at(region.begin, region.before.size()), std::vector<bool>(region.before.size(), false)});
  }
  count_places();
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (!state.regions_[i].is_known) plan_vectors(i);
  }
  while (plan_tensors(/*in_doubt=*/false)) {
  }
  plan_exchanges();
  while (plan_tensors(/*in_doubt=*/true)) {
  }
}

void MemberState::Repair::count_places() {
  for (const ProxyImpl* proxy : LeftOver::proxies()) places_.emplace(word_of(proxy), 0);
  if (places_.empty()) return;
  const auto count = [&](const std::vector<Word>& words) {
    for (const Word word : words) {
      if (const auto at = places_.find(word); at != places_.end()) ++at->second;
    }
  };
  for (std::size_t region = 0; region < now_.size(); ++region) {
    const std::vector<Word>& now = now_[region].words;
    count(now);
    for (std::size_t i = 0; !state_.regions_[region].is_known && i + 2 < now.size(); ++i) {
      if (now[i] == now[i + 1] || !may_be_vector(now[i], now[i + 1], now[i + 2])) continue;
      std::vector<Word> words;
      if (read_words(now[i], (now[i + 1] - now[i]) / kWord, words)) count(words);
    }
  }
}

// Whether the places in which the tensor stands own it. The handle here is one owner more.
bool MemberState::Repair::is_owned(const at::Tensor& tensor) const {
  if (!tensor.defined()) return true;
  const Word word = word_of(tensor.unsafeGetTensorImpl());
  const auto places = places_.find(word);
  if (places == places_.end()) return !is_traced(tensor);
  const auto gained = gained_.find(word);
  const long owners = static_cast<long>(tensor.use_count()) - 1 + (gained == gained_.end() ? 0 : gained->second);
  return static_cast<long>(places->second) <= owners;
}

long MemberState::Repair::released(Word tensor) const {
  const auto gained = gained_.find(tensor);
  return state_.lost_owners(tensor) - (gained == gained_.end() ? 0 : gained->second);
}

// ── Vectors
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

void MemberState::Repair::plan_vectors(std::size_t index) {
  static const std::vector<at::Tensor> kEmpty;
  const std::vector<Word>&before = state_.regions_[index].before, &words = now_[index].words;
  for (const Vector& vector : state_.vectors_) {
    if (vector.region == index) plan_vector(index, vector.at, vector.tensors);
  }
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const auto is_new = [&](std::size_t at) { return words[at] != before[at] && !now_[index].settled[at]; };
    if ((is_new(i) || is_new(i + 1)) && before[i] == before[i + 1] &&
        may_be_vector(before[i], before[i + 1], before[i + 2]))
      plan_vector(index, i, kEmpty);
  }
}

// A vector of tensors is one that was, or one that was empty and holds nothing but tensors, a traced one among them.
void MemberState::Repair::plan_vector(std::size_t index, std::size_t at, const std::vector<at::Tensor>& before) {
  Now& now = now_[index];
  const std::vector<Word>& words = now.words;
  if (!may_be_vector(words[at], words[at + 1], words[at + 2])) return;
  std::vector<Word> elements;
  if (!read_words(words[at], (words[at + 1] - words[at]) / kWord, elements)) return;
  if (flag_was_cleared(state_.regions_[index].before, words, at, 3)) return;  // an optional that was emptied
  bool same = elements.size() == before.size(), traced = false;
  const std::vector<at::Tensor> tensors = tensors_at(elements);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!tensors[i].defined() && elements[i] != undefined_word()) return;
    traced |= is_traced(tensors[i]);
    same = same && tensors[i].is_same(before[i]);
  }
  if (!same && before.empty() && !traced) return;
  now.settled[at] = now.settled[at + 1] = now.settled[at + 2] = true;
  if (same) return;
  vector_steps_.push_back({index, at, &before});
  for (const Word element : elements) {
    --gained_[element];
    ++releases_[element];
    if (const auto place = places_.find(element); place != places_.end()) --place->second;
  }
  for (const at::Tensor& tensor : before) ++gained_[word_of(tensor.unsafeGetTensorImpl())];
}

// ── Tensors
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MemberState::Repair::Way MemberState::Repair::way_of(std::size_t index, std::size_t at, std::size_t& flag) const {
  const std::vector<Word>&before = state_.regions_[index].before, &words = now_[index].words;
  const at::Tensor* was = state_.tensor_before(before[at]);
  const at::Tensor tensor = tensors_at({words[at]})[0];
  const bool traced = is_traced(tensor);
  if (was ? !tensor.defined() && words[at] != undefined_word() : !traced) return Way::none;
  const Region& region = state_.regions_[index];
  if (ObjectWords{region.begin, before, words, now_[index].settled, now_[index].settled}.in_small_vector(at))
    return Way::none;
  const bool owned = is_owned(tensor);
  if (!was || !was->defined()) {
    const std::optional<std::size_t> engaged = traced && owned ? engaged_flag(before, words, at) : std::nullopt;
    flag = engaged.value_or(0);
    if (engaged || !was) return engaged ? Way::disengage : Way::none;
  }
  const bool was_owned = !tensor.defined() || !was->defined() || released(before[at]) > 0;
  if (owned && was_owned && !flag_was_cleared(before, words, at, 1)) return Way::assign;
  return traced ? Way::replace : Way::none;
}

void MemberState::Repair::add(const Step& step) {
  const Word now = now_[step.region].words[step.at];
  now_[step.region].settled[step.at] = true;
  if (step.way != Way::disengage) ++gained_[state_.regions_[step.region].before[step.at]];
  if (step.way != Way::replace) {
    --gained_[now];
    ++releases_[now];
  }
  if (const auto place = places_.find(now); place != places_.end()) --place->second;
  steps_.push_back(step);
}

// One round; whether there was a step. What is in doubt goes last, and one at a time.
bool MemberState::Repair::plan_tensors(bool in_doubt) {
  bool any = false;
  for (std::size_t index = 0; index < now_.size(); ++index) {
    const std::vector<Word>& before = state_.regions_[index].before;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (now_[index].words[i] == before[i] || now_[index].settled[i]) continue;
      std::size_t flag = 0;
      const Way way = way_of(index, i, flag);
      if (way == Way::none || (way == Way::replace && (!in_doubt || any))) continue;
      add({index, i, way, flag});
      any = true;
    }
  }
  return any;
}

// Ordinary tensors that have only changed places, all of which lie here: whoever owns them, nobody gains or loses one.
void MemberState::Repair::plan_exchanges() {
  std::vector<Step> steps;
  std::vector<Word> before, after;
  for (std::size_t index = 0; index < now_.size(); ++index) {
    const std::vector<Word>& words = now_[index].words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Word was = state_.regions_[index].before[i];
      if (words[i] == was || now_[index].settled[i]) continue;
      const at::Tensor *a = state_.tensor_before(was), *b = state_.tensor_before(words[i]);
      if (!a || !b || !a->defined() || !b->defined()) continue;
      steps.push_back({index, i, Way::assign, 0});
      before.push_back(was);
      after.push_back(words[i]);
    }
  }
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  if (before != after) return;
  for (const Step& step : steps) add(step);
}

// ── Writing
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// Numbers last: what owns a tensor again is known then.
void MemberState::Repair::run() {
  for (const VectorStep& step : vector_steps_) {
    const Word at = state_.regions_[step.region].begin + step.at * kWord;
    *static_cast<std::vector<at::Tensor>*>(pointer(at)) = *step.before;
  }
  for (const Step& step : steps_) {
    const Region& region = state_.regions_[step.region];
    auto* const value = static_cast<at::Tensor*>(pointer(region.begin + step.at * kWord));
    if (step.way == Way::disengage) {
      value->~Tensor();
      std::memcpy(static_cast<void*>(value), &region.before[step.at], kWord);
      std::memcpy(pointer(region.begin + step.flag * kWord), &region.before[step.flag], 1);
    } else {
      if (step.way == Way::replace) at::Tensor(*value).unsafeReleaseTensorImpl();
      *value = *state_.tensor_before(region.before[step.at]);
    }
  }
  gained_.clear();  // has come to be
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (now_[i].words != state_.regions_[i].before) restore_numbers(i);
  }
}

void MemberState::Repair::restore_numbers(std::size_t index) {
  const Region& region = state_.regions_[index];
  const Now& now = now_[index];
  std::vector<bool> tensors;
  for (const Word word : now.words) tensors.push_back(state_.tensor_before(word) || state_.registered_.contains(word));
  const ObjectWords words{region.begin, region.before, now.words, now.settled, tensors, region.packed};
  const auto is_explained = [&](std::size_t i) {
    return now.words[i] == region.before[i] ? released(now.words[i]) > 0 : now.settled[i];
  };
  for (const std::size_t i : words.own_numbers(state_.blocks_, is_explained)) {
    own_beside(index, i);
    std::memcpy(pointer(region.begin + i * kWord), &region.before[i], kWord);
  }
}

// A flag that is put back may be that of an optional or variant which gave up the tensors beside it: then it is to own
// them again. One owner too many does no harm, one too few would.
void MemberState::Repair::own_beside(std::size_t index, std::size_t at) {
  const std::vector<Word>&before = state_.regions_[index].before, &words = now_[index].words;
  const bool cleared = flag_went(before, words, at, 1, 0);
  const auto own = [&](std::size_t i) {
    const at::Tensor* tensor =
        words[i] == before[i] && !now_[index].settled[i] ? state_.tensor_before(words[i]) : nullptr;
    if (!tensor || !tensor->defined()) return false;
    if (released(words[i]) > 0 || (cleared && !state_.registered_.contains(words[i])))
      at::Tensor(*tensor).unsafeReleaseTensorImpl();
    return true;
  };
  for (std::size_t i = at; i > 0 && own(i - 1); --i) {
  }
  for (std::size_t i = at + 1; i < words.size() && own(i); ++i) {
  }
}

// ── What MemberState does with it
// ─────────────────────────────────────────────────────────────────────────────────────────

void MemberState::restore() {
  Repair(*this).run();
  for (Region& region : regions_) {
    region.last = region.before;
    std::fill(region.times.begin(), region.times.end(), 0);
  }
}

std::vector<ProxyImpl*> MemberState::proxies_elsewhere() {
  const Repair repair(*this);
  std::vector<ProxyImpl*> elsewhere;
  for (ProxyImpl* proxy : LeftOver::proxies()) {
    const auto at = repair.releases().find(word_of(proxy));
    const std::size_t released = at == repair.releases().end() ? 0 : at->second;
    if (c10::raw::intrusive_ptr::use_count(proxy) > released) elsewhere.push_back(proxy);
  }
  return elsewhere;
}

long MemberState::lost_owners(Word tensor) const {
  const auto held = held_.find(tensor);
  if (held == held_.end() || !held->second.defined()) return 0;
  const auto captured = LeftOver::captured();
  const auto known = captured.find(held->second.unsafeGetTensorImpl());
  const long now =
      static_cast<long>(held->second.use_count()) - static_cast<long>(known == captured.end() ? 0 : known->second);
  return static_cast<long>(owners_.at(tensor)) - now;
}

at::Tensor MemberState::before(const ProxyImpl& proxy) const {
  at::Tensor found;
  bool several = false;
  const auto may_change = [&](Word before, Word now) {
    return tensor_before(before) && (tensor_before(now) || tensors_at({now})[0].defined());
  };
  blocks_.for_each_change(may_change, [&](Word before, Word now) {
    const at::Tensor* was = now == word_of(&proxy) ? tensor_before(before) : nullptr;
    if (!was || !was->defined() || lost_owners(before) <= 0) return;  // else it only looked as if it were there
    several = several || (found.defined() && !found.is_same(*was));
    found = *was;
  });
  return several ? at::Tensor() : found;
}

}  // namespace fx::internal
