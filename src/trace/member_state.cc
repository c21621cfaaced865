#include <fxgraph/trace/member_state.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/trace/borrowed.h>
#include <fxgraph/trace/left_over.h>
#include <fxgraph/trace/proxy_impl.h>

namespace fx::internal {
namespace {

using torch::nn::Module;

constexpr std::size_t kLargestObject = std::size_t{1} << 20;
constexpr std::size_t kLargestVector = std::size_t{1} << 16;  // bytes
constexpr std::size_t kNear = 4;  // words: no container has its count further from an address

std::vector<Word> words_at(Word begin, std::size_t count) {
  std::vector<Word> words(count);
  if (count > 0) std::memcpy(words.data(), pointer(begin), count * kWord);
  return words;
}

// Types that have nothing but what is registered.
bool has_members(const Module& module) {
  return !(dynamic_cast<const GraphModule*>(&module) || dynamic_cast<const LeafModule*>(&module) ||
           dynamic_cast<const Holder*>(&module));
}

// Their tensors are registered, each and every one.
bool is_of_torch(const Module& module) { return module.name().starts_with("torch::nn::"); }

struct Extent {
  Word begin = 0, end = 0;
};

// A shared pointer's own words.
std::array<Word, 2> words_of(const std::shared_ptr<Module>& module) {
  std::array<Word, 2> words;
  static_assert(sizeof(module) == sizeof(words));
  std::memcpy(words.data(), static_cast<const void*>(&module), sizeof(module));
  return words;
}

// From the object to the end of what was allocated for it; nothing where that is not known.
Extent extent_of(const std::shared_ptr<Module>& module) {
  if (const auto* borrowed = std::get_deleter<Borrowed>(module))
    return {word_of(borrowed->begin), word_of(borrowed->begin) + borrowed->size};
#if defined(__GLIBC__) && defined(__GLIBCXX__)
  const Word object = word_of(dynamic_cast<const void*>(module.get()));
  const Word control = words_of(module)[1];
  if (control == 0) return {};
  const auto* counted = static_cast<const std::_Sp_counted_base<__gnu_cxx::__default_lock_policy>*>(pointer(control));
  const std::string_view type = typeid(*counted).name();
  Word allocation = 0;
  if (type.starts_with("St23_Sp_counted_ptr_inplace") && type.find("SaI") != std::string_view::npos) {
    allocation = control;  // std::make_shared
  } else if (type.starts_with("St15_Sp_counted_ptrI") && words_at(control + 2 * kWord, 1)[0] == object) {
    allocation = object;  // new; the pointer that will be deleted stands behind the counts
  }
  const std::size_t size = allocation ? malloc_usable_size(pointer(allocation)) : 0;
  const std::size_t before = object - allocation;
  return size > before && size < kLargestObject ? Extent{object, object + (size - before)} : Extent();
#else
  return {};
#endif
}

// Three addresses in one chunk, which begins with the first; or three that are null.
bool may_be_vector(Word begin, Word end, Word capacity) {
  if (begin > end || end > capacity || (end - begin) % kWord != 0 || capacity - begin > kLargestVector) return false;
  return begin == 0 ? capacity == 0 : capacity > begin && is_chunk_of(begin, capacity - begin);
}

// The tensors of what may be a vector of them; nothing when it is none.
std::optional<std::vector<at::Tensor>> tensors_between(Word begin, Word end) {
  std::vector<Word> words;
  if (!read_words(begin, (end - begin) / kWord, words)) return std::nullopt;
  std::vector<at::Tensor> tensors = tensors_at(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!tensors[i].defined() && words[i] != undefined_word()) return std::nullopt;
  }
  return tensors;
}

// Whether the flag of an optional, which stands before or behind its value, went from one state to the other.
bool flag_went(const std::vector<Word>& before, const std::vector<Word>& now, std::size_t at, Word from, Word to) {
  return at < now.size() && (before[at] & 0xff) == from && (now[at] & 0xff) == to;
}

bool flag_was_cleared(const std::vector<Word>& before, const std::vector<Word>& now, std::size_t i, std::size_t size) {
  return flag_went(before, now, i - 1, 1, 0) || flag_went(before, now, i + size, 1, 0);
}

}  // namespace

