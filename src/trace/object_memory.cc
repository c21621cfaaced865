// An allocation of GNU's C library begins behind a word with its size, whose low bits are flags; the word behind its
// end is the next one's, with a bit that says that this one is in use. A pointer is followed when all of that holds.
#include <fxgraph/trace/object_memory.h>

#include <ATen/ops/empty.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fxgraph/trace/dispatch_keys.h>
#include <fxgraph/trace/proxy_impl.h>

namespace fx::internal {
namespace {

using Word = std::uintptr_t;
using Kind = ObjectMemory::Change::Kind;

constexpr std::size_t kWord = sizeof(Word);
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kLargestBlock = std::size_t{1} << 16;
constexpr std::size_t kDeepest = 3;        // pointers from an object: a map in a struct behind a pointer
constexpr std::size_t kControlBlock = 16;  // what std::make_shared puts before an object

// Reads without faulting: the number of whole words that could be read.
std::size_t read_words(Word address, Word* out, std::size_t count) {
  iovec local{out, count * kWord};
  iovec remote{reinterpret_cast<void*>(address), count * kWord};  // NOLINT: addresses are what this file is about
  const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  return got <= 0 ? 0 : static_cast<std::size_t>(got) / kWord;
}

bool may_be_address(Word word) { return word % alignof(void*) == 0 && word >= 0x10000 && word < (Word{1} << 47); }

Word undefined_tensor() { return reinterpret_cast<Word>(c10::UndefinedTensorImpl::singleton()); }

Word virtual_table(const c10::TensorImpl* impl) {
  Word word = 0;
  std::memcpy(&word, impl, kWord);
  return word;
}

// What TensorImpls of the kinds that programs keep begin with.
const std::array<Word, 2>& tensor_tables() {
  static const std::array<Word, 2> tables = [] {
    c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const at::Tensor dense = at::empty({0});
    const auto proxy = c10::make_intrusive<ProxyImpl>(nullptr, nullptr, at::Tensor(), std::nullopt);
    return std::array<Word, 2>{virtual_table(dense.unsafeGetTensorImpl()), virtual_table(proxy.get())};
  }();
  return tables;
}

// The live tensor that `word` points at, or null. One that is being destroyed has no references left.
c10::TensorImpl* tensor_at(Word word) {
  if (!may_be_address(word) || word == undefined_tensor()) return nullptr;
  std::array<Word, 2> head;  // virtual table, reference counts
  if (read_words(word, head.data(), head.size()) != head.size()) return nullptr;
  const auto& tables = tensor_tables();
  if (std::find(tables.begin(), tables.end(), head[0]) == tables.end()) return nullptr;
  auto* impl = reinterpret_cast<c10::TensorImpl*>(word);  // NOLINT
  return c10::raw::intrusive_ptr::use_count(impl) > 0 ? impl : nullptr;
}

c10::intrusive_ptr<c10::TensorImpl> held_tensor(Word word) {
  c10::TensorImpl* impl = tensor_at(word);
  return impl ? c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl) : c10::intrusive_ptr<c10::TensorImpl>();
}

bool is_tensor(Word word) { return word == undefined_tensor() || tensor_at(word) != nullptr; }

bool is_readable(Word word) {
  Word first = 0;
  return may_be_address(word) && read_words(word, &first, 1) == 1;
}

// The words of the allocation that begins at `address`; 0 when none does.
std::size_t allocated_words(Word address) {
#ifdef __GLIBC__
  constexpr Word kFlags = 7, kPreviousInUse = 1, kMapped = 2;
  Word size = 0;
  if (address % 16 != 0 || !may_be_address(address) || read_words(address - kWord, &size, 1) != 1) return 0;
  if ((size & kMapped) != 0) return 0;
  size &= ~kFlags;
  if (size < 32 || size > kLargestBlock || size % 16 != 0) return 0;
  Word next = 0;
  if (read_words(address + size - kWord, &next, 1) != 1) return 0;
  if ((next & kPreviousInUse) == 0 || (next & ~kFlags) < 16 || (next & ~kFlags) > (Word{1} << 40)) return 0;
  return (size - kWord) / kWord;
#else
  (void)address;
  return 0;
#endif
}

}  // namespace

// ── Remembering
// ────────────────────────────────────────────────────────────────────────────────────────────────────────

