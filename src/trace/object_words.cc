#include <fxgraph/trace/object_words.h>

#include <algorithm>
#include <array>

#include <fxgraph/trace/heap_blocks.h>
#include <fxgraph/trace/proxy_memory.h>

namespace fx::internal {
namespace {

constexpr std::size_t kNearCount = 4;  // words: no container has its count further from an address
constexpr std::size_t kPayload = 7;    // words of the largest container that an optional or variant may hold

Word word_at(Word address) {
  std::vector<Word> value;
  return address % kWord == 0 && read_words(address, 1, value) ? value[0] : 0;
}

// std::map, std::set: color, root, first, last, count. The root knows the header as its parent.
std::size_t tree(const ObjectWords& words, std::size_t i) {
  if (i + 5 > words.now.size() || (words.now[i] & 0xffffffff) > 1) return 0;
  const Word root = words.now[i + 1], header = words.address(i);
  const bool is_empty = root == 0 && words.now[i + 2] == header && words.now[i + 3] == header;
  return is_empty || (root != 0 && word_at(root + kWord) == header) ? 5 : 0;
}

// std::list: next, previous, count.
std::size_t list(const ObjectWords& words, std::size_t i) {
  if (i + 3 > words.now.size()) return 0;
  const Word header = words.address(i);
  const bool is_empty = words.now[i] == header && words.now[i + 1] == header;
  return is_empty ||
                 (words.now[i] != 0 && word_at(words.now[i] + kWord) == header && word_at(words.now[i + 1]) == header)
             ? 3
             : 0;
}

// std::unordered_map, std::unordered_set: buckets, their number, first, count, load, next size, the only bucket. One of
// the buckets leads to the first.
std::size_t hash_table(const ObjectWords& words, std::size_t i) {
  constexpr Word kMost = Word{1} << 20;
  if (i + 7 > words.now.size()) return 0;
  const Word buckets = words.now[i], count = words.now[i + 1];
  if (count == 0 || count > kMost || words.now[i + 2] == 0) return 0;
  std::vector<Word> content;
  if (buckets % kWord != 0 || buckets == 0 || !read_words(buckets, count, content)) return 0;
  return std::find(content.begin(), content.end(), words.address(i + 2)) != content.end() ? 7 : 0;
}

// c10::SmallVector: begin, size and capacity in one word.
std::size_t small_vector(const ObjectWords& words, std::size_t i) {
  if (i + 2 > words.now.size()) return 0;
  const auto fits = [](Word both) {
    const Word size = both & 0xffffffff, capacity = both >> 32;
    return capacity > 0 && size <= capacity && capacity < (Word{1} << 24);
  };
  if (!fits(words.now[i + 1]) || !fits(words.before[i + 1])) return 0;
  const bool is_inline = words.now[i] == words.address(i + 2);
  return is_inline || chunk_sizes({words.now[i]})[0] >= words.now[i + 1] >> 32 ? 2 : 0;
}

// std::string that has memory of its own: begin, size, capacity. A short one is words like others.
std::size_t long_string(const ObjectWords& words, std::size_t i) {
  if (i + 3 > words.now.size()) return 0;
  const Word size = words.now[i + 1], capacity = words.now[i + 2];
  if (size > capacity || capacity < 2 * kWord) return 0;
  const Word chunk = chunk_sizes({words.now[i]})[0];  // 0 when there is none
  return chunk > capacity && chunk - capacity <= 4 * kWord ? 3 : 0;
}

// std::vector of what is no tensor: begin, end, end of the memory.
std::size_t vector(const ObjectWords& words, std::size_t i) {
  if (i + 3 > words.now.size()) return 0;
  const Word begin = words.now[i], end = words.now[i + 1], limit = words.now[i + 2];
  return begin != 0 && begin <= end && end <= limit && limit > begin && is_chunk_of(begin, limit - begin) ? 3 : 0;
}

using Layout = std::size_t (*)(const ObjectWords&, std::size_t);
constexpr std::array<Layout, 6> kLayouts = {tree, list, hash_table, small_vector, long_string, vector};
constexpr std::size_t kLongest = 7;

bool is_flag(Word before, Word now) { return (before ^ now) < 0x100; }

}  // namespace

// What stands in the bytes between a base and the first member, and behind the characters of a short string, was there
// before the object: a pointer that somebody left.
bool ObjectWords::has_no_pointer(std::size_t i) const {
  if (i < packed) return true;
  for (const std::size_t back : {2, 3}) {  // begin, length, characters
    if (i >= back && now[i - back] == address(i - back + 2) && now[i - back + 1] < 2 * kWord) return true;
  }
  return false;
}

// The rest of a flag's word is what was there before the object: it may look like an address.
bool ObjectWords::is_address(std::size_t i) const {
  if (has_no_pointer(i)) return false;
  if (is_flag(before[i], now[i]) && ((before[i] | now[i]) % kWord != 0)) return false;
  return (is_mapped(now[i]) && !is_proxy_memory(now[i])) || is_mapped(before[i]);
}

std::vector<bool> ObjectWords::of_containers() const {
  std::vector<bool> result(now.size(), false);
  std::size_t last_changed = 0;  // behind it
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (std::size_t j = std::max(i, last_changed); j < std::min(i + kLongest, now.size()); ++j) {
      if (changed(j)) last_changed = j + 1;
    }
    if (last_changed <= i || result[i] || tensors[i]) continue;
    for (const Layout layout : kLayouts) {
      const std::size_t length = layout(*this, i);
      for (std::size_t j = i; j < i + length; ++j) result[j] = true;
      if (length > 0) break;
    }
  }
  return result;
}