void MemberState::add(const std::shared_ptr<Module>& module) {
  const std::size_t number = objects_++;
  if (!module) return;
  for (const Word word : words_of(module)) registered_.insert(word);
  registered_.insert(word_of(dynamic_cast<const void*>(module.get())));
  const auto add_tensor = [&](const at::Tensor& tensor) {
    if (tensor.defined() && registered_.insert(word_of(tensor.unsafeGetTensorImpl())).second)
      held_.emplace(word_of(tensor.unsafeGetTensorImpl()), tensor);
  };
  for (const at::Tensor& tensor : module->parameters(/*recurse=*/false)) add_tensor(tensor);
  for (const at::Tensor& tensor : module->buffers(/*recurse=*/false)) add_tensor(tensor);
  if (!has_members(*module)) return;
  const bool known = is_of_torch(*module);
  const Extent extent = extent_of(module);
  const Word base = word_of(static_cast<const Module*>(module.get()));
  const auto add_region = [&](Word from, Word to) {
    if (from < to && (to - from) / kWord > 0)
      regions_.push_back({number, from, known, std::vector<Word>((to - from) / kWord), {}, {}});
  };
  add_region(extent.begin, std::min(extent.end, base));
  add_region(base + sizeof(Module), extent.end);
}

void MemberState::begin() {
  std::vector<Word> all;
  for (Region& region : regions_) {
    region.before = region.last = words_at(region.begin, region.before.size());
    region.times.assign(region.before.size(), 0);
    if (!region.is_known) all.insert(all.end(), region.before.begin(), region.before.end());
  }
  hold(all);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (!regions_[i].is_known) find_vectors(i);
  }
  const auto captured = LeftOver::captured();
  for (const auto& [word, tensor] : held_) {
    const auto known = captured.find(tensor.unsafeGetTensorImpl());
    if (tensor.defined()) owners_.emplace(word, tensor.use_count() - (known == captured.end() ? 0 : known->second));
  }
}

void MemberState::hold(const std::vector<Word>& words) {
  held_.emplace(undefined_word(), at::Tensor());
  const std::vector<at::Tensor> tensors = tensors_at(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (tensors[i].defined()) held_.emplace(words[i], tensors[i]);
  }
}

void MemberState::find_vectors(std::size_t region) {
  const std::vector<Word>& words = regions_[region].before;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == words[i + 1] || !may_be_vector(words[i], words[i + 1], words[i + 2])) continue;
    std::optional<std::vector<at::Tensor>> tensors = tensors_between(words[i], words[i + 1]);
    if (!tensors) continue;
    vectors_.push_back({region, i, std::move(*tensors)});
    i += 2;
  }
}

const at::Tensor* MemberState::tensor_before(Word word) const {
  const auto held = held_.find(word);
  return held == held_.end() ? nullptr : &held->second;
}

std::vector<MemberState::Change> MemberState::changes() const {
  std::vector<Change> result;
  for (const Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    std::vector<Word> changed;
    std::vector<at::Tensor> before;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const at::Tensor* was = now[i] == region.before[i] ? nullptr : tensor_before(region.before[i]);
      if (!was) continue;
      changed.push_back(now[i]);
      before.push_back(*was);
    }
    const std::vector<at::Tensor> tensors = tensors_at(changed);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (tensors[i].defined()) result.push_back({region.object, before[i], tensors[i]});
    }
  }
  return result;
}

// Only to tell: words that are no addresses, were none, and have no changed address near them.
std::vector<std::size_t> MemberState::counting() {
  std::vector<std::size_t> objects;
  for (Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    if (now == region.last) continue;
    const std::vector<at::Tensor> tensors = tensors_at(now);
    std::vector<std::size_t> numbers, addresses;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] == region.last[i] || tensors[i].defined() || now[i] == undefined_word()) continue;
      (is_mapped(now[i]) || is_mapped(region.last[i]) ? addresses : numbers).push_back(i);
    }
    for (const std::size_t i : numbers) {
      const std::size_t from = i < 2 * kNear ? 0 : i - 2 * kNear;
      const auto near = std::lower_bound(addresses.begin(), addresses.end(), from);
      if (near != addresses.end() && *near <= i + 2 * kNear) continue;
      if (++region.times[i] < 2) continue;
      if (objects.empty() || objects.back() != region.object) objects.push_back(region.object);
    }
    region.last = now;
  }
  return objects;
}

