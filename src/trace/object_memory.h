// ObjectMemory: the words of an object that C++ tells nothing about, remembered and put back.
//
// A module may keep tensors, counters and flags in members that it registers nowhere, and C++ has no way to list them.
// This looks at the object's memory as a conservative garbage collector does: word by word, following pointers to other
// allocations. A word that points at a live TensorImpl is a tensor; it is held, so that it can be put back. What a
// program changed is then put back word by word, where that is known to be right: tensors by tensors, numbers by
// numbers, the elements of a std::vector that has grown: in the object itself and its vectors. The rest is left alone
// and reported.
//
// Memory is read through the kernel, so that a wrong guess cannot crash. Only GNU's C library says how large an
// allocation is: elsewhere only objects of known size are looked at. Cost: linear in the bytes found, at most 1 MiB.
// Thread-safety: none; the object must not change meanwhile.
#pragma once

#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fx::internal {

class ObjectMemory {
 public:
  /// A word that is another one than before.
  struct Change {
    enum class Kind : std::uint8_t {
      tensor,  ///< a tensor
      number,  ///< a number, flag or a part of one
      other,   ///< a pointer: a container has grown, an object was replaced
    };
    Kind kind;
    std::size_t object;  ///< which of the objects it belongs to, in the order of add()
    std::uintptr_t address;
    std::uintptr_t before;
    std::uintptr_t now;
    /// The tensor that stood there and stands there; null when none.
    c10::intrusive_ptr<c10::TensorImpl> tensor_before;
    c10::intrusive_ptr<c10::TensorImpl> tensor_now;
  };

  /// Says that what begins at `address` is looked at elsewhere, or not at all.
  void leave_out(const void* address) { left_out_.insert(reinterpret_cast<std::uintptr_t>(address)); }
  /// Remembers `size` bytes at `object` (0: as many as the allocation has that `owner`, its control block or itself,
  /// begins) less those in [skip, skip + skip_size), and what they point to.
  void add(const void* object, std::size_t size, const void* owner, const void* skip, std::size_t skip_size);

  /// What is different now.
  std::vector<Change> changes() const;
  /// Puts back what can be. True when nothing is different now.
  bool restore();

 private:
  struct Block {
    std::uintptr_t begin;
    std::size_t object;
    std::size_t parent;           // the block that points here; its own index for an object
    std::uintptr_t pointed_from;  // where
    std::vector<std::uintptr_t> words;
  };

  void follow(std::size_t block);
  void remember(std::uintptr_t begin, std::size_t words, std::size_t object, std::size_t parent,
                std::uintptr_t pointed_from);
  bool is_reachable(std::size_t block) const;
  bool restore_vector(std::size_t block, std::size_t at, const std::vector<std::uintptr_t>& now);
  void restore_vectors(std::size_t block);
  bool may_write(const Change& change) const;
  const Block* block_at(std::uintptr_t begin) const;

  std::vector<Block> blocks_;
  std::unordered_map<std::uintptr_t, std::size_t> block_of_;                      // by address; look-up only
  std::unordered_map<std::uintptr_t, c10::intrusive_ptr<c10::TensorImpl>> held_;  // look-up only
  std::unordered_set<std::uintptr_t> left_out_;                                   // look-up only
  std::size_t objects_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace fx::internal
