#include <fxgraph/trace/tensor_words.h>

#include <ATen/ops/empty.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <link.h>
#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include <fxgraph/trace/dispatch_keys.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/proxy_memory.h>

namespace fx::internal {
namespace {

// What stands where a tensor may be: the size that malloc() keeps before its chunk, the table, the counts.
struct Head {
  Word chunk = 0, table = 0, count = 0, weak = 0;
};

// Later releases keep both counts in one word, whose highest bit tells something else; `weak` is then the object's own.
constexpr bool kCountsInOneWord = sizeof(c10::intrusive_ptr_target) == 2 * kWord;
static_assert(kCountsInOneWord || sizeof(c10::intrusive_ptr_target) == 3 * kWord);

std::size_t references_in(Word count) { return kCountsInOneWord ? count & 0xffffffff : count; }
std::size_t weak_references_in(const Head& head) { return kCountsInOneWord ? (head.count << 1) >> 33 : head.weak; }

// Where heads are read to. What is read there looks like a tensor, so it lies where malloc() never gives memory, is
// never taken for one, and is wiped.
struct HeadBuffer {
  static constexpr std::size_t kMost = 250;  // the kernel takes 1024 places
  std::array<Head, kMost> heads;
  std::array<iovec, kMost> from, to;
  Head nothing;
};

HeadBuffer& head_buffer() {
  static thread_local HeadBuffer buffer;
  return buffer;
}

bool is_head_buffer(Word word) {
  const Word begin = word_of(&head_buffer());
  return word >= begin && word < begin + sizeof(HeadBuffer);
}

// Calls `visit(i, head)` for each address at which there is something to read, with nothing for null.
template <typename Visit>
void read_heads(const std::vector<Word>& addresses, Visit&& visit) {
  HeadBuffer& buffer = head_buffer();
  for (std::size_t first = 0; first < addresses.size();) {
    const std::size_t count = std::min(HeadBuffer::kMost, addresses.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_nothing = addresses[first + i] == 0 || is_head_buffer(addresses[first + i]);
      buffer.from[i] = {is_nothing ? &buffer.nothing : pointer(addresses[first + i] - kWord), sizeof(Head)};
      buffer.to[i] = {&buffer.heads[i], sizeof(Head)};
    }
    const ssize_t got = process_vm_readv(getpid(), buffer.to.data(), count, buffer.from.data(), count, 0);
    const std::size_t whole = got <= 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Head);
    for (std::size_t i = 0; i < whole; ++i) visit(first + i, buffer.heads[i]);
    std::memset(static_cast<void*>(buffer.heads.data()), 0, count * sizeof(Head));
    first += whole < count ? whole + 1 : whole;  // past what cannot be read
  }
}

// Each count is one at least while the object is there.
bool has_owners(const Head& head) {
  constexpr std::size_t kMostOwners = std::size_t{1} << (kCountsInOneWord ? 28 : 32);
  const std::size_t strong = references_in(head.count), weak = weak_references_in(head);
  return strong > 0 && strong < kMostOwners && weak > 0 && weak < kMostOwners;
}

constexpr Word kSmallest = 4 * kWord, kLargest = Word{1} << 32;  // bytes of a chunk

// The size without the flags that malloc() keeps in it.
Word chunk_size(Word word) { return word & ~Word{7}; }

// The chunk behind a chunk that is in use knows that it is.
bool is_behind_used(const Head& behind) {
  constexpr Word kPreviousInUse = 1;
  return (behind.chunk & kPreviousInUse) != 0 && chunk_size(behind.chunk) >= kSmallest &&
         chunk_size(behind.chunk) < kLargest;
}

struct Kind {
  Word table, chunk;
  // A chunk is a little larger when what would be left of it is too small for another one.
  bool fits(const Head& head, bool has_chunk) const {
    return head.table == table && (!has_chunk || chunk_size(head.chunk) - chunk <= 2 * kWord);
  }
};

// What malloc() gives for so many bytes: a word more for the size, in steps of two words.
constexpr Word chunk_for(std::size_t bytes) { return (bytes + 3 * kWord - 1) / (2 * kWord) * (2 * kWord); }

template <typename Impl>
Kind kind_of(const Impl* impl) {
  Word table = 0;
  std::memcpy(&table, static_cast<const void*>(impl), kWord);
  return {table, chunk_for(sizeof(Impl))};
}

const std::array<Kind, 2>& kinds() {
  static const std::array<Kind, 2> known = [] {
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const at::Tensor dense = at::empty({0});
    const auto proxy = c10::make_intrusive<ProxyImpl>(nullptr, nullptr, at::Tensor(), std::nullopt);
    return std::array<Kind, 2>{kind_of<c10::TensorImpl>(dense.unsafeGetTensorImpl()), kind_of(proxy.get())};
  }();
  return known;
}

// One reference more, unless there is none: then it is being destroyed. The count stands behind the table.
bool add_reference(Word impl) {
  std::atomic_ref<std::size_t> references(*static_cast<std::size_t*>(pointer(impl + kWord)));
  for (std::size_t known = references.load(); references_in(known) != 0;) {
    if (references.compare_exchange_weak(known, known + 1)) return true;
  }
  return false;
}

}  // namespace

