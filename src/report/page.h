// The report as one HTML page: the graph drawn by module, memory over time, dominators, dead code, tables.
//
// The page is a single file without links: styles, scripts and data are in it, and it opens without a network. Modules
// open and close on click; tables sort and filter. It is made for graphs of up to some 10,000 nodes; larger ones work
// but take the browser seconds. layout.h says where everything stands; the scripts are in src/report/page/, put
// together when the library is built.
//
// Complexity: that of make_report. Throws nothing of its own. Thread-safety: like the const functions of Graph.
#pragma once

#include <string>

#include <fxgraph/ir/graph.h>
#include <fxgraph/report/report.h>

namespace fx {

/// The whole page. Parts that `options` leaves out, and those that need shapes when there are none, are left out of it;
/// ReportOptions::max_rows does not count here: the page has all rows.
std::string to_html(const Graph& graph, const ReportInputs& inputs = {}, const ReportOptions& options = {});

}  // namespace fx
