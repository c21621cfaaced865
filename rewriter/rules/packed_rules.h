// Rewrites for kernels that take in the activation behind them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/rewriter/rules/rules.h>

namespace fx::rules {

/// oneDNN's convolution, whose packing is told what follows it.
struct OnednnKernel {
  std::string pattern;  ///< of the operator alone
  Decision (*fits)(const Match&);
  /// The call; the attribute is `relu` or `none`.
  Node& (*call)(const Match&, Rewriter&, std::string_view attribute);
  std::vector<std::string> examples;
};

/// Adds the rewrites `onednn-relu` and `onednn`: of the operator with a relu and nothing behind it.
void append_onednn(std::vector<Rewrite>& rewrites, const OnednnKernel& kernel);

/// A kernel of XNNPACK's, which keeps what it makes between two bounds.
struct XnnpackKernel {
  std::string name;     ///< of the cases, before what follows
  std::string pattern;  ///< of the operator alone
  Decision (*fits)(const Match&);
  /// The call; a bound of None is none.
  Node& (*call)(const Match&, Rewriter&, const Argument& least, const Argument& most);
  std::vector<std::string> examples;
};

/// Adds the rewrites of the operator with relu, relu6, a clamp and nothing behind it.
void append_xnnpack(std::vector<Rewrite>& rewrites, const XnnpackKernel& kernel);

/// True for the name of a rule for XNNPACK.
bool is_for_xnnpack(std::string_view rule);

/// The rules for other kernels: XNNPACK keeps state in what it packed, which two threads may not write to at once.
std::vector<Rule> without_xnnpack(std::vector<Rule> rules);

/// The rules for as many threads as an operator may use. With several, none for XNNPACK: it has threads of its own,
/// while OpenMP's keep the processors busy when they wait. With as many of both as there are processors, a MobileNet
/// took seven times as long as with one kind, which its places alone do not show.
std::vector<Rule> for_these_threads(std::vector<Rule> rules);

}  // namespace fx::rules
