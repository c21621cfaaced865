// Words of memory that may be addresses of tensors: which of them are.
//
// A word is taken for a tensor when a TensorImpl that is alive begins there: malloc() gave a chunk of the right size at
// that address, its table of virtual functions is that of an ordinary tensor or of a proxy, and its count of references
// is not zero, as it is in one that has been destroyed. Any number may be asked about: what is not known to be there is
// read through the kernel. No copy of a tensor's head is made, which a later look could take for a tensor.
//
// Only with the malloc() of GNU's C library, which keeps a size before each chunk; with another one (jemalloc, that of
// a sanitizer or of valgrind) knows_heap() is false, and nothing of this is to be asked. Thread-safety: another thread
// must not be destroying what is asked about. What a program holds, nobody destroys.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace fx::internal {

using Word = std::uintptr_t;
constexpr std::size_t kWord = sizeof(Word);

inline void* pointer(Word word) { return reinterpret_cast<void*>(word); }  // NOLINT: addresses are what this is about
inline Word word_of(const void* address) { return reinterpret_cast<Word>(address); }  // NOLINT

/// Whether the heap is one in which chunks can be told: looked up once.
bool knows_heap();
/// The word in a Tensor that is undefined.
Word undefined_word();
/// Whether the word could be the address of a word.
bool may_be_address(Word word);
/// Whether the word is the address of memory that can be read.
bool is_mapped(Word word);
/// Whether the word is the address of code, or of data that the program cannot write: a table of virtual functions.
bool is_constant(Word word);
/// Words of memory that is there.
std::vector<Word> words_at(Word begin, std::size_t count);
/// Whether the three may be those of a vector that is not large: in one chunk, which begins with the first; or null.
bool may_be_vector(Word begin, Word end, Word capacity);
/// Whether malloc() gave memory for `bytes` at `begin`, and not for much more.
bool is_chunk_of(Word begin, std::size_t bytes);
/// How many bytes malloc() gave at each of `words`; 0 where it gave none, or so many that they are no part of its heap.
std::vector<std::size_t> chunk_sizes(const std::vector<Word>& words);
/// A handle on each tensor whose address is among the words; undefined for others. Cost: a system call for every 300.
std::vector<at::Tensor> tensors_at(const std::vector<Word>& words);
/// `count` words at `begin`; false when they cannot be read.
bool read_words(Word begin, std::size_t count, Word* words);
bool read_words(Word begin, std::size_t count, std::vector<Word>& words);

}  // namespace fx::internal
