#include <fxgraph/trace/member_state.h>

#include <ATen/ops/empty.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/trace/dispatch_keys.h>
#include <fxgraph/trace/proxy_impl.h>

namespace fx::internal {
namespace {

using torch::nn::Module;
using Word = std::uintptr_t;

constexpr std::size_t kWord = sizeof(Word);
constexpr std::size_t kLargestObject = std::size_t{1} << 20;
constexpr std::size_t kLargestVector = std::size_t{1} << 16;  // bytes
constexpr std::size_t kNear = 8;                              // words: no container is larger

// ── Reading what may not be there ─────────────────────────────────────────────────────────────────────────────────

void* pointer(Word word) { return reinterpret_cast<void*>(word); }  // NOLINT: addresses are what this file is about

// Reads `count` words at each of the addresses. Tells which could be read.
std::vector<bool> read_each(const std::vector<Word>& addresses, std::size_t count, std::vector<Word>& out) {
  constexpr std::size_t kMost = 512;
  out.assign(addresses.size() * count, 0);
  std::vector<bool> can(addresses.size(), false);
  for (std::size_t first = 0; first < addresses.size();) {
    std::vector<iovec> from, to;
    for (std::size_t i = first; i < std::min(first + kMost, addresses.size()); ++i) {
      from.push_back({pointer(addresses[i]), count * kWord});
      to.push_back({&out[i * count], count * kWord});
    }
    const ssize_t got = process_vm_readv(getpid(), to.data(), to.size(), from.data(), from.size(), 0);
    const std::size_t whole = got <= 0 ? 0 : static_cast<std::size_t>(got) / (count * kWord);
    for (std::size_t i = 0; i < whole; ++i) can[first + i] = true;
    first += whole < from.size() ? whole + 1 : whole;  // past what cannot be read
  }
  return can;
}

bool may_be_address(Word word) { return word % alignof(void*) == 0 && word >= 0x10000 && word < (Word{1} << 47); }

bool is_mapped(Word word) {
  std::vector<Word> value;
  return word >= 0x10000 && word < (Word{1} << 47) && read_each({word & ~Word{7}}, 1, value)[0];
}

Word table_of(const c10::TensorImpl* impl) {
  Word word = 0;
  std::memcpy(&word, static_cast<const void*>(impl), kWord);
  return word;
}

// What was read is a copy of heads of tensors, which memory that is used again must not show: nobody may take it for
// one.
struct Wiped {
  std::vector<Word>& words;
  ~Wiped() { explicit_bzero(words.data(), words.size() * kWord); }
  bool holds(Word address) const {
    const auto begin = reinterpret_cast<Word>(words.data());
    return address >= begin && address < begin + words.size() * kWord;
  }
};

// The size of the chunk that malloc() gave, which it keeps before it.
Word chunk_of(Word word) { return word & ~Word{7}; }

struct Tables {
  Word tensor, proxy;
  Word tensor_chunk, proxy_chunk;

