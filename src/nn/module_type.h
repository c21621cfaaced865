// What is known of a type of modules: the row that torch::nn's types and users' types fill alike.
//
// A row is written for the type it is about, ModuleRow<MyImpl>, whose functions take a MyImpl; it is kept and read as
// ModuleType, whose functions take any module and are called with one of the row's type. What is left out has the
// meaning that is said of it.
#pragma once

#include <ATen/core/stack.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/codegen/code.h>
#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/ops/node_effects.h>

namespace fx {

/// One of the values that a module is made with.
struct HyperParameter {
  std::string name;          ///< Python's keyword: `kernel_size`
  Argument value{};          ///< as Python takes it
  bool is_default = false;   ///< what the module has without it being given: generated code leaves it out
  bool by_position = false;  ///< the constructor cannot do without it
  std::string cpp_value{};   ///< as C++ takes it, `torch::kSame`; empty: as the literal of `value`
  std::string cpp_setter{};  ///< of the C++ options; empty: called as in Python
};

/// All that a module is made with, those by position first, in the order of the constructor.
using HyperParameters = std::vector<HyperParameter>;

/// What the calls of a module have in common, where what it computes depends on it.
struct CallForm {
  int rank = -1;           ///< of the input; negative: not known
  bool has_state = false;  ///< it is given a second argument
  /// All the same.
  friend bool operator==(const CallForm&, const CallForm&) = default;
};

/// What is known of modules of type `Impl`; see the top of this file.
template <typename Impl>
struct ModuleRow {
  /// A question to a module.
  template <typename Answer>
  using Ask = std::function<Answer(const Impl& module)>;

  std::string qualified_name{};  ///< Python's: `torch.nn.modules.conv.Conv2d`
  /// Calls forward: takes the arguments from the stack and leaves the result. Null: graphs cannot call it as C++.
  void (*call)(torch::nn::Module& module, torch::jit::Stack& stack) = nullptr;
  /// What the module computes with its present options and mode; nothing, or no function: only calling it will do.
  Ask<std::optional<Graph>> body{};
  /// The same in evaluation mode, whichever it is in. Null: as `body` says of a module in evaluation.
  Ask<std::optional<Graph>> evaluated{};
  /// Where its options lie, as long as the module lives: who made something of a body watches them.
  Ask<std::vector<std::span<const std::byte>>> options{};
  /// Its members that are tensors. A module computes with these, whatever is registered under their names. Null: not
  /// known, so that nobody can put others in their place.
  std::function<std::vector<torch::Tensor*>(Impl& module)> tensors{};
  /// What calling it does beside computing its result, where no body tells. Null: of types of your own nobody knows.
  Ask<NodeEffects> effects{};
  /// Whether it computes something else after train() than after eval(). Null: told from its bodies in both modes; a
  /// module without them is taken to.
  Ask<bool> follows_mode{};
  /// What it is made with; nothing where no source can say it (a function as activation). Null: not known, and
  /// generated code cannot make one. Generated Python makes `qualified_name(3, bias=False)`, which it imports.
  Ask<std::optional<HyperParameters>> hyper_parameters{};
  /// The C++ holder (TORCH_MODULE) that generated C++ makes, `mine::Scale(3)`. Empty: it has a member to be set.
  std::string cpp_type{};
  /// The options that the holder takes, `mine::ScaleOptions(3).bias(false)`. Empty: it takes all by position.
  std::string cpp_options{};
  /// The header of both, `mine/scale.h`. Empty: `torch/torch.h` has them.
  std::string cpp_header{};
  /// What forward returns. Nothing: what its C++ type says.
  std::optional<CodeModule::Result> result{};
  /// The dimensions that its input must have; 0 where it takes several.
  std::size_t input_rank = 0;
  /// The operator whose cost a call has with all parameters, where no body tells: `aten::lstm`. Empty: none is known.
  std::string cost_operator{};
  /// What a TorchScript leaf of this Python type computes in evaluation, when it is called in one form alone; null when
  /// that form is not known. May be null.
  std::shared_ptr<const Graph> (*scripted_body)(const LeafModule& leaf, CallForm form) = nullptr;
};

/// A row as it is kept.
using ModuleType = ModuleRow<torch::nn::Module>;

namespace internal {

template <typename Impl, typename Answer>
std::function<Answer(const torch::nn::Module&)> of_any(std::function<Answer(const Impl&)> ask) {
  if (!ask) return nullptr;
  return [ask = std::move(ask)](const torch::nn::Module& module) { return ask(dynamic_cast<const Impl&>(module)); };
}

/// The row as it is kept.
template <typename Impl>
ModuleType of_any(ModuleRow<Impl> row) {
  ModuleType any{.qualified_name = std::move(row.qualified_name), .call = row.call};
  any.body = of_any(std::move(row.body));
  any.evaluated = of_any(std::move(row.evaluated));
  any.options = of_any(std::move(row.options));
  if (row.tensors)
    any.tensors = [ask = std::move(row.tensors)](torch::nn::Module& module) {
      return ask(dynamic_cast<Impl&>(module));
    };
  any.effects = of_any(std::move(row.effects));
  any.follows_mode = of_any(std::move(row.follows_mode));
  any.hyper_parameters = of_any(std::move(row.hyper_parameters));
  any.cpp_type = std::move(row.cpp_type);
  any.cpp_options = std::move(row.cpp_options);
  any.cpp_header = std::move(row.cpp_header);
  any.result = std::move(row.result);
  any.input_rank = row.input_rank;
  any.cost_operator = std::move(row.cost_operator);
  any.scripted_body = row.scripted_body;
  return any;
}

}  // namespace internal
}  // namespace fx
