// ProgramModes: what a traced program does with the modes of LibTorch between its operators.
//
// A graph has no regions: what a mode means for an operator must be said by nodes. Gradients that are switched off
// (NoGradGuard, InferenceMode) or passed by (AutoDispatchBelowAutograd) are said by detaching what the operator is
// given. What cannot be said is refused by name: autocast that is switched inside the program, and custom autograd
// functions, whose backward is C++. One of these is LibTorch's own (CrossMapLRN2d): its operators have the gradient
// that it computes, so they are recorded.
//
// Cost: a few thread-local reads per operator.
#pragma once

#include <cstdint>

namespace fx::internal {

class ProgramModes {
 public:
  /// What holds where the trace begins. Every thread that runs the program has its own autograd state.
  ProgramModes();

  /// The program is about to run an operator, which may take values of tensors. True when no gradients are recorded.
  /// Throws Error(trace) for what cannot be recorded.
  bool enter(bool takes_values);
  /// The program has ended: a custom function that runs no operator is noticed by no other. Throws as enter().
  static void end();
  /// Whether the program is inside a custom autograd function of LibTorch's that can be recorded as its operators.
  bool inside_known_function() const { return inside_known_function_; }
  /// Whether the program has made a node of autograd since the last operator: it is inside apply() of a function.
  bool inside_function() const;
  /// The operator has been recorded, or the program has ended.
  void leave();

 private:
  bool autocast_;
  bool autocast_cpu_;
  bool below_autograd_;
  bool inside_known_function_ = false;
};

/// While it lives, gradients are switched on: a trace means the same wherever it is made.
class WithGradients {
 public:
  WithGradients();
  ~WithGradients();
  WithGradients(const WithGradients&) = delete;
  WithGradients& operator=(const WithGradients&) = delete;

 private:
  bool before_;
};

}  // namespace fx::internal
