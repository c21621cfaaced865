// MemberState: the tensors, vectors of tensors and numbers in members that modules register nowhere, remembered and put
// back.
//
// C++ does not tell the members of an object, but a trace tells its own: a word of the object that has become the
// address of one of its proxies is a tensor. Looked at are the objects themselves and vectors of tensors in them,
// nothing that lies further away. A word is written only back to what it was, and only where it is certain what it
// belongs to:
//   - How large an object is, is known of objects that a shared pointer has made or deletes, and of those that the
//     tracer was given by reference. Others are not looked at.
//   - What a tensor was before is found as trace/tensor_words.h says, and kept alive from the start. What it is now is
//   a
//     proxy that the trace's sessions know to be alive, an undefined tensor, or a tensor that is alive.
//   - A tensor that was defined is known to have been there when it has lost an owner since: else the word may be a
//   plain
//     pointer. Beside a flag that has been cleared a word may own nothing (an optional that was emptied keeps it). In
//     such doubt an ordinary tensor stays, and a proxy is replaced, but not released: it lives for ever, and the trace
//     is refused. A proxy that stands in more places than it has owners stays.
//   - A number is put back when it and what it was are no addresses, and everything beside it is understood: a number,
//   a
//     tensor that is as it was, a child module, code, a string or a vector that nobody has changed. The counts of
//     containers stand beside addresses that are none of these.
// What else has changed stays. Traced tensors left in it are counted by trace/left_over.h, and the trace is refused.
//
// Cost: linear in the objects' bytes, a system call for every 300 words that may be addresses. Only with GNU's C and
// C++ libraries; elsewhere nothing is found. Thread-safety: none; nobody may run the modules meanwhile.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/trace/tensor_words.h>

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

  std::vector<Change> changes() const;
  /// The objects in which a number has changed since the last call of this (or begin(), restore()), and had before.
  std::vector<std::size_t> counting();
  void restore();
  /// The proxies of this thread's trace that have owners elsewhere.
  std::vector<ProxyImpl*> proxies_elsewhere() const;

 private:
  struct Region {
    std::size_t object;
    Word begin;
    bool is_known;  // all its tensors are registered
    std::vector<Word> before;
    std::vector<Word> last;           // when counting() was asked
    std::vector<std::uint8_t> times;  // that a number was seen to change
  };
  /// A vector of tensors that begins at word `at` of a region.
  struct Vector {
    std::size_t region, at;
    std::vector<at::Tensor> tensors;
  };
  /// How often an address stands in the objects and in the vectors in them.
  using Places = std::unordered_map<Word, std::size_t>;
  /// A region as it is now, and which of its words need nothing more.
  struct Now {
    std::vector<Word> words;
    std::vector<bool> settled;
  };

  const at::Tensor* tensor_before(Word word) const;
  void hold(const std::vector<Word>& words);
  void find_vectors(std::size_t region);
  Places places() const;
  void restore_vector(const Region& region, std::size_t at, const std::vector<at::Tensor>& before, Places& places,
                      Now& now) const;
  void restore_vectors(std::size_t region, Places& places, Now& now) const;
  void restore_tensors(const Region& region, Places& places, Now& now) const;
  std::size_t released(Word tensor) const;
  static bool restore_optional(const Region& region, std::size_t at, Now& now);
  void restore_numbers(const Region& region, const Now& now) const;
  std::vector<bool> understood(const Region& region, const Now& now) const;

  std::size_t objects_ = 0;
  std::vector<Region> regions_;
  std::vector<Vector> vectors_;
  std::unordered_set<Word> registered_;        // addresses of objects and of their parameters and buffers
  std::unordered_map<Word, at::Tensor> held_;  // by the address of the TensorImpl, the undefined one too; look-up only
  std::unordered_map<Word, std::size_t> owners_;  // of those, at the start
};

}  // namespace fx::internal