void ObjectMemory::add(const void* object, std::size_t size, const void* owner, const void* skip,
                       std::size_t skip_size) {
  const Word begin = reinterpret_cast<Word>(object);
  const Word allocation = reinterpret_cast<Word>(owner);
  if (size == 0 && (allocation == begin || allocation + kControlBlock == begin)) {
    const std::size_t words = allocated_words(allocation);
    if (words > 0) size = words * kWord - (begin - allocation);
  }
  const std::size_t number = objects_++;
  const Word skipped = reinterpret_cast<Word>(skip);
  const auto part = [&](Word from, Word to) {
    from = (from + kWord - 1) / kWord * kWord;
    if (from < to) remember(from, (to - from) / kWord, number, blocks_.size(), 0);
  };
  const std::size_t first = blocks_.size();
  part(begin, std::min(begin + size, std::max(skipped, begin)));
  part(std::max(skipped + skip_size, begin), begin + size);
  for (std::size_t i = first; i < blocks_.size(); ++i) follow(i);
}

void ObjectMemory::remember(Word begin, std::size_t words, std::size_t object, std::size_t parent, Word pointed_from) {
  std::size_t depth = 0;
  for (std::size_t at = parent; at < blocks_.size() && blocks_[at].parent != at; at = blocks_[at].parent) ++depth;
  if (depth > kDeepest) return;
  if (words == 0 || bytes_ + words * kWord > kMostBytes || block_of_.contains(begin)) return;
  Block block{begin, object, parent, pointed_from, std::vector<Word>(words)};
  if (read_words(begin, block.words.data(), words) != words) return;
  bytes_ += words * kWord;
  block_of_.emplace(begin, blocks_.size());
  blocks_.push_back(std::move(block));
}

// Tensors are held, not entered; modules are objects of their own.
void ObjectMemory::follow(std::size_t index) {
  for (std::size_t i = 0; i < blocks_[index].words.size(); ++i) {
    const Word word = blocks_[index].words[i];
    if (!may_be_address(word) || held_.contains(word) || block_of_.contains(word) || left_out_.contains(word)) continue;
    if (auto tensor = held_tensor(word)) {
      held_.emplace(word, std::move(tensor));
    } else if (word != undefined_tensor()) {
      remember(word, allocated_words(word), blocks_[index].object, index, blocks_[index].begin + i * kWord);
    }
  }
}

const ObjectMemory::Block* ObjectMemory::block_at(Word begin) const {
  const auto found = block_of_.find(begin);
  return found == block_of_.end() ? nullptr : &blocks_[found->second];
}

// ── Comparing
// ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// What nothing points to any more has been freed, and may be something else by now.
bool ObjectMemory::is_reachable(std::size_t index) const {
  while (blocks_[index].parent != index) {
    const Block& block = blocks_[index];
    Word now = 0;
    if (read_words(block.pointed_from, &now, 1) != 1 || now != block.begin) return false;
    index = block.parent;
  }
  return true;
}

std::vector<ObjectMemory::Change> ObjectMemory::changes() const {
  std::vector<Change> result;
  std::vector<Word> now;
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    const Block& block = blocks_[index];
    now.resize(block.words.size());
    if (!is_reachable(index) || read_words(block.begin, now.data(), now.size()) != now.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] == block.words[i]) continue;
      Change change{Kind::number, block.object, block.begin + i * kWord, block.words[i], now[i], {}, {}};
      if (const auto held = held_.find(change.before); held != held_.end()) change.tensor_before = held->second;
      change.tensor_now = held_tensor(change.now);
      const bool was_tensor = change.tensor_before || change.before == undefined_tensor();
      const bool now_tensor = change.tensor_now || change.now == undefined_tensor();
      // An optional that was empty has anything in its place.
      if (now_tensor && (was_tensor || (change.tensor_now && proxy_impl(at::Tensor(change.tensor_now))))) {
        change.kind = Kind::tensor;
      } else if (now_tensor || was_tensor || is_readable(change.before) || is_readable(change.now)) {
        change.kind = Kind::other;
      }
      result.push_back(std::move(change));
    }
  }
  return result;
}

// ── Putting back
// ───────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

void put(Word address, Word word) {
  std::memcpy(reinterpret_cast<void*>(address), &word, kWord);  // NOLINT
}

// A reference that a tensor handle owns comes and goes with the word.
void take_reference(const c10::intrusive_ptr<c10::TensorImpl>& tensor) {
  if (tensor) c10::raw::intrusive_ptr::incref(tensor.get());
}
void drop_reference(const c10::intrusive_ptr<c10::TensorImpl>& tensor) {
  if (tensor) c10::raw::intrusive_ptr::decref(tensor.get());
}

}  // namespace

