// torch.export out: a GraphModule becomes a `.pt2` archive that Python's torch.export.load reads.
//
//   fx::symbolic_trace(net, {x})->save("mine.pt2");            // Python: torch.export.load("mine.pt2").module()(x)
//   fx::save_exported(*gm, "mine.pt2", {.inputs = {x}, .dynamic = {{0, 0, {1, 64}}}});
//
// Modules that the graph calls are written out as operators, in the mode that they are in; parameters, buffers and
// constants keep their names, tied weights stay tied, tuples and dicts of the call stay what they are. An archive needs
// the size of every value: the program is run on the example inputs, and for sizes that may vary on further ones, from
// which each size is found as an expression and checked.
//
// Costs: one run of the program, five more for each size that varies, and those of free_sizes.h. Thread-safety: as
// running the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// A size of an input that may vary.
struct DynamicSize {
  std::size_t input = 0;       ///< which tensor, counted over all that the call takes
  std::int64_t dimension = 0;  ///< which of its dimensions, from 0
  SizeRange range{};           ///< what it may be; open ends are found by nobody
};

/// Which sizes of the inputs may vary, beside those that SaveExportedOptions::dynamic names.
enum class ExportedSizes : std::uint8_t {
  noted,  ///< those that the archive or the trace left free from which the program came
  found,  ///< and all that the program's operators and assertions leave open
  fixed,  ///< none
};

/// What a program is exported with.
struct SaveExportedOptions {
  /// One value per argument. Empty: tensors of the shapes with which the program was traced or exported.
  std::vector<c10::IValue> inputs{};
  std::vector<DynamicSize> dynamic{};          ///< sizes that vary whatever `sizes` says
  ExportedSizes sizes = ExportedSizes::noted;  ///< which others do
};

/// Writes `path`, beside it first and then renamed. Throws Error(invalid_argument) when the inputs' shapes are not
/// known, Error(unsupported), naming all nodes, for what torch.export has no words for, Error(io) when it cannot be
/// written.
void save_exported(const GraphModule& module, const std::string& path, const SaveExportedOptions& options = {});

}  // namespace fx
