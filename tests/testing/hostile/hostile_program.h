// A program with weights, modules and inputs, that can be made anew as often as wanted, always the same.
// Internal to this library and the tests.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/testing/hostile/tensors.h>

namespace fx::hostile {

/// How one tensor reads the memory of another.
enum class Reading : std::uint8_t { itself, row, transposed, expanded, conjugate, imaginary, negative, real, bytes };

/// Throws where the tensor cannot be read so.
at::Tensor read_as(Reading reading, const at::Tensor& tensor);

/// A tensor under a name. `same_as` names an earlier one whose memory it is, tied or read otherwise.
struct Weight {
  std::string path;
  at::Tensor value;
  bool parameter = false;
  std::string same_as{};
  Reading reading = Reading::itself;  ///< of `same_as`, or of the value
};

/// A module under a name; `same_as` names an earlier path of the same module.
struct Submodule {
  std::string path;
  std::shared_ptr<torch::nn::Module> prototype;
  std::string same_as{};
  /// Tensors of it that share storage with a weight: the name in the module, and the weight's path.
  std::vector<std::pair<std::string, std::string>> tied{};
};

using Tensors = std::vector<at::Tensor>;

struct HostileProgram {
  Graph graph;
  std::vector<Weight> weights;
  std::vector<Submodule> submodules;
  /// Sets of inputs of the same forms.
  std::vector<Tensors> inputs;
  Numbers numbers = Numbers::tame;
  /// The narrowest floating-point type that a value has.
  at::ScalarType narrowest = at::kDouble;

  /// A module of its own, sharing nothing with any other; throws what GraphModule throws.
  std::shared_ptr<GraphModule> build() const;
  HostileProgram clone() const;
  /// The same with finite numbers of moderate size in its inputs and weights.
  HostileProgram with_tame_numbers() const;
  /// Text of the graph, weights and inputs: enough to make it again.
  std::string str() const;
};

/// Makes the tensor of `module` share the storage of another one of its sizes.
void tie(torch::nn::Module& module, const std::string& name, const at::Tensor& tensor);

/// The tensors of `root`, by path, all paths of a shared one; in no order that means anything.
std::vector<std::pair<std::string, at::Tensor>> state_of(const torch::nn::Module& root);

}  // namespace fx::hostile