// Sizes before the chunks of several sizes are what they would be; read through the kernel, for no other malloc() says
// that there is something to read.
bool knows_heap() {
  static const bool known = [] {
#if defined(__GLIBC__)
    for (const std::size_t bytes : {24U, 200U, 1000U, 5000U}) {
      const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(bytes), &std::free);
      std::vector<Word> size;
      if (!memory || !read_words(word_of(memory.get()) - kWord, 1, size)) return false;
      const Word chunk = chunk_size(size[0]);
      if (chunk < chunk_for(bytes) || chunk > chunk_for(bytes) + 2 * kWord) return false;
      if (malloc_usable_size(memory.get()) < bytes || malloc_usable_size(memory.get()) >= chunk) return false;
    }
    return true;
#else
    return false;
#endif
  }();
  return known;
}

bool may_be_address(Word word) { return word % kWord == 0 && word >= 0x10000 && word < (Word{1} << 47); }

Word undefined_word() { return word_of(c10::UndefinedTensorImpl::singleton()); }

bool read_words(Word begin, std::size_t count, Word* words) {
  const iovec from{pointer(begin), count * kWord}, to{words, count * kWord};
  return count == 0 || process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(count * kWord);
}

bool read_words(Word begin, std::size_t count, std::vector<Word>& words) {
  words.assign(count, 0);
  return read_words(begin, count, words.data());
}

bool is_mapped(Word word) {
  std::vector<Word> value;
  const Word at = word - word % kWord;
  return may_be_address(at) && read_words(at, 1, value);
}

bool is_constant(Word word) {
  const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& address = *static_cast<Word*>(data);
    for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      const Word begin = info->dlpi_addr + part.p_vaddr;
      const bool fixed = part.p_type == PT_GNU_RELRO || (part.p_type == PT_LOAD && (part.p_flags & PF_W) == 0);
      if (fixed && address >= begin && address < begin + part.p_memsz) return 1;
    }
    return 0;
  };
  return may_be_address(word - word % kWord) && dl_iterate_phdr(look, &word) == 1;
}

bool is_chunk_of(Word begin, std::size_t bytes) {
  std::vector<Word> size;
  constexpr std::size_t kSpare = 8 * kWord;  // rounding, and a rest that is too small to be given to another
  if (begin % (2 * kWord) != 0 || !may_be_address(begin) || is_proxy_memory(begin) ||
      !read_words(begin - kWord, 1, size))
    return false;
  const std::size_t usable = chunk_size(size[0]) - kWord;
  return usable >= bytes && usable <= bytes + bytes / 4 + kSpare;
}

std::vector<Word> words_at(Word begin, std::size_t count) {
  std::vector<Word> words(count);
  if (count > 0) std::memcpy(words.data(), pointer(begin), count * kWord);
  return words;
}

bool may_be_vector(Word begin, Word end, Word capacity) {
  constexpr Word kLargest = Word{1} << 16;  // bytes
  if (begin > end || end > capacity || (end - begin) % kWord != 0 || capacity - begin > kLargest) return false;
  return begin == 0 ? capacity == 0 : capacity > begin && is_chunk_of(begin, capacity - begin);
}

std::vector<std::size_t> chunk_sizes(const std::vector<Word>& words) {
  constexpr Word kMapped = 2;
  std::vector<std::size_t> places;
  std::vector<Word> candidates, behind;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!may_be_address(words[i]) || words[i] % (2 * kWord) != 0 || is_proxy_memory(words[i])) continue;
    candidates.push_back(words[i]);
    places.push_back(i);
  }
  behind.assign(candidates.size(), 0);
  read_heads(candidates, [&](std::size_t i, const Head& head) {
    const Word size = chunk_size(head.chunk);
    const bool may_be = size >= kSmallest && size % (2 * kWord) == 0 && size < kLargest && (head.chunk & kMapped) == 0;
    behind[i] = may_be ? candidates[i] + size : 0;
  });
  std::vector<std::size_t> sizes(words.size(), 0);
  read_heads(behind, [&](std::size_t i, const Head& head) {
    if (behind[i] != 0 && is_behind_used(head)) sizes[places[i]] = behind[i] - candidates[i] - kWord;
  });
  return sizes;
}

std::vector<at::Tensor> tensors_at(const std::vector<Word>& words) {
  std::vector<at::Tensor> result(words.size());
  std::vector<Word> candidates;
  for (const Word word : words) {
    if (may_be_address(word) && word % (2 * kWord) == 0 && word != undefined_word()) candidates.push_back(word);
  }
  if (candidates.empty()) return result;
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const std::array<Kind, 2>& known = kinds();
  // Two words could be left of a tensor that has gone, and a third be another's; not all that is asked here.
  std::vector<Word> behind(candidates.size(), 0);
  read_heads(candidates, [&](std::size_t i, const Head& head) {
    if (!has_owners(head)) return;
    const bool has_chunk = !is_proxy_memory(candidates[i]);
    if (!known[1].fits(head, has_chunk) && !(has_chunk && known[0].fits(head, true))) return;
    behind[i] = has_chunk ? candidates[i] + chunk_size(head.chunk) : candidates[i];
  });
  std::vector<std::uint8_t> is_tensor(candidates.size(), 0);
  read_heads(behind, [&](std::size_t i, const Head& head) {
    is_tensor[i] = static_cast<std::uint8_t>(behind[i] == candidates[i] || (behind[i] != 0 && is_behind_used(head)));
  });
  std::unordered_map<Word, at::Tensor> found;  // look-up only
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (is_tensor[i] == 0 || !add_reference(candidates[i])) continue;
    auto* impl = static_cast<c10::TensorImpl*>(pointer(candidates[i]));
    found.emplace(candidates[i],
                  at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(impl)));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const auto at = found.find(words[i]); at != found.end()) result[i] = at->second;
  }
  return result;
}

}  // namespace fx::internal
