#include <fxgraph/trace/heap_blocks.h>

#include <algorithm>

namespace fx::internal {
namespace {

constexpr int kSteps = 4;
constexpr std::size_t kLargest = std::size_t{1} << 13;  // words of a block that are looked at
constexpr std::size_t kMost = std::size_t{1} << 16;     // words of all

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
      std::vector<Word> content;
      if (sizes[i] == 0 || tensors[i].defined() || !read_words(fresh[i], std::min(sizes[i] / kWord, kLargest), content)) continue;
      total += content.size();
      next.insert(next.end(), content.begin(), content.end());
      at_.emplace(fresh[i], blocks_.size());
      blocks_.push_back({fresh[i], std::move(content)});
    }
    found = std::move(next);
  }
}

std::vector<Word> HeapBlocks::words() const {
  std::vector<Word> all;
  for (const Block& block : blocks_) all.insert(all.end(), block.before.begin(), block.before.end());
  return all;
}

bool HeapBlocks::begins_as_before(Word address) const {
  const std::vector<Word>& before = blocks_[at_.at(address)].before;
  const std::size_t count = std::min<std::size_t>(before.size(), 2);
  std::vector<Word> now;
  return read_words(address, count, now) && std::equal(now.begin(), now.end(), before.begin());
}

void HeapBlocks::for_each_change(const std::function<void(Word before, Word now)>& visit) const {
  for (const Block& block : blocks_) {
    std::vector<Word> now;
    if (!read_words(block.begin, block.before.size(), now)) continue;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] != block.before[i]) visit(block.before[i], now[i]);
    }
  }
}

}  // namespace fx::internal
