// Rules whose worth depends on the machine: each place is rewritten by the rule that was measured to be fastest there.
//
// A place and what it is made of become a small program; copies of it are rewritten by each rule that fits, checked
// against the original, and timed turn about with those of all other places, so that weights are as cold as they are
// in the model. Places that are alike are measured once. The shortest of its runs counts, and the original is a
// candidate, too: who is not faster by two per cent loses to it; among channels last, who is not slower by ten wins.
// XNNPACK copies what another kernel made: such copies count for both neighbours.
//
// Costs about 8 to 15 times as many runs of the places as there are candidates, and at most some seconds.
#pragma once

#include <fxgraph/rewriter/rules/rules.h>

namespace fx::rules {

/// A pass: applies to each place the fastest of the rule's rewrites, if one is faster than what is there; without
/// XNNPACK's where several threads may run the program, or one operator. All values that a pattern binds, but `x`,
/// `other` and `state`, must be attributes that nothing writes; shapes must be known. Activations lie in memory as the
/// shapes say.
PassResult apply_fastest(RuleContext& program);

/// The same, where images, activations of four dimensions, lie with channels last; contiguous() does not count.
PassResult apply_fastest_to_images(RuleContext& program);

/// Lets operators write over values that nobody else sees (lowering/writes.cc), as they will in the end.
PassResult write_in_place(RuleContext& program);

}  // namespace fx::rules
