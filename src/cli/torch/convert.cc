// fxgraph convert: a program from one form into another. The ending of the output says which.
#include <fmt/format.h>

#include <iostream>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/export/save.h>

namespace fx::cli {

int TorchBackend::convert(const ConversionOptions& options) {
  require_form(options.output);
  const std::unique_ptr<Model> model = load(options.file, options.inputs);
  auto& program = dynamic_cast<TorchModel&>(*model);
  if (!options.inputs.empty()) inputs_for(program.graph(), options.inputs);
  {
    const Progress progress("writing " + options.output);
    if (options.fixed && form_of(options.output, ProgramForm::text) == ProgramForm::exported)
      save_exported(program.module(), options.output,
                    {.inputs = values_of(options.inputs), .sizes = ExportedSizes::fixed});
    else
      program.save(options.output, options.inputs);
  }
  if (options.output != "-") std::cout << fmt::format("saved {} ({} nodes)\n", options.output, program.graph().size());
  return kDone;
}

}  // namespace fx::cli
