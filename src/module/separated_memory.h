// Memory that tensors read in several ways (as complex numbers and their real parts, as integers and bytes, conjugated,
// negated), for forms that keep one reading of each memory: TorchScript's and torch.export's archives, pickles. Such
// tensors get memory of their own where nobody can tell. Thread-safety: as reading the module.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/graph_module.h>

namespace fx::internal {

/// A tensor of a program.
struct HeldTensor {
  std::string path;
  at::Tensor tensor;
  bool is_written_or_returned = false;  ///< by the program; callers may write, too
  bool is_read_beyond = false;          ///< what lies beside it in its memory is read

  /// Adds what the program does with what `attribute`, a get_attr, reads.
  void note(const Node& attribute, const Effects& effects);
};

/// Whether one reading of their memory is enough for all of `group`, which share it.
bool is_read_in_one_way(const std::vector<HeldTensor>& group);

/// For each of `group`, which share memory, a tensor that stands alone. Throws Error(unsupported), naming the tensors
/// and the `form` that has no words for it, where one of several is written or trained, or
/// one is read beyond its elements.
std::vector<at::Tensor> separated(const std::vector<HeldTensor>& group, const std::string& form);

/// Those of `module`'s tensors that stand for others in a file of this form, by these others.
std::unordered_map<const at::TensorImpl*, at::Tensor> separated_tensors(const GraphModule& module,
                                                                        const std::string& form);

}  // namespace fx::internal
