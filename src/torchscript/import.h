// TorchScript in: a scripted or traced model becomes a GraphModule.
//
// The importer interprets the model's forward abstractly, over everything that the file decides: attributes, training
// flags, lists of modules, default arguments. Submodules of torch.nn (containers excepted) become call_module leaves,
// all other modules and functions are inlined, loops with a known number of rounds are unrolled, conditions that the
// file decides are taken. `if condition: raise` with a condition that only data decides becomes `torch._assert`. Other
// control flow that depends on data is Error(unsupported), which names the Python source line and shows it. With
// examples (LoadOptions::examples) only what hangs on the elements of tensors is. What forward sets on its module,
// no parameter or buffer, before it reads it is a value of the call. With examples so is a state that the first call
// makes, when a second one leaves it alone and gives the same: the numbers in it are asserted.
//
// What the training flag says when the file is loaded is folded into the graph; leaves keep both of their modes. A file
// of fxgraph's whose program holds for one mode gives a GraphModule that refuses the other, as the one that was saved.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/text/program_form.h>

namespace torch::jit {
struct Module;
}

namespace fx {

/// How a model is read, by load() and from_torchscript().
struct LoadOptions {
  /// Which submodules stay call_module. Sees Python's qualified class name (`torch.nn.modules.conv.Conv2d`) and the
  /// path. Default: torch.nn and torch.ao.nn but for containers, see is_torch_nn_leaf.
  std::function<bool(const std::string& qualified_name, const std::string& path)> is_leaf{};
  /// Inputs that always have this value: they are no inputs of the graph, and conditions on them are decided (FX's
  /// concrete_args). `{"mask", {}}` imports the model as it is when no mask is given.
  std::map<std::string, c10::IValue> concrete_inputs{};
  /// Values of the inputs, in their order without those of concrete_inputs, at which the file runs once while it is
  /// read: branches and loops that hang on sizes, ranks, numbers and absent optionals go as they go there, which the
  /// graph asserts with TorchScript's own line as the reason. Sizes stay operations. Missing ones take their defaults.
  std::vector<c10::IValue> examples{};
  /// The same, asked for only when the file cannot be read without; then it is read once more.
  std::function<std::vector<c10::IValue>()> lazy_examples{};
  /// The most rounds that one loop is unrolled.
  int max_unrolled_rounds = 10000;
  /// Note each node's Python source line in its meta (stack_trace).
  bool source_locations = true;
};

/// True for classes of torch.nn and torch.ao.nn that are no containers.
bool is_torch_nn_leaf(const std::string& qualified_name);

/// What a program stands in: the content decides between archives, the ending says what is text.
ProgramForm form_of_file(const std::string& path);

/// Loads a TorchScript file, an archive of torch.export (export/load.h), or FX text (text/parse.h), which has no
/// weights. Throws Error(io) when it cannot be read or is none, Error(unsupported) as above.
std::shared_ptr<GraphModule> load(const std::string& path, const LoadOptions& options = {});

/// The same from a module in memory. Tensors are shared with it.
/// @{
std::shared_ptr<GraphModule> from_torchscript(const torch::jit::Module& module, const LoadOptions& options = {});
std::shared_ptr<GraphModule> symbolic_trace(const torch::jit::Module& module, std::vector<c10::IValue> examples = {});
/// @}

}  // namespace fx
