// SizeFormulas: the measures of a report as formulas of the sizes that vary: `peak 2·x[0] KiB`.
//
//   report.sizes = fx::size_formulas(graph, inputs, varying, shapes_at, known);
//
// The shapes are worked out at other sizes, the measures taken there, and those that follow an exact polynomial are
// given as one, having been compared at sizes that it was not made from. A measure that follows none, such as a peak
// that moves to another place, has no formula. Sizes that are halved and rounded follow one in steps, which are looked
// for and said.
//
// Cost: four shape propagations for each size that varies and each width of steps tried, up to a hundred for several
// that are multiplied. Errors: what `shapes_at` throws at other sizes makes those sizes fixed; nothing is thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/report/report.h>

namespace fx {

/// Sizes of inputs that vary, together when there are several.
struct VaryingSize {
  /// Which dimensions of which inputs, by number.
  std::vector<std::pair<std::size_t, std::size_t>> places;
  std::int64_t step = 1;  ///< they are multiples of it
};

/// The shapes of all values for these inputs.
using ShapesAt = std::function<Shapes(const std::vector<TensorInfo>&)>;

/// The part of a report of `graph` that says what follows from sizes; see the top of this file. `known` are the inputs
/// of the report, with the shapes of `inputs`.
Report::SizesPart size_formulas(const Graph& graph, const std::vector<TensorInfo>& inputs,
                                const std::vector<VaryingSize>& varying, const ShapesAt& shapes_at,
                                const ReportInputs& known, const ReportOptions& options = {});

}  // namespace fx
