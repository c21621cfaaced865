// ObjectWords: the words of an object before and now, and which of those that changed are numbers of its own.
//
// A number that changed is the object's own, a counter or a flag, unless it belongs to what stands beside it:
//   - The counts of the standard library's maps, sets, lists, hash tables and strings, and of small vectors, are known
//     by their pointers, which lead back to where they stand.
//   - A number near another address is taken for a part of something unknown.
//   - A flag may be that of an optional or variant which has destroyed what it had: then what its pointers lead to has
//     been freed. One beside a tensor that is known to have come or gone belongs to that.
//
// Only with the layouts of GNU's library. Cost: linear in the words, system calls for those that changed.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/trace/tensor_words.h>

namespace fx::internal {

class HeapBlocks;

struct ObjectWords {
  Word begin;
  const std::vector<Word>& before;
  const std::vector<Word>& now;
  const std::vector<bool>& settled;  ///< words that need nothing more
  const std::vector<bool>& tensors;  ///< words that are tensors or modules
  std::size_t packed = 0;            ///< so many at the beginning are shared with a base: too narrow for pointers

  bool changed(std::size_t i) const { return now[i] != before[i] && !settled[i]; }
  Word address(std::size_t i) const { return begin + i * kWord; }
  /// The words that are parts of containers of which one has changed.
  std::vector<bool> of_containers() const;
  /// Whether word `i` lies among the elements that a small vector has in itself, and has another number of now.
  bool in_small_vector(std::size_t i) const;
  /// The words that are numbers of the object's own and have changed. `is_explained` says of a tensor that it has come
  /// or gone.
  std::vector<std::size_t> own_numbers(const HeapBlocks& blocks,
                                       const std::function<bool(std::size_t)>& is_explained) const;

 private:
  bool is_address(std::size_t i) const;
  bool has_no_pointer(std::size_t i) const;
  bool leads_to_freed(std::size_t from, std::size_t to, const HeapBlocks& blocks) const;
};

}  // namespace fx::internal
