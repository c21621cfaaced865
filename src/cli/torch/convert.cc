// fxgraph convert: a program from one form into another. The ending of the output says which.
#include <fmt/format.h>

#include <iostream>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/export/save.h>

namespace fx::cli {

int TorchBackend::convert(const ConversionOptions& options) {
  require_form(options.output);
  const std::vector<TensorInfo> shapes = parse_inputs(options.inputs);
  const std::unique_ptr<Model> model = load(options.file, options.inputs);
  auto& program = dynamic_cast<TorchModel&>(*model);
  if (!shapes.empty()) check_inputs(program.graph(), shapes.size());
  {
    const Progress progress("writing " + options.output);
    if (options.fixed && form_of(options.output, Form::text) == Form::exported)
      save_exported(program.module(), options.output, {.inputs = random_inputs(shapes), .sizes = ExportedSizes::fixed});
    else
      program.save(options.output, shapes);
  }
  if (options.output != "-") std::cout << fmt::format("saved {} ({} nodes)\n", options.output, program.graph().size());
  return kDone;
}

}  // namespace fx::cli
