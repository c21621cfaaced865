#include <fxgraph/trace/tensor_words.h>

#include <ATen/ops/empty.h>
#include <c10/core/UndefinedTensorImpl.h>
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

// What stands where a tensor may be: the size that malloc() keeps before its chunk, the table, the count.
struct Head {
  Word chunk = 0, table = 0, count = 0;
};

// Each part of a head goes to another array: three words of a tensor side by side would look like one.
class Heads {
 public:
  explicit Heads(const std::vector<Word>& addresses)
      : chunks_(addresses.size()), tables_(addresses.size()), counts_(addresses.size()), can_(addresses.size()) {
    constexpr std::size_t kMost = 300;  // the kernel takes 1024 places
    for (std::size_t first = 0; first < addresses.size();) {
      std::vector<iovec> from, to;
      for (std::size_t i = first; i < std::min(first + kMost, addresses.size()); ++i) {
        from.push_back({pointer(addresses[i] - kWord), 3 * kWord});
        for (Word* part : {&chunks_[i], &tables_[i], &counts_[i]}) to.push_back({part, kWord});
      }
      const ssize_t got = process_vm_readv(getpid(), to.data(), to.size(), from.data(), from.size(), 0);
      const std::size_t whole = got <= 0 ? 0 : static_cast<std::size_t>(got) / (3 * kWord);
      for (std::size_t i = 0; i < whole; ++i) can_[first + i] = true;
      first += whole < from.size() ? whole + 1 : whole;  // past what cannot be read
    }
  }
  Head operator[](std::size_t i) const { return can_[i] ? Head{chunks_[i], tables_[i], counts_[i]} : Head(); }

 private:
  std::vector<Word> chunks_, tables_, counts_;
  std::vector<bool> can_;
};

// The size without the flags that malloc() keeps in it.
Word chunk_size(Word word) { return word & ~Word{7}; }

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
  for (std::size_t known = references.load(); known != 0;) {
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

// The chunk behind a chunk that is in use knows that it is.
std::vector<std::size_t> chunk_sizes(const std::vector<Word>& words) {
  constexpr Word kLargest = Word{1} << 32, kPreviousInUse = 1, kMapped = 2;
  std::vector<std::size_t> places;
  std::vector<Word> candidates, behind;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!may_be_address(words[i]) || words[i] % (2 * kWord) != 0 || is_proxy_memory(words[i])) continue;
    candidates.push_back(words[i]);
    places.push_back(i);
  }
  const Heads heads(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Word size = chunk_size(heads[i].chunk);
    const bool may_be =
        size >= 4 * kWord && size % (2 * kWord) == 0 && size < kLargest && (heads[i].chunk & kMapped) == 0;
    behind.push_back(may_be ? candidates[i] + size : 0);
  }
  const Heads next(behind);
  std::vector<std::size_t> sizes(words.size(), 0);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Word after = next[i].chunk;
    if ((after & kPreviousInUse) != 0 && chunk_size(after) >= 4 * kWord && chunk_size(after) < kLargest)
      sizes[places[i]] = behind[i] - candidates[i] - kWord;
  }
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
  const Heads heads(candidates);
  std::unordered_map<Word, at::Tensor> found;  // look-up only
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Head head = heads[i];
    const bool is_tensor = is_proxy_memory(candidates[i]) ? known[1].fits(head, /*has_chunk=*/false)
                                                          : known[0].fits(head, true) || known[1].fits(head, true);
    if (head.count == 0 || !is_tensor || !add_reference(candidates[i])) continue;
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
