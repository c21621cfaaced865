// fxgraph report: what the analyses found.
#include "analysis/report.h"

#include <map>

#include "analysis/page.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace fx::cli {

namespace {

using Write = std::string (*)(const Graph&, const ReportInputs&, const fx::ReportOptions&);
const std::map<std::string, Write> kFormats = {
    {"text", [](const Graph& graph, const ReportInputs& inputs,
                const fx::ReportOptions& options) { return to_text(make_report(graph, inputs, options)); }},
    {"json", [](const Graph& graph, const ReportInputs& inputs,
                const fx::ReportOptions& options) { return to_json(make_report(graph, inputs, options)); }},
    {"html", to_html},
};

}  // namespace

int report(const ReportOptions& options, Backend* backend) {
  const auto model = load_model(options.file, backend);
  Shapes shapes;
  ReportInputs inputs;
  inputs.name = options.file;
  inputs.module_effects = model->module_effects();
  inputs.attributes = model->attributes();
  inputs.cost = model->cost_options();
  if (!options.inputs.empty()) {
    shapes = model->propagate_shapes(parse_inputs(options.inputs));
    inputs.shapes = &shapes;
  }
  fx::ReportOptions parts;
  // Without a choice: everything that can be said.
  if (options.dead_code || options.liveness || options.uses || options.dominance || options.cost) {
    parts.dead_code = options.dead_code;
    parts.liveness = options.liveness;
    parts.uses = options.uses;
    parts.dominance = options.dominance;
    parts.cost = options.cost;
  }
  if (options.cost && options.inputs.empty()) {
    throw Error(ErrorKind::invalid_argument, "--cost needs shapes: add --input, like --input 1x3x224x224");
  }
  if (options.inputs.empty()) parts.cost = false;
  write_output(options.output, kFormats.at(options.format)(model->graph(), inputs, parts));
  return kDone;
}

}  // namespace fx::cli
