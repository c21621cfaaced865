#include <fxgraph/trace/heap_blocks.h>

#include <algorithm>
#include <array>

namespace fx::internal {
namespace {

constexpr int kSteps = 4;
constexpr std::size_t kBeginning = 2;                // words that malloc() writes into what it takes back
constexpr std::size_t kLargest = 512;                // words of a block
constexpr std::size_t kMost = std::size_t{1} << 16;  // words of all
constexpr Word kMask = ~Word{0};                     // what is masked is no address

// Words of memory, for a moment, where malloc() never gives any.
const Word* look(Word begin, std::size_t count) {
  static thread_local std::array<Word, kLargest> buffer;
  return count <= kLargest && read_words(begin, count, buffer.data()) ? buffer.data() : nullptr;
}

}  // namespace

void HeapBlocks::read(const std::vector<Word>& words, const std::function<bool(Word)>& is_known) {
  std::vector<Word> found = words;
  std::size_t total = 0;
  for (int step = 0; step < kSteps && !found.empty(); ++step) {
    std::vector<Word> next;
    std::vector<Word> fresh;
    for (const Word word : found) {
      if (!at_.contains(word) && !is_known(word)) fresh.push_back(word);
    }
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    const std::vector<at::Tensor> tensors = tensors_at(fresh);
    const std::vector<std::size_t> sizes = chunk_sizes(fresh);
    for (std::size_t i = 0; i < fresh.size() && total < kMost; ++i) {
      const std::size_t count = sizes[i] / kWord;
      const Word* content = count == 0 || tensors[i].defined() ? nullptr : look(fresh[i], count);
      if (!content) continue;
      total += count;
      at_.emplace(fresh[i], blocks_.size());
      blocks_.push_back({fresh[i], std::vector<Word>(count)});
      for (std::size_t j = 0; j < count; ++j) {
        blocks_.back().before[j] = content[j] ^ kMask;
        if (may_be_address(content[j])) next.push_back(content[j]);
      }
    }
    found = std::move(next);
  }
}

std::vector<Word> HeapBlocks::addresses() const {
  std::vector<Word> all;
  for (const Block& block : blocks_) {
    for (const Word word : block.before) {
      if (may_be_address(word ^ kMask)) all.push_back(word ^ kMask);
    }
  }
  return all;
}

bool HeapBlocks::begins_as_before(Word address) const {
  const std::vector<Word>& before = blocks_[at_.at(address)].before;
  const std::size_t count = std::min(before.size(), kBeginning);
  const Word* now = look(address, count);
  return now && std::equal(now, now + count, before.begin(), [](Word a, Word b) { return (a ^ kMask) == b; });
}

void HeapBlocks::for_each_change(const std::function<bool(Word before, Word now)>& may_change,
                                 const std::function<void(Word before, Word now)>& visit) const {
  std::vector<std::pair<Word, Word>> changed;  // before, masked, and now
  for (const Block& block : blocks_) {
    changed.clear();
    const Word* now = look(block.begin, block.before.size());
    bool is_same = now != nullptr;
    for (std::size_t i = 0; is_same && i < block.before.size(); ++i) {
      const Word before = block.before[i] ^ kMask;
      if (now[i] == before) continue;
      is_same = i >= kBeginning || may_change(before, now[i]);
      changed.emplace_back(block.before[i], now[i]);
    }
    if (!is_same) continue;
    for (const auto& [before, after] : changed) visit(before ^ kMask, after);
  }
}

}  // namespace fx::internal
