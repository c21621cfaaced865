// Is a program worse than it was? A report compared with an older one, for a build that must not get worse unnoticed.
//
//   report.baseline = fx::compare_with_baseline(report, old_json, 0.05);
//   for (const auto* worse : report.baseline->past_limit()) …
//
// The older report is the JSON that to_json made. Compared are the counts and sizes of which less is better: nodes,
// dead and unused things, peak and planned bytes, operations, bytes moved, parameters. Complexity: that of parsing the
// JSON. Thread-safety: the function keeps no state.
#pragma once

#include <string_view>

#include <fxgraph/report/report.h>

namespace fx {

/// Compares what both reports have. `limit` is how much a measure may grow, as a part of what it was: 0.05 for 5 %.
/// Throws Error(syntax) when `json` is no JSON, Error(invalid_argument) when it is no report of this version, when it
/// has measures that `report` lacks (made with other options, it would be a gate that lets everything through), and
/// when nothing can be compared.
Report::BaselinePart compare_with_baseline(const Report& report, std::string_view json, double limit);

}  // namespace fx
