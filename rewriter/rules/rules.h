// The rules that come with fxgraph: one ordered list of what `fxgraph optimize` can do.
//
// A rule works on a GraphModule, because it may compute with weights. It is applied wherever its preconditions hold and
// says where they do not and why. Adding one touches three files: the rule's own, its line in rules.cc, its test.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module/graph_module.h"

namespace fx::rules {

/// How equal the results are.
enum class Promise {
  bit_exact,     ///< the same bits
  reassociates,  ///< equal but for the order of floating-point operations
  approximate,   ///< equal within a tolerance that the rule names
};
std::string_view to_string(Promise promise);

/// One place where a rule looked like fitting and was not applied.
struct Refusal {
  std::string node;
  std::string reason;
};

/// What one application of a rule to a program did.
struct Outcome {
  std::size_t applied = 0;
  std::vector<Refusal> refused;
  std::string detail;  ///< more in words, such as "53 modules dropped"; may be empty
};

struct ProgramRule {
  std::string_view name;
  std::string_view summary;
  std::string_view preconditions;
  Promise promise;
  Outcome (*apply)(GraphModule& module);
};

/// All rules, in the order in which they are applied.
std::span<const ProgramRule> all_rules();

/// A named selection of rules.
struct Group {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string_view> rules;
};
const std::vector<Group>& groups();

/// The rules that `names` select, rules or groups, in the order of the list; empty selects the group `inference`.
/// Throws Error(not_found) that lists what there is.
std::vector<const ProgramRule*> select(const std::vector<std::string>& names);

}  // namespace fx::rules
