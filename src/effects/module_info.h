// What is known of a program's modules and tensors beside its graph: types, effects, bodies and costs of modules, tied
// weights. Analyses, matchers and passes of graphs take one; module_info(gm) (module/module_info.h) has that of a
// program, and the overloads for a GraphModule ask there.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/ops/node_effects.h>

namespace fx {

/// What a call_module computes, in terms of an operator: `aten::conv2d` and the module's parameters, in that operator's
/// order (weight, bias).
struct ModuleCall {
  Symbol packet;  ///< without overload
  std::vector<TensorInfo>
      parameters;  ///< what the call reads beside its inputs, in the order of the operator's arguments
};

/// Questions that a graph cannot answer. All may be left out: ops/node_effects.h says what then holds of effects.
struct ModuleInfo {
  /// What calling the module at `call.target()` does.
  std::function<NodeEffects(const Node& call)> effects{};
  /// One path for all attributes that share storage (tied weights); without it each path has its own.
  std::function<Symbol(Symbol path)> storage{};
  /// Calls `visit` with the storage (as above) of each tensor that the module at a path holds: what a call of it reads,
  /// and what it writes when it writes its state. Without it: the attributes below that path.
  std::function<void(Symbol module, const std::function<void(Symbol storage)>& visit)> state{};
  /// The type of the module at a path, `torch.nn.Conv2d` or `Conv2d`; empty: there is none.
  std::function<std::string(std::string_view path)> type{};
  /// What the module at a path computes; null where that is not known.
  std::function<std::shared_ptr<const Graph>(std::string_view path)> body{};
  /// The same in evaluation, whichever mode the module is in.
  std::function<std::shared_ptr<const Graph>(std::string_view path)> evaluated{};
  /// The operators behind a call, over paths below the module's, with a placeholder for each distinct node among the
  /// call's arguments, in order; null where they are not known.
  std::function<std::shared_ptr<const Graph>(const Node& call)> operators{};
  /// The tensor at a path; nothing where there is none.
  std::function<std::optional<TensorInfo>(std::string_view path)> tensor{};
  /// What is known of the modules below a path, for graphs over paths from there.
  std::function<ModuleInfo(std::string_view path)> below{};
  /// What a call costs, as an operator; nothing where that is not known. Without it the cost of modules is unknown.
  std::function<std::optional<ModuleCall>(const Node& call)> cost{};

  /// The name of the storage behind `path`: itself unless `storage` says otherwise.
  Symbol storage_of(Symbol path) const { return storage ? storage(path) : path; }
  /// The type of the module at `path`; empty where that is not known.
  std::string type_of(std::string_view path) const { return type ? type(path) : std::string(); }
  /// The same with what it leaves out answered by `other`.
  ModuleInfo or_else(const ModuleInfo& other) const;
};

/// A graph with modules of which `module_info(program)` knows: a GraphModule (module/module_info.h).
template <typename P>
concept Program = requires(const P& program) {
  { program.graph() } -> std::convertible_to<const Graph&>;
  { module_info(program) } -> std::convertible_to<ModuleInfo>;
};

}  // namespace fx
