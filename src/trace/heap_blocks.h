// HeapBlocks: what the pointers in objects lead to, remembered: nodes of containers, what lies behind smart pointers.
//
// Only read, and nothing is written there ever: a word that looks like an address may lead anywhere. Followed are
// addresses at which malloc() gave a chunk of four kilobytes at most, four steps from the objects, half a megabyte in
// all; tensors are not entered. What is read tells two things: which tensor a place held before, and whether a chunk
// has been freed since, for malloc() writes the first words of what it takes back. What is kept of it is no copy, which
// a later look could take for what it is a copy of.
//
// Cost: linear in what is read, a system call for every 1000 addresses. Thread-safety: none.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include <fxgraph/trace/tensor_words.h>

namespace fx::internal {

class HeapBlocks {
 public:
  /// Remembers what `words` lead to; those for which `is_known` says so are not followed.
  void read(const std::vector<Word>& words, const std::function<bool(Word)>& is_known);
  /// All words of the blocks that could be addresses, as they were.
  std::vector<Word> addresses() const;
  bool knows(Word address) const { return at_.contains(address); }
  /// Whether what begins at `address`, which is known, begins as it did.
  bool begins_as_before(Word address) const;
  /// Each word that is another one now, in blocks that begin as they did but for words of which `may_change` says that
  /// they may be others: what has been freed and given to somebody else begins otherwise.
  void for_each_change(const std::function<bool(Word before, Word now)>& may_change,
                       const std::function<void(Word before, Word now)>& visit) const;

 private:
  struct Block {
    Word begin;
    std::vector<Word> before;  // masked
  };
  std::vector<Block> blocks_;
  std::unordered_map<Word, std::size_t> at_;  // by address; look-up only
};

}  // namespace fx::internal
