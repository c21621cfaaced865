// Giving an operation other weights, wherever it stands: what folding rules share.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/rules/operation_site.h>
#include <fxgraph/rewriter/rules/rules.h>

namespace fx::rules {

/// Whether both hold equal elements of one type, laid out alike.
bool holds_same(const at::Tensor& a, const at::Tensor& b);

/// Whether the program also calls a module that holds the one at `path`, under whatever path: what is put there is run
/// by that call too.
bool is_run_by_another(const GraphModule& module, const std::string& path);

/// y = x · scale + shift, by channel, in double precision: batch normalisation by running statistics. Undefined with
/// the reason in `refusal` when it is not that.
struct ChannelAffine {
  at::Tensor scale, shift;
  std::string refusal;
};
ChannelAffine affine_of_batch_norm(const OperationSite& bn);

bool is_batch_norm(std::string_view packet);
bool is_linear(std::string_view packet);

/// The effects of a program's graph, classes known, for passes: what is written, and what of its attributes is
/// constant.
class ProgramEffects : public internal::TrackedEffects {
 public:
  explicit ProgramEffects(const GraphModule& module) : TrackedEffects(module.graph(), module_info(module)) {
    expect_writes();
  }

  /// Why the attribute may not be taken for what it holds now, empty when it may: the program writes to its storage,
  /// under whatever path, or hands it to the caller.
  std::string not_constant(const std::string& path);
};

/// A value that is written and, as strides fall, is a view of a value that others see or a copy of it (contiguous,
/// reshape and their like); null when there is none. Strides pass from operator to operator, so where one is, kernels
/// that give others must not come in, however far away. `effects` are the graph's. O(nodes).
const Node* written_if_strides_say_so(const Graph& graph, const ProgramEffects& effects);

class Weights {
 public:
  /// Looks once at what the program writes to.
  explicit Weights(RuleContext& program)
      : module_(program.module), rewriter_(program.rewriter), effects_(program.module) {}

  ProgramEffects& effects() { return effects_; }

  /// Why the attributes called `names` of this operation may not be taken for constants; empty when they may.
  std::string not_constant(const OperationSite& site, const std::vector<std::string_view>& names);
  /// Why the operation's weights may not be replaced; empty when they may.
  std::string not_replaceable(const OperationSite& site);

  /// Gives the operation this weight and bias (one without a bias gets one). A leaf is replaced by a copy, in place
  /// when this is its only call; attributes are put beside the old ones, which go when nothing reads them. Calls that
  /// shared their weights and get equal ones share these, too.
  void replace(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias);

  /// Erases those get_attr nodes that nothing uses.
  void erase_unread(const std::vector<Node*>& nodes);

 private:
  void install_leaf(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias);
  void install_attributes(const OperationSite& site, const at::Tensor& weight, const at::Tensor& bias);
  bool reads_inside(const std::string& path) const;

  /// What weights were replaced by, beside the old ones.
  struct Replacement {
    at::Tensor weight, bias;
    std::string path, bias_path;  ///< the module's and none, or the attributes'
  };
  const Replacement* find_replacement(const std::string& old, const at::Tensor& weight, const at::Tensor& bias) const;

  GraphModule& module_;
  Rewriter& rewriter_;
  ProgramEffects effects_;
  std::multimap<std::string, Replacement> replacements_;  // by the path of the module or the weight
};

}  // namespace fx::rules
