// What an operator of a trace demands of the sizes of its inputs: equal ones, multiples, those that a weight has. Its
// record says so (fxgraph/ops/records/size_inference.h), and nothing has to be tried for it.
//
// Cost: of one call linear in the calls before it.
#pragma once

#include <string>
#include <vector>

#include <fxgraph/symbolic/size_facts.h>
#include <fxgraph/trace/probe.h>
#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

/// What call `at` asks of the sizes of groups, where numbers that `run` has had otherwise than the first trace are
/// nobody's. Symbols: group_symbol().
std::vector<SizeCondition> demands_of(std::uint32_t at, const ProbedProgram& program, const Probe& run,
                                      const SizeGroups& groups);

/// The size of a group, and its group.
/// @{
std::string group_symbol(std::uint32_t group);
std::uint32_t group_of_symbol(const std::string& symbol);
/// @}

}  // namespace fx::internal