  bool fit(Word chunk, Word table) const {
    const Word least = table == tensor ? tensor_chunk : table == proxy ? proxy_chunk : 0;
    return least != 0 && (chunk_of(chunk) == least || chunk_of(chunk) == least + 2 * kWord);
  }
};
const Tables& tables() {
  static const Tables known = [] {
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const at::Tensor dense = at::empty({0});
    const auto proxy = c10::make_intrusive<ProxyImpl>(nullptr, nullptr, at::Tensor(), std::nullopt);
    const auto chunk = [](const c10::TensorImpl* impl) {
      Word word = 0;
      std::memcpy(&word, reinterpret_cast<const char*>(impl) - kWord, kWord);  // NOLINT
      return chunk_of(word);
    };
    const c10::TensorImpl *tensor = dense.unsafeGetTensorImpl(), *traced = proxy.get();
    return Tables{table_of(tensor), table_of(traced), chunk(tensor), chunk(traced)};
  }();
  return known;
}

Word undefined() { return reinterpret_cast<Word>(c10::UndefinedTensorImpl::singleton()); }

// One reference more, unless there is none: then it is being destroyed. The count stands behind the table.
bool add_reference(Word impl) {
  auto& count = *static_cast<std::size_t*>(pointer(impl + kWord));
  std::atomic_ref<std::size_t> references(count);
  for (std::size_t known = references.load(); known != 0;) {
    if (references.compare_exchange_weak(known, known + 1)) return true;
  }
  return false;
}

// The live tensors at these addresses; undefined where there is none.
std::vector<at::Tensor> tensors_at(const std::vector<Word>& words) {
  std::vector<Word> candidates;  // the chunk's size, the table and the count of references stand there
  for (const Word word : words) {
    if (may_be_address(word) && word % 16 == 0 && word != undefined()) candidates.push_back(word - kWord);
  }
  std::vector<Word> heads;
  const Wiped wiped{heads};
  const std::vector<bool> can = read_each(candidates, 3, heads);
  const auto first = reinterpret_cast<Word>(words.data()), last = first + words.size() * kWord;
  std::unordered_map<Word, at::Tensor> found;  // look-up only
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Word address = candidates[i] + kWord;
    if (!can[i] || !tables().fit(heads[3 * i], heads[3 * i + 1]) || heads[3 * i + 2] == 0) continue;
    if (wiped.holds(address) || (address >= first && address < last)) continue;
    auto* impl = static_cast<c10::TensorImpl*>(pointer(address));
    if (!add_reference(address)) continue;
    found.emplace(address, at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(impl)));
  }
  std::vector<at::Tensor> result(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const auto at = found.find(words[i]); at != found.end()) result[i] = at->second;
  }
  return result;
}

bool is_proxy_impl(const at::Tensor& tensor) {
  return tensor.defined() && table_of(tensor.unsafeGetTensorImpl()) == tables().proxy;
}

std::vector<Word> words_at(Word begin, std::size_t count) {
  std::vector<Word> words(count);
  if (count > 0) std::memcpy(words.data(), pointer(begin), count * kWord);
  return words;
}

// ── Objects ───────────────────────────────────────────────────────────────────────────────────────────────────────

// Types whose forward keeps nothing but what is registered.
bool keeps_members(const Module& module) {
  if (dynamic_cast<const GraphModule*>(&module) || dynamic_cast<const LeafModule*>(&module) ||
      dynamic_cast<const Holder*>(&module)) {
    return false;
  }
  return !module.name().starts_with("torch::nn::");
}

// The bytes from `object` to the end of what was allocated for it; 0 where that is not known.
std::size_t bytes_of(const std::shared_ptr<Module>& module, const void* object) {
  if (const auto* borrowed = std::get_deleter<Borrowed>(module)) return borrowed->size;
#if defined(__GLIBC__) && defined(__GLIBCXX__)
  std::array<void*, 2> words;  // the pointer and its control block
  static_assert(sizeof(module) == sizeof(words));
  std::memcpy(words.data(), static_cast<const void*>(&module), sizeof(module));
  if (!words[1]) return 0;
  const auto* control = static_cast<const std::_Sp_counted_base<__gnu_cxx::__default_lock_policy>*>(words[1]);
  const std::string_view type = typeid(*control).name();
  const void* allocation = nullptr;
  if (type.starts_with("St23_Sp_counted_ptr_inplace") && type.find("SaI") != std::string_view::npos) {
    allocation = words[1];  // std::make_shared
  } else if (type.starts_with("St15_Sp_counted_ptrI")) {
    allocation = object;  // new
  }
  if (!allocation) return 0;
  const auto before = static_cast<std::size_t>(static_cast<const char*>(object) - static_cast<const char*>(allocation));
  const std::size_t size = malloc_usable_size(const_cast<void*>(allocation));
  return size > before && size < kLargestObject ? size - before : 0;
#else
  (void)object;
  return 0;
#endif
}

