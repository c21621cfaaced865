// The measures of a report as formulas of the sizes that vary: `peak at relu  2*x[0] KiB`.
//
//   report.sizes = fx::size_formulas(graph, program, known);
//
// They are sums over the sizes that the operators' rows say (contract/symbolic_shapes.h); nothing is run. A measure to
// which something belongs whose size is not known has no formula. Sizes at which another node becomes the peak are
// searched for, one size after the other, by evaluating the formulas of all storages.
//
// Cost: the storages, times the digits of the sizes that are tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/report/report.h>

namespace fx {

/// A program at the sizes that it leaves open.
struct OpenProgram {
  /// One that varies.
  struct Size {
    std::string symbol;        ///< as `shapes` has it: `x[0]`, or a part of it where it goes in steps
    std::string said;          ///< the dimensions that have it: `x[0] = y[0]`
    std::int64_t example = 1;  ///< what the symbol is in the example
    std::int64_t step = 1;     ///< how much of the size one of the symbol is
  };
  std::vector<Size> sizes;  ///< none: nothing varies
  SymbolicShapes shapes;    ///< of the graph
};

/// The part of a report of `graph` that says what follows from sizes; see the top of this file. `known` are the inputs
/// of the report, with the shapes of the example.
Report::SizesPart size_formulas(const Graph& graph, const OpenProgram& program, const ReportInputs& known,
                                const ReportOptions& options = {});

}  // namespace fx
