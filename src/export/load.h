// torch.export in: a `.pt2` archive becomes a GraphModule that runs and trains.
//
//   auto gm = fx::load("model.pt2");                 // torchscript/import.h: looks into the file and comes here
//
// The graph has the call's own signature: one placeholder per argument, tuples and dicts taken apart by getitem and put
// together again for the result. Parameters, buffers and constants are attributes under the names that Python gave
// them; weights that were tied are tied. Writes to inputs and buffers that the signature lists are made, at the end of
// the graph. Sizes are checked at the input by `_guards_fn`, a GraphModule of assertions: the fixed ones are equal to
// those of the example, the others in their ranges, as Python's ExportedProgram.module() checks them.
//
// Costs: the records are read once; the graph is made in time linear in its JSON. Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// How an archive is read.
struct ExportedOptions {
  /// Which program of an archive with several; the name of its `models/NAME.json`. Empty: the only one.
  std::string model;
  /// Check sizes at the input. Values that the program holds for alone, and containers, are checked always.
  bool check_sizes = true;
};

/// True when the file at `path` is an archive of torch.export. Never throws.
bool is_exported_program(const std::string& path) noexcept;

/// Packs the values of a call, given one after the other, into the arguments that `module` takes: tuples, lists and
/// dicts as Python had them. Throws Error(invalid_argument) when their number is wrong.
std::vector<c10::IValue> pack_inputs(const GraphModule& module, const std::vector<c10::IValue>& values);

/// Loads what torch.export.save wrote, from PyTorch 2.5 on. Throws Error(io) for a file that cannot be read, is cut
/// short or damaged; Error(unsupported), all at once, for operators that are not known here, for classes among
/// the inputs that nobody registered as trees, and for newer schemas. The message starts with `path`.
std::shared_ptr<GraphModule> load_exported(const std::string& path, const ExportedOptions& options = {});

}  // namespace fx