bool may_be_vector(Word begin, Word end, Word capacity) {
  return begin <= end && end <= capacity && (end - begin) % kWord == 0 && capacity - begin <= kLargestVector &&
         (begin == 0 ? capacity == 0 : may_be_address(begin));
}

// The tensors of what may be a vector of them; nothing when it is none.
std::optional<std::vector<at::Tensor>> tensors_between(Word begin, Word end) {
  const std::size_t count = (end - begin) / kWord;
  if (count == 0) return std::vector<at::Tensor>();
  std::vector<Word> words;
  const Wiped wiped{words};
  if (!read_each({begin}, count, words)[0]) return std::nullopt;
  std::vector<at::Tensor> tensors = tensors_at(words);
  for (std::size_t i = 0; i < count; ++i) {
    if (!tensors[i].defined() && words[i] != undefined()) return std::nullopt;
  }
  return tensors;
}

}  // namespace

// ── Remembering ───────────────────────────────────────────────────────────────────────────────────────────────────

void MemberState::add(const std::shared_ptr<Module>& module) {
  const std::size_t number = objects_++;
  if (!module || !keeps_members(*module)) return;
  const void* object = dynamic_cast<const void*>(module.get());
  const Word begin = reinterpret_cast<Word>(object), end = begin + bytes_of(module, object) / kWord * kWord;
  const Word base = reinterpret_cast<Word>(static_cast<const Module*>(module.get()));
  const auto add_region = [&](Word from, Word to) {
    if (from < to) regions_.push_back({number, from, std::vector<Word>((to - from) / kWord), {}, {}});
  };
  add_region(begin, std::min(end, base));
  add_region(base + sizeof(Module), end);
}

void MemberState::begin() {
  std::vector<Word> all;
  for (Region& region : regions_) {
    region.before = region.last = words_at(region.begin, region.before.size());
    region.times.assign(region.before.size(), 0);
    all.insert(all.end(), region.before.begin(), region.before.end());
  }
  hold(all);
  for (std::size_t i = 0; i < regions_.size(); ++i) find_vectors(i);
}

void MemberState::hold(const std::vector<Word>& words) {
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

// ── Comparing ─────────────────────────────────────────────────────────────────────────────────────────────────────

at::Tensor MemberState::tensor_before(Word word, bool* known) const {
  const auto held = held_.find(word);
  *known = held != held_.end() || word == undefined();
  return held == held_.end() ? at::Tensor() : held->second;
}

std::vector<MemberState::Change> MemberState::changes() const {
  std::vector<Change> result;
  for (const Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    std::vector<Word> changed;
    std::vector<at::Tensor> before;
    for (std::size_t i = 0; i < now.size(); ++i) {
      bool known = false;
      if (now[i] == region.before[i]) continue;
      const at::Tensor was = tensor_before(region.before[i], &known);
      if (!known) continue;
      changed.push_back(now[i]);
      before.push_back(was);
    }
    const std::vector<at::Tensor> tensors = tensors_at(changed);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (tensors[i].defined()) result.push_back({region.object, before[i], tensors[i]});
    }
  }
  return result;
}

// Words that are no addresses, were none, and have no changed address near them.
std::vector<std::size_t> MemberState::changed_numbers(const std::vector<Word>& before, const std::vector<Word>& now,
                                                      const std::vector<bool>& settled) {
  std::vector<std::size_t> numbers, addresses, result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] == before[i] || settled[i]) continue;
    (is_mapped(now[i]) || is_mapped(before[i]) ? addresses : numbers).push_back(i);
  }
  for (const std::size_t i : numbers) {
    const auto near = std::lower_bound(addresses.begin(), addresses.end(), i < kNear ? 0 : i - kNear);
    if (near == addresses.end() || *near > i + kNear) result.push_back(i);
  }
  return result;
}

