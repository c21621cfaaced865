// One of two programs that are compared, with all that it did so far.
// Internal to testing/hostile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fxgraph/testing/hostile/behaviour.h>

namespace fx::hostile {

/// What is no storage of anybody's.
inline constexpr std::size_t kFresh = ~std::size_t{0};

/// Null for a tensor without elements, of which nobody can tell.
const void* storage_of(const at::Tensor& tensor);

/// The tensors of a result, and what stands around them as a text.
void take_apart(const c10::IValue& value, Tensors& tensors, std::string& structure);

/// In words what `b` has that `a` has not; nothing when they are alike. Signs of zeros count where they must be equal.
std::optional<std::string> tensors_differ(const at::Tensor& a, const at::Tensor& b, const Tolerance& tolerance);

class Subject {
 public:
  explicit Subject(Callable program);

  struct State {
    std::string path;
    at::Tensor tensor;
    at::Tensor initial;
  };
  struct Call {
    std::string error;
    Tensors results, inputs;
    std::string structure;
    std::vector<std::size_t> shares;  // for each result, the first of inputs and results with the same storage
    std::vector<bool> shares_state;
  };

  /// Puts the state back to what it was at first.
  void reset();
  Call call(const Tensors& inputs, std::uint64_t seed);

  const std::vector<State>& state() const { return state_; }
  const State* find(const std::string& path) const;

 private:
  void note_sharing(Call& done) const;

  Callable program_;
  std::vector<State> state_;
};

}  // namespace fx::hostile
