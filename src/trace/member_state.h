// MemberState: the tensors, vectors of tensors and numbers in members that modules register nowhere, remembered and put
// back.
//
// C++ does not tell the members of an object, but a trace tells its own: a word of the object that has become the
// address of a proxy is a tensor. Looked at are the objects themselves and vectors of tensors in them, nothing that
// lies further away. Nothing is written on a guess:
//   - How large an object is, is known of objects that a shared pointer has made or deletes, and of those that the
//     tracer was given by reference. Others are not looked at.
//   - A word is a tensor when it is the address of a TensorImpl that is alive: it begins a chunk of malloc() of the
//   right
//     size, its table of virtual functions is the right one, and its count of references is not zero, which it is in
//     one that has been destroyed. It is read through the kernel, so that any number may be asked about, and copies of
//     what was read are wiped: an old address must not find them. What a tensor was before is kept alive from the
//     start.
//   - A number is put back when neither it nor what it was is an address of anything, and no pointer near it has
//     changed: the sizes of containers stay with their containers.
// What else has changed stays. Traced tensors left in it are counted by trace/left_over.h, and the trace is refused.
//
// Cost: linear in the objects' bytes, a system call for every 512 words that may be addresses. Only with GNU's C and
// C++ libraries; elsewhere nothing is found. Thread-safety: none; nobody may run the modules meanwhile.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fx::internal {

class MemberState {
 public:
  /// A tensor that another one has replaced.
  struct Change {
    std::size_t object;  ///< in the order of add()
    at::Tensor before;   ///< undefined when it was
    at::Tensor now;
  };

  /// Looks at `module` from now on. It is one of the objects, even if nothing is known of its members.
  void add(const std::shared_ptr<torch::nn::Module>& module);
  /// Remembers everything as it is now; after the last add().
  void begin();

  std::vector<Change> changes() const;
  /// The objects in which a number has changed since the last call of this (or begin(), restore()), and had before.
  std::vector<std::size_t> counting();
  void restore();

 private:
  using Word = std::uintptr_t;
  struct Region {
    std::size_t object;
    Word begin;
    std::vector<Word> before;
    std::vector<Word> last;           // when counting() was asked
    std::vector<std::uint8_t> times;  // that a number was seen to change
  };
  /// A vector of tensors that begins at word `at` of a region.
  struct Vector {
    std::size_t region, at;
    std::vector<at::Tensor> tensors;
  };

  at::Tensor tensor_before(Word word, bool* known) const;
  void hold(const std::vector<Word>& words);
  void find_vectors(std::size_t region);
  std::vector<bool> restore_vectors(std::size_t region, const std::vector<Word>& now);
  static std::vector<std::size_t> changed_numbers(const std::vector<Word>& before, const std::vector<Word>& now,
                                                  const std::vector<bool>& settled);

  std::size_t objects_ = 0;
  std::vector<Region> regions_;
  std::vector<Vector> vectors_;
  std::unordered_map<Word, at::Tensor> held_;  // by the address of the TensorImpl; look-up only
};

/// The deleter of a shared pointer to a module that somebody else owns.
struct Borrowed {
  std::size_t size;  ///< of the object
  void operator()(torch::nn::Module*) const {}
};

}  // namespace fx::internal