MemberState::Places MemberState::places() const {
  Places found;
  for (const ProxyImpl* proxy : LeftOver::proxies()) found.emplace(word_of(proxy), 0);
  if (found.empty()) return found;
  const auto count = [&](const std::vector<Word>& words) {
    for (const Word word : words) {
      if (const auto at = found.find(word); at != found.end()) ++at->second;
    }
  };
  for (const Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    count(now);
    for (std::size_t i = 0; !region.is_known && i + 2 < now.size(); ++i) {
      if (now[i] == now[i + 1] || !may_be_vector(now[i], now[i + 1], now[i + 2])) continue;
      std::vector<Word> words;
      if (read_words(now[i], (now[i + 1] - now[i]) / kWord, words)) count(words);
    }
  }
  return found;
}

std::vector<ProxyImpl*> MemberState::proxies_elsewhere() const {
  std::vector<ProxyImpl*> elsewhere;
  const Places found = places();
  for (ProxyImpl* proxy : LeftOver::proxies()) {
    const auto at = found.find(word_of(proxy));
    const auto owners = c10::raw::intrusive_ptr::use_count(proxy);
    if (owners > (at == found.end() ? 0 : at->second)) elsewhere.push_back(proxy);
  }
  return elsewhere;
}

namespace {
// Whether the places in which the tensor stands own it. The handle here is one owner more.
bool is_owned(const at::Tensor& tensor, const std::unordered_map<Word, std::size_t>& places) {
  if (!tensor.defined()) return true;
  const auto at = places.find(word_of(tensor.unsafeGetTensorImpl()));
  return at == places.end() ? !tensor.key_set().has(kProxyKey) : at->second < tensor.use_count();
}
}  // namespace

// A vector of tensors is one that was, or one that was empty and holds nothing but tensors, a traced one among them.
void MemberState::restore_vector(const Region& region, std::size_t at, const std::vector<at::Tensor>& before,
                                 Places& places, Now& now) const {
  const std::vector<Word>& words = now.words;
  if (!may_be_vector(words[at], words[at + 1], words[at + 2])) return;
  std::vector<Word> elements;
  if (!read_words(words[at], (words[at + 1] - words[at]) / kWord, elements)) return;
  bool same = elements.size() == before.size(), traced = false;
  if (flag_was_cleared(region.before, words, at, 3)) return;  // an optional that was emptied
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const at::Tensor tensor = tensors_at({elements[i]})[0];
    if (!tensor.defined() && elements[i] != undefined_word()) return;
    if (!is_owned(tensor, places)) return;
    traced |= places.contains(elements[i]);
    same = same && tensor.is_same(before[i]);
  }
  if (!same && before.empty() && !traced) return;
  if (!same) {
    *static_cast<std::vector<at::Tensor>*>(pointer(region.begin + at * kWord)) = before;
    for (const Word element : elements) {
      if (const auto place = places.find(element); place != places.end()) --place->second;
    }
  }
  now.settled[at] = now.settled[at + 1] = now.settled[at + 2] = true;
}

void MemberState::restore_vectors(std::size_t index, Places& places, Now& now) const {
  const Region& region = regions_[index];
  for (const Vector& vector : vectors_) {
    if (vector.region == index) restore_vector(region, vector.at, vector.tensors, places, now);
  }
  for (std::size_t i = 0; i + 2 < now.words.size(); ++i) {
    const auto is_new = [&](std::size_t at) { return now.words[at] != region.before[at] && !now.settled[at]; };
    if ((is_new(i) || is_new(i + 1)) && region.before[i] == region.before[i + 1] &&
        may_be_vector(region.before[i], region.before[i + 1], region.before[i + 2])) {
      restore_vector(region, i, {}, places, now);
    }
  }
}

// How many owners a tensor has lost, as far as is known.
std::size_t MemberState::released(Word tensor) const {
  const auto held = held_.find(tensor);
  if (held == held_.end() || !held->second.defined()) return 0;
  const auto captured = LeftOver::captured();
  const auto known = captured.find(held->second.unsafeGetTensorImpl());
  const std::size_t now = held->second.use_count() - (known == captured.end() ? 0 : known->second);
  const std::size_t before = owners_.at(tensor);
  return before > now ? before - now : 0;
}

