// MemberState: the tensors, vectors of tensors and numbers in members that modules register nowhere, remembered and put
// back.
//
// C++ does not tell the members of an object, but a trace tells its own: while one of these is alive, a traced tensor
// lies where nothing ever lay (trace/proxy_memory.h), and a word that has become its address was given a handle on it.
// Looked at are the objects themselves and vectors of tensors in them. A word is written only back to what it was:
//   - How large an object is, is known of objects that a shared pointer has made or deletes, and of those that the
//     tracer was given by reference. Others are not looked at.
//   - What a tensor was before is found as trace/tensor_words.h says, and kept alive from the start.
//   - A word need not own what it names: it may be a plain pointer, or an optional's that was emptied. A tensor that
//   was
//     defined is known to have been owned there when it has lost an owner since, one that is traced when it has as many
//     owners as places. In doubt an ordinary tensor stays, and a traced one is replaced, but not released: it lives for
//     ever. So nothing is released that is not owned.
//   - Numbers are put back where trace/object_words.h takes them for the object's own.
// What lies further away is only read: before() tells what a traced tensor has taken the place of there. What cannot be
// put back is proxies_elsewhere().
//
// Cost: linear in the objects' bytes and what trace/heap_blocks.h reads, a system call for every 300 words that may be
// addresses. Only with GNU's C and C++ libraries and the malloc() of the first (knows_heap()); elsewhere nothing is
// looked at, nothing is put back, and what is left is settled and refused. Thread-safety: none; nobody may run the
// modules meanwhile.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/trace/heap_blocks.h>
#include <fxgraph/trace/object_words.h>
#include <fxgraph/trace/proxy_memory.h>

namespace fx::internal {

class ProxyImpl;

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

  /// Whether this tensor lay in one of the objects then, or behind a pointer there.
  bool had(const at::Tensor& tensor) const { return held_.contains(word_of(tensor.unsafeGetTensorImpl())); }
  std::vector<Change> changes() const;
  /// Whether a word of an object is not as it was.
  bool has_changed() const;
  /// The objects in which a number has changed since the last call of this (or begin(), restore()), and had before.
  std::vector<std::size_t> counting();
  void restore();
  /// Lets members go of modules that have been registered since; the last one in a vector of pointers first.
  void release(const std::vector<std::shared_ptr<torch::nn::Module>>& modules);
  /// The proxies of this thread's trace that restore() would leave to some owner.
  std::vector<ProxyImpl*> proxies_elsewhere();
  /// The tensor whose place `proxy` has taken behind pointers; undefined when there is none, or not one only.
  at::Tensor before(const ProxyImpl& proxy) const;

 private:
  struct Region {
    std::size_t object;
    Word begin;
    bool is_known;  // all its tensors are registered
    std::vector<Word> before;
    std::vector<Word> last;           // when counting() was asked
    std::vector<std::uint8_t> times;  // that a number was seen to change
    std::size_t packed = 0;           // ObjectWords::packed
  };
  /// A vector of tensors that begins at word `at` of a region.
  struct Vector {
    std::size_t region, at;
    std::vector<at::Tensor> tensors;
  };
  class Repair;

  const at::Tensor* tensor_before(Word word) const;
  /// How many owners a tensor has lost, as far as is known.
  long lost_owners(Word tensor) const;
  void hold(const std::vector<Word>& words);
  void find_vectors(std::size_t region);

  std::size_t objects_ = 0;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<Region> regions_;
  std::vector<Vector> vectors_;
  HeapBlocks blocks_;
  std::optional<ExactProxies> exact_;
  std::unordered_set<Word> registered_;        // addresses of objects and of their parameters and buffers
  std::unordered_map<Word, at::Tensor> held_;  // by the address of the TensorImpl, the undefined one too; look-up only
  std::unordered_map<Word, std::size_t> owners_;  // of those, at the start
};

}  // namespace fx::internal
