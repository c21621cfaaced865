// torch.export out: a GraphModule becomes a `.pt2` archive that Python's torch.export.load reads.
//
//   fx::save_exported(*gm, "mine.pt2", {.inputs = {x}, .dynamic = {{0, 0, {1, 64}}}});
//                                                               // Python: torch.export.load("mine.pt2").module()(x)
//
// Modules that the graph calls are written out as operators, in the mode that they are in; parameters, buffers and
// constants keep their names, tied weights stay tied, tuples and dicts of the call stay what they are. An archive needs
// the size of every value: the program is run on the example inputs, and for sizes that may vary on further ones, from
// which each size is found as an expression and checked.
//
// Costs: one run of the program, three more for each size that varies. Thread-safety: as running the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/export/size_expr.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// A size of an input that may vary.
struct DynamicSize {
  std::size_t input = 0;  ///< which tensor, counted over all that the call takes
  std::int64_t dimension = 0;
  pt2::SizeRange range{};  ///< what it may be; open ends are found by nobody
};

struct SaveExportedOptions {
  /// One value per argument. Empty: tensors of the shapes that were noted when the program was loaded.
  std::vector<c10::IValue> inputs{};
  /// Sizes that may vary, beside those that were noted.
  std::vector<DynamicSize> dynamic{};
};

/// Writes `path`, beside it first and then renamed. Throws Error(invalid_argument) when the inputs' shapes are not
/// known, Error(unsupported), naming all nodes, for what torch.export has no words for, Error(io) when it cannot be
/// written.
void save_exported(const GraphModule& module, const std::string& path, const SaveExportedOptions& options = {});

}  // namespace fx