void MemberState::restore_tensors(const Region& region, Places& places, Now& now) const {
  for (std::size_t i = 0; i < now.words.size(); ++i) {
    if (now.words[i] == region.before[i] || now.settled[i]) continue;
    const at::Tensor* before = tensor_before(region.before[i]);
    {
      at::Tensor tensor = tensors_at({now.words[i]})[0];
      const bool traced = tensor.defined() && tensor.key_set().has(kProxyKey);
      if (before ? !tensor.defined() && now.words[i] != undefined_word() : !traced) continue;
      if (!is_owned(tensor, places)) continue;
      const bool is_tensor = !tensor.defined() || !before || !before->defined() || released(region.before[i]) > 0;
      const bool in_doubt = !is_tensor || flag_was_cleared(region.before, now.words, i, 1);
      if (before && in_doubt && !traced) continue;
      if (before && in_doubt)
        tensor.unsafeReleaseTensorImpl();  // what is taken from a word that owns nothing is given back
    }
    if (before) {
      *static_cast<at::Tensor*>(pointer(region.begin + i * kWord)) = *before;
      now.settled[i] = true;
    } else if (!restore_optional(region, i, now)) {
      continue;
    }
    if (const auto place = places.find(now.words[i]); place != places.end()) --place->second;
  }
}

// One that was empty: its value goes together with its flag.
bool MemberState::restore_optional(const Region& region, std::size_t at, Now& now) {
  for (const std::size_t flag : {at + 1, at - 1}) {
    if (!flag_went(region.before, now.words, flag, 0, 1)) continue;
    auto* value = static_cast<at::Tensor*>(pointer(region.begin + at * kWord));
    value->~Tensor();
    std::memcpy(static_cast<void*>(value), &region.before[at], kWord);
    std::memcpy(pointer(region.begin + flag * kWord), &region.before[flag], 1);
    return now.settled[at] = true;
  }
  return false;
}

// Words of which it is known that no number beside them belongs to them.
std::vector<bool> MemberState::understood(const Region& region, const Now& now) const {
  const std::vector<Word>&before = region.before, &words = now.words;
  std::vector<bool> result = now.settled;
  const auto unchanged = [&](std::size_t at, std::size_t count) {
    return at + count <= words.size() && std::equal(&words[at], &words[at] + count, &before[at]);
  };
  const auto understand = [&](std::size_t at, std::size_t count) {
    for (std::size_t i = at; i < at + count; ++i) result[i] = true;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (unchanged(i, 1) && (tensor_before(words[i]) || registered_.contains(words[i]))) {
      // A flag behind a tensor that was cleared: perhaps that of an optional which does not own its tensor any more.
      const bool is_clear = words[i] == undefined_word() || registered_.contains(words[i]);
      result[i] = is_clear || !flag_was_cleared(before, words, i, 1);
    } else if ((!is_mapped(words[i]) && !is_mapped(before[i])) ||
               (unchanged(i, 1) && (is_constant(words[i]) || i + 3 >= words.size()))) {
      // What malloc() gave beyond the object's end is in its last words, and has whatever was there.
      result[i] = true;
    } else if (unchanged(i, 4) && words[i] == region.begin + (i + 2) * kWord && words[i + 1] < 2 * kWord) {
      understand(i, 4);  // a short std::string
      i += 3;
    } else if (unchanged(i, 3) && may_be_vector(words[i], words[i + 1], words[i + 2])) {
      understand(i, 3);
      i += 2;
    }
  }
  return result;
}

void MemberState::restore_numbers(const Region& region, const Now& now) const {
  const std::vector<bool> clear = understood(region, now);
  for (std::size_t i = 0; i < now.words.size(); ++i) {
    if (now.words[i] == region.before[i] || now.settled[i]) continue;
    const std::size_t from = i < kNear ? 0 : i - kNear, to = std::min(i + kNear + 1, clear.size());
    if (std::all_of(clear.begin() + static_cast<std::ptrdiff_t>(from), clear.begin() + static_cast<std::ptrdiff_t>(to),
                    [](bool each) { return each; }))
      std::memcpy(pointer(region.begin + i * kWord), &region.before[i], kWord);
  }
}

void MemberState::restore() {
  Places found = places();
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    Region& region = regions_[index];
    Now now{words_at(region.begin, region.before.size()), std::vector<bool>(region.before.size(), false)};
    if (!region.is_known) restore_vectors(index, found, now);
    if (now.words != region.before) {
      restore_tensors(region, found, now);
      restore_numbers(region, now);
    }
    region.last = region.before;
    std::fill(region.times.begin(), region.times.end(), 0);
  }
}

}  // namespace fx::internal