bool ObjectWords::in_small_vector(std::size_t i) const {
  constexpr std::size_t kLargest = 64;  // words
  for (std::size_t begin = i < kLargest ? 0 : i - kLargest; begin + 2 <= i; ++begin) {
    const bool is_one =
        now[begin] == address(begin + 2) && before[begin] == now[begin] && small_vector(*this, begin) > 0;
    if (is_one && before[begin + 1] != now[begin + 1] && i - begin - 2 < (now[begin + 1] >> 32)) return true;
  }
  return false;
}

// Whether an unchanged pointer among these words leads to what has been freed.
bool ObjectWords::leads_to_freed(std::size_t from, std::size_t to, const HeapBlocks& blocks) const {
  for (std::size_t j = from; j < std::min(to, now.size()); ++j) {
    if (now[j] == before[j] && !settled[j] && !has_no_pointer(j) && blocks.knows(now[j]) &&
        !blocks.begins_as_before(now[j]))
      return true;
  }
  return false;
}

std::vector<std::size_t> ObjectWords::own_numbers(const HeapBlocks& blocks,
                                                  const std::function<bool(std::size_t)>& is_explained) const {
  const std::vector<bool> contained = of_containers();
  std::vector<std::size_t> numbers;
  const auto disturbs = [&](std::size_t i) { return changed(i) && !contained[i] && is_address(i); };
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!changed(i) || contained[i] || is_proxy_memory(now[i]) || is_address(i)) continue;
    bool is_own = true;
    for (std::size_t j = i < kNearCount ? 0 : i - kNearCount; j < std::min(i + kNearCount + 1, now.size()); ++j)
      is_own = is_own && !disturbs(j);
    if (is_own && is_flag(before[i], now[i])) {
      // std::optional has its flag behind the value, c10::optional before it: what follows any other flag, the rest of
      // the object's chunk among it, says nothing.
      const bool of_tensor_before = i > 0 && is_explained(i - 1);
      const bool of_tensor_behind = i + 1 < now.size() && is_explained(i + 1);
      const bool was_emptied = (before[i] & 0xff) == 1 && (now[i] & 0xff) == 0;
      is_own =
          of_tensor_before || (!leads_to_freed(i < kPayload ? 0 : i - kPayload, i, blocks) &&
                               (of_tensor_behind || !was_emptied || !leads_to_freed(i + 1, i + 1 + kPayload, blocks)));
    }
    if (is_own) numbers.push_back(i);
  }
  return numbers;
}

}  // namespace fx::internal
