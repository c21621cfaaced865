// Paths in a torch::nn::Module tree: finding, setting and removing tensors and submodules by `layer1.0.conv.weight`.
//
// Costs: the atoms of the path. Nothing here is thread-safe.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace fx {

/// `layer1.0.conv` -> {`layer1.0`, `conv`}; `conv` -> {``, `conv`}.
std::pair<std::string, std::string> split_path(const std::string& path);

/// `layer1.0` + `conv` -> `layer1.0.conv`.
std::string join_path(std::string_view parent, std::string_view name);

/// The module at `path` below `root`, null when there is none. The root itself (empty path) has no shared pointer: see
/// find_module.
std::shared_ptr<torch::nn::Module> find_child(const torch::nn::Module& root, const std::string& path);
/// The module at `path`, `root` for the empty path, null when there is none.
const torch::nn::Module* find_module(const torch::nn::Module& root, const std::string& path);

/// The parameter or buffer at `path`; undefined when there is none.
torch::Tensor find_tensor(const torch::nn::Module& root, const std::string& path, bool* is_parameter = nullptr);

/// Registers the tensor under `name` in `module`, replacing what is registered there.
void put_tensor(torch::nn::Module& module, const std::string& name, const torch::Tensor& tensor, bool is_parameter);
/// Puts the tensor in place of the one at `path` below `root`, wherever the module that holds it reads it: among the
/// members of a module of torch.nn, in a script. False, and nothing is done, where nobody knows how that module reads
/// it.
bool replace_tensor(torch::nn::Module& root, const std::string& path, const torch::Tensor& tensor, bool is_parameter);
/// Removes a parameter or buffer; false when there is none.
bool remove_tensor(torch::nn::Module& module, const std::string& name);

/// Makes Holders until `path` is a module below `root`, and returns it. Throws Error(invalid_argument) when an atom
/// names a tensor.
torch::nn::Module& make_holders(torch::nn::Module& root, const std::string& path);

/// Sets the training flag of this module alone; Module::train sets those below it too.
void set_own_mode(torch::nn::Module& module, bool training);
/// Gives `to` and the Holders in it the modes of `from` and what it has at their paths. Modules that both share keep
/// theirs: a frozen BatchNorm in a net that trains stays frozen.
void copy_modes(const torch::nn::Module& from, torch::nn::Module& to);

/// Copies registered tensors (cloned, moved to `device` when given) and children (deep) of `from` into the empty `to`.
void deep_copy_contents(const torch::nn::Module& from, torch::nn::Module& to, const c10::Device* device);
/// Ties in `to`, a deep copy of `from`, what is tied there, as Python's deepcopy does: one tensor under two names,
/// views of one storage, a part of a storage, one module under two names; and gives each tensor the requires_grad of
/// its original. Throws Error(unsupported) where two modules of C++ types without a ModuleType::tensors share a
/// parameter: each made its own when it was cloned, which nobody can replace. Linear in the tensors and modules.
void keep_ties(const torch::nn::Module& from, torch::nn::Module& to);

}  // namespace fx
