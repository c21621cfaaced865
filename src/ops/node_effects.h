// What one call does beside returning a value.
#pragma once

namespace fx {

/// What one call does beside returning a value; all false for a pure one. A word, so that it is copied as one.
///
/// What nobody has described has one answer to each question:
///
///   | the call                                  | an operator without a schema      | a module                      |
///   |-------------------------------------------|-----------------------------------|-------------------------------|
///   | unused, may it go?                        | no                                | yes, as in torch.fx           |
///   | may two equal calls be one?               | no                                | no                            |
///   | may its result be an input, or state?     | yes                               | yes                           |
///   | does it write its inputs?                 | it may                            | no                            |
///   | which attributes does it touch?           | those that it is given            | those below its path          |
///   | does it keep its place among effects?     | yes                               | yes                           |
///   | as a flag                                 | `unknown`                         | `undescribed`                 |
///
/// Operators that are taken at their author's word (trust() in effects/effects_of.h) give a value of their own, and
/// write nothing.
struct alignas(8) NodeEffects {
  bool writes : 1 = false;        ///< writes to an argument (or to module state)
  bool random : 1 = false;        ///< draws random numbers
  bool side_effect : 1 = false;   ///< may raise on purpose, print, change global state
  bool unknown : 1 = false;       ///< an operator without a schema
  bool undescribed : 1 = false;   ///< a module of which nobody says what calling it does
  bool may_alias : 1 = false;     ///< the result may share storage with an argument
  bool aliases : 1 = false;       ///< the result surely is, or is a view of, the argument it may alias
  bool restructures : 1 = false;  ///< what it writes may get other sizes or strides, whoever holds that tensor
  /// The result may share storage with a tensor that the called module holds; may_alias is set, too.
  bool may_alias_state : 1 = false;

  /// True when the node may not be removed though nothing uses it, nor merged.
  bool impure() const { return writes || random || side_effect || unknown; }
  /// True when two equal calls are not one.
  bool is_one_of_its_own() const { return impure() || undescribed; }
  /// True when a tensor may have other sizes or strides behind it, in place.
  bool mutates_shapes() const { return restructures || unknown; }
  /// Equal in everything.
  friend bool operator==(const NodeEffects&, const NodeEffects&) = default;
};

}  // namespace fx