std::vector<std::size_t> MemberState::counting() {
  std::vector<std::size_t> objects;
  for (Region& region : regions_) {
    const std::vector<Word> now = words_at(region.begin, region.before.size());
    // Tensors are no numbers, and what lies beside them may be.
    std::vector<bool> settled(now.size(), false);
    const std::vector<at::Tensor> tensors = tensors_at(now);
    for (std::size_t i = 0; i < now.size(); ++i) settled[i] = tensors[i].defined() || now[i] == undefined();
    for (const std::size_t i : changed_numbers(region.last, now, settled)) {
      if (++region.times[i] < 2) continue;
      if (objects.empty() || objects.back() != region.object) objects.push_back(region.object);
    }
    region.last = now;
  }
  return objects;
}

// ── Putting back ──────────────────────────────────────────────────────────────────────────────────────────────────

// A vector of tensors is one that was, or one that was empty and holds nothing but tensors, a traced one among them.
std::vector<bool> MemberState::restore_vectors(std::size_t index, const std::vector<Word>& now) {
  const Region& region = regions_[index];
  std::vector<bool> settled(now.size(), false);
  const auto put_back = [&](std::size_t at, const std::vector<at::Tensor>& before) {
    *static_cast<std::vector<at::Tensor>*>(pointer(region.begin + at * kWord)) = before;
    settled[at] = settled[at + 1] = settled[at + 2] = true;
  };
  for (const Vector& vector : vectors_) {
    if (vector.region != index || !may_be_vector(now[vector.at], now[vector.at + 1], now[vector.at + 2])) continue;
    const auto tensors = tensors_between(now[vector.at], now[vector.at + 1]);
    if (!tensors) continue;
    const bool same = tensors->size() == vector.tensors.size() &&
                      std::equal(tensors->begin(), tensors->end(), vector.tensors.begin(),
                                 [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); });
    if (same) {
      settled[vector.at] = settled[vector.at + 1] = settled[vector.at + 2] = true;
    } else {
      put_back(vector.at, vector.tensors);
    }
  }
  for (std::size_t i = 0; i + 2 < now.size(); ++i) {
    const bool was_empty = region.before[i] == region.before[i + 1] &&
                           may_be_vector(region.before[i], region.before[i + 1], region.before[i + 2]);
    if (settled[i] || !was_empty || now[i] == now[i + 1] || !may_be_vector(now[i], now[i + 1], now[i + 2])) continue;
    const auto tensors = tensors_between(now[i], now[i + 1]);
    if (tensors && std::any_of(tensors->begin(), tensors->end(), is_proxy_impl)) put_back(i, {});
  }
  return settled;
}

void MemberState::restore() {
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    Region& region = regions_[index];
    std::vector<Word> now = words_at(region.begin, region.before.size());
    std::vector<bool> settled = restore_vectors(index, now);
    if (now == region.before) continue;
    std::vector<at::Tensor> tensors = tensors_at(now);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] == region.before[i] || settled[i] || (!tensors[i].defined() && now[i] != undefined())) continue;
      bool known = false;
      const at::Tensor before = tensor_before(region.before[i], &known);
      auto* slot = static_cast<at::Tensor*>(pointer(region.begin + i * kWord));
      const auto was_set = [&](std::size_t flag) {
        return flag < now.size() && (region.before[flag] & 0xff) == 0 && (now[flag] & 0xff) == 1;
      };
      if (known) {
        *slot = before;
        settled[i] = true;
      } else if (is_proxy_impl(tensors[i]) && (was_set(i + 1) || was_set(i - 1))) {
        slot->~Tensor();  // an optional that was empty; its flag is a number
        std::memcpy(static_cast<void*>(slot), &region.before[i], kWord);
        settled[i] = true;
      }
    }
    for (const std::size_t i : changed_numbers(region.before, now, settled))
      std::memcpy(pointer(region.begin + i * kWord), &region.before[i], kWord);
    region.last = region.before;
    std::fill(region.times.begin(), region.times.end(), 0);
  }
}

}  // namespace fx::internal