// begin, end and end of storage of a std::vector that has grown: its first elements are put back, the others dropped.
// It stays where it is now, which is remembered.
bool ObjectMemory::restore_vector(std::size_t index, std::size_t at, const std::vector<Word>& now) {
  const Block& block = blocks_[index];
  const Word begin = block.words[at], end = block.words[at + 1], storage = block.words[at + 2];
  const Word new_begin = now[at], new_end = now[at + 1], new_storage = now[at + 2];
  if (!(begin <= end && end <= storage && new_begin < new_end && new_end <= new_storage)) return false;
  if ((new_end - new_begin) % kWord != 0 || (end - begin) % kWord != 0) return false;
  const std::size_t words = (end - begin) / kWord, new_words = (new_end - new_begin) / kWord;
  if (words > new_words || new_words > kLargestBlock || allocated_words(new_begin) < new_words) return false;
  const Block* old = block_at(begin);
  if (words > 0 && (!old || old->words.size() < words)) return false;
  std::vector<Word> elements(new_words);
  if (read_words(new_begin, elements.data(), new_words) != new_words) return false;
  std::vector<Word> wanted(allocated_words(new_begin), 0);
  if (words > 0) std::copy_n(old->words.begin(), new_begin == begin ? old->words.size() : words, wanted.begin());
  for (std::size_t i = 0; i < new_words; ++i) {
    const bool tensor = is_tensor(elements[i]);
    if (!tensor && is_readable(elements[i])) return false;
    if (i >= words) continue;
    const bool was_tensor = held_.contains(wanted[i]) || wanted[i] == undefined_tensor();
    if (tensor != was_tensor || (!tensor && is_readable(wanted[i]))) return false;
  }
  for (std::size_t i = 0; i < new_words; ++i) {
    const auto dropped = held_tensor(elements[i]);
    const auto held = held_.find(wanted[i]);
    if (i < words && held != held_.end()) take_reference(held->second);
    put(new_begin + i * kWord, wanted[i]);
    drop_reference(dropped);
  }
  put(block.begin + (at + 1) * kWord, new_begin + (end - begin));
  blocks_[index].words[at] = new_begin;
  blocks_[index].words[at + 1] = new_begin + (end - begin);
  blocks_[index].words[at + 2] = new_storage;
  if (new_begin != begin) {
    block_of_[new_begin] = blocks_.size();
    blocks_.push_back({new_begin, block.object, index, block.begin + at * kWord, std::move(wanted)});
  }
  return true;
}

// Only the objects themselves, and the elements of their std::vectors, are known to be alive: what a pointer leads to
// may have been freed.
bool ObjectMemory::may_write(const Change& change) const {
  for (const Block& block : blocks_) {
    if (change.address < block.begin || change.address >= block.begin + block.words.size() * kWord) continue;
    if (block.pointed_from == 0) return true;
    if (blocks_[block.parent].pointed_from != 0 || change.kind != Kind::tensor) return false;
    std::array<Word, 3> ends;
    return read_words(block.pointed_from, ends.data(), ends.size()) == ends.size() && ends[0] == block.begin &&
           change.address < ends[1] && ends[1] <= ends[2] && ends[2] - ends[0] <= block.words.size() * kWord;
  }
  return false;
}

void ObjectMemory::restore_vectors(std::size_t index) {
  std::vector<Word> now(blocks_[index].words.size());
  if (!is_reachable(index) || read_words(blocks_[index].begin, now.data(), now.size()) != now.size()) return;
  for (std::size_t i = 0; i + 2 < now.size(); ++i) {
    const std::vector<Word>& words = blocks_[index].words;
    if (now[i + 1] == words[i + 1] || (words[i] != 0 && !may_be_address(words[i]))) continue;
    if (is_readable(now[i]) && restore_vector(index, i, now)) i += 2;
  }
}

bool ObjectMemory::restore() {
  bool complete = true;
  for (std::size_t index = blocks_.size(); index-- > 0;) {
    if (blocks_[index].pointed_from == 0) restore_vectors(index);
  }
  const std::vector<Change> different = changes();
  const auto near_pointer = [&](const Change& number) {
    constexpr Word kNear = 6 * kWord;  // the size of a map stands beside its pointers
    return std::any_of(different.begin(), different.end(), [&](const Change& other) {
      return other.kind == Kind::other &&
             std::max(other.address, number.address) - std::min(other.address, number.address) <= kNear;
    });
  };
  for (const Change& change : different) {
    if (!may_write(change)) {
      complete = false;
    } else if (change.kind == Kind::tensor) {
      take_reference(change.tensor_before);
      put(change.address, change.before);
      drop_reference(change.tensor_now);
    } else if (change.kind == Kind::number && !near_pointer(change)) {
      put(change.address, change.before);
    } else {
      complete = false;
    }
  }
  return complete;
}

}  // namespace fx::internal
