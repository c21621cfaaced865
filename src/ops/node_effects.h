// What one call does beside returning a value.
#pragma once

namespace fx {

/// What one call does beside returning a value; all false for a pure one. A word, so that it is copied as one.
struct alignas(8) NodeEffects {
  bool writes = false;        ///< writes to an argument (or to module state)
  bool random = false;        ///< draws random numbers
  bool side_effect = false;   ///< may raise on purpose, print, change global state
  bool unknown = false;       ///< an operator nobody has a schema for: assumed to read and write anything it is given
  bool may_alias = false;     ///< the result may share storage with an argument
  bool aliases = false;       ///< the result surely is, or is a view of, the argument it may alias
  bool restructures = false;  ///< what it writes may get other sizes or strides, whoever holds that tensor
  /// The result may share storage with a tensor that the called module holds; may_alias is set, too.
  bool may_alias_state = false;

  /// True when the node may not be removed or merged though nothing uses it.
  bool impure() const { return writes || random || side_effect || unknown; }
  /// True when a tensor may have other sizes or strides behind it, in place.
  bool mutates_shapes() const { return restructures || unknown; }
  /// Equal in everything.
  friend bool operator==(const NodeEffects&, const NodeEffects&) = default;
};

}  // namespace fx
