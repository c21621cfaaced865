// FactGuard: who answers for what a rewrite went by.
//
// A rule that reads a type, a rank or a size says something about every call of the program. Before a rewrite is
// committed, its driver asks the guard for all that was read at this place, by conditions, replacements and patterns.
// fx::ProgramFacts (fxgraph/rewriter/rules/program_facts.h) proves it from what the program takes, or asserts it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <fxgraph/ir/tensor_facts.h>

namespace fx {

/// See the top of this file.
class FactGuard {
 public:
  virtual ~FactGuard() = default;
  /// What is built next may have to be answered for, by the program as it is now.
  virtual void prepare() {}
  /// Answers for `facts`, by which `rule` is about to change the program. Returns why it cannot; else nothing.
  virtual std::string require(std::string_view rule, std::span<const Fact> facts) = 0;
  /// The new value `made` has what is known of `old`.
  virtual void stands_for(const Node& made, const Node& old) = 0;
};

}  // namespace fx
